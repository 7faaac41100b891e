//! Deals of planned rows: the plan says which of them are whose, before any is made.

use crate::dataset::plan::{Make, Member, Recipe, Segments};
use crate::error::Result;
use crate::part::{Deal, Gain, Part, RowNumbers};

/// Deal of planned rows that does not go by their numbers.
pub(crate) enum PlannedDeal {
    /// By what they cost.
    ByCost(CostDeal),
    /// By the lanes that they come of, and their places there.
    ByPlace(Part),
}

/// Deal of rows whose segments cost so much.
pub(crate) struct CostDeal {
    deal: Deal,
    part: Part,
    /// The array whose segments cost so much.
    segments: Segments,
}

impl PlannedDeal {
    /// Deals rows of `part` by what `make` says of them beforehand; `None` where they are dealt by their numbers, or costs are read from something
    /// else than planned segments.
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
    /// The costs of rows.
    pub(super) fn costs<T>(&self, rows: &[Recipe], make: &dyn Make<T>) -> Result<Vec<u64>> {
        let Some(balance) = self.deal.balance() else { return Ok(Vec::new()) };
        rows.iter().map(|row| Ok(balance.cost.of_lens(make.segments(row, &self.segments)?))).collect()
    }

    /// The part's rows of a whole batch whose rows cost so much, and what it gains.
    pub(super) fn rows(&self, costs: &[u64]) -> Result<(RowNumbers, Option<Gain>)> {
        self.deal.rows(&self.part, costs, &self.segments.name)
    }
}

/// The part's rows of a batch, by where the first element of each stands.
pub(super) fn rows_by_place(part: &Part, rows: &[Recipe]) -> Result<RowNumbers> {
    let place = |row: &Recipe| row.first().map(|Member { leaf, slot, piece, .. }| (*leaf, *slot, *piece));
    part.rows_by(&rows.iter().map(place).collect::<Vec<_>>())
}
