//! Deals of planned rows: the plan assigns rows to parts before any row is made.

use super::{Make, Member, Recipe, Segments};
use crate::error::Result;
use crate::part::{Deal, Gain, Part, RowNumbers};

/// A deal of planned rows that does not depend on row numbers.
pub(crate) enum PlannedDeal {
    /// By cost.
    ByCost(CostDeal),
    /// By lane, and by place within the lane.
    ByPlace(Part),
}

/// A deal of rows by the cost of their segments.
pub(crate) struct CostDeal {
    deal: Deal,
    part: Part,
    /// Array whose segments determine the cost.
    segments: Segments,
}

impl PlannedDeal {
    /// Returns the deal of the rows of `part` from the facts that `make` has in advance. Returns `None` if rows are
    /// dealt by number, or if costs depend on more than planned segments.
    pub(super) fn of<T>(deal: &Deal, part: &Part, make: &dyn Make<T>) -> Option<Self> {
        if *deal == Deal::Lanes {
            return Some(Self::ByPlace(part.clone()));
        }
        let cost = &deal.balance()?.cost;
        let segments = make.find_segments(&mut |name| cost.reads(name)).filter(|_| cost.is_of_segments())?;
        Some(Self::ByCost(CostDeal { deal: deal.clone(), part: part.clone(), segments }))
    }
}

impl CostDeal {
    /// Returns the costs of rows.
    pub(super) fn costs<T>(&self, rows: &[Recipe], make: &dyn Make<T>) -> Result<Vec<u64>> {
        let Some(balance) = self.deal.balance() else { return Ok(Vec::new()) };
        rows.iter().map(|row| Ok(balance.cost.of_lens(make.segments(row, &self.segments)?))).collect()
    }

    /// Returns the part's rows of a whole batch with these row costs, and the gain of balance.
    pub(super) fn rows(&self, costs: &[u64]) -> Result<(RowNumbers, Option<Gain>)> {
        self.deal.rows(&self.part, costs, &self.segments.name)
    }
}

/// Returns the part's rows of a batch, dealt by the place of each row's first element.
pub(super) fn rows_by_place(part: &Part, rows: &[Recipe]) -> Result<RowNumbers> {
    let place = |row: &Recipe| row.first().map(|Member { id, .. }| (id.border, id.index, id.piece));
    part.rows_by(&rows.iter().map(place).collect::<Vec<_>>())
}
