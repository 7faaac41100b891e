//! Deals of planned rows: what they cost says which of them are whose, before any is made.

use crate::dataset::plan::{Make, Recipe, Segments};
use crate::error::Result;
use crate::part::{Deal, Gain, Part, RowNumbers};

/// How rows are dealt that are planned, in a deal that goes by their costs.
pub(crate) struct PlannedDeal {
    deal: Deal,
    part: Part,
    /// The array whose segments cost so much.
    segments: Segments,
}

impl PlannedDeal {
    /// Deals rows of `part` by what `make` says of them beforehand; `None` where costs are read from something else than planned segments.
    pub(super) fn of<T>(deal: &Deal, part: &Part, make: &dyn Make<T>) -> Option<Self> {
        let cost = &deal.balance()?.cost;
        let segments = make.find_segments(&mut |name| cost.reads(name)).filter(|_| cost.is_of_segments())?;
        Some(Self { deal: deal.clone(), part: part.clone(), segments })
    }

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
