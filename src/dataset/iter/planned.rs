//! Passes over the rows of a part of batches that were planned out of keys.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::Batching;
use super::dealt::{Dealt, PartPass};
use super::make_batch::MakeBatch;
use super::{DatasetIterator, Position};
use crate::cx::Cx;
use crate::dataset::Remainder;
use crate::dataset::plan::{Plan, PlannedRows, Recipe};
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::{Part, RowNumbers};

/// Elements of the part's rows that are planned ahead, where somebody evaluates them ahead.
const AHEAD: usize = 4096;
/// No more batches are, however few elements those are.
const MOST_BATCHES: usize = 64;

/// A pass over the rows of a part. Its states are those of the pass over all rows.
struct PlannedBatches<T, S, M> {
    plan: Plan<T, S>,
    batching: Arc<Batching<M>>,
    /// The same for the part's rows alone.
    own: Batching<M>,
    rows: RowNumbers,
    planned: VecDeque<Planned<S>>,
    /// Elements in those.
    members: usize,
    /// Rows of the batch that is planned next: some, where that has failed.
    open: PlannedRows,
    /// Elements to plan ahead.
    ahead: usize,
    /// The position behind the batch that came out last.
    state: S,
    /// The end of the plan, once it is known: an error, or no more rows.
    end: Option<Result<()>>,
}

/// A batch that was planned: what is to be made of it, and the position behind it.
struct Planned<S> {
    recipes: Vec<Recipe>,
    /// Whether those are all of its rows: of the last batch, where that is not whole.
    is_all: bool,
    /// The digest of all rows of the plan, the same on all hosts.
    digest: u128,
    after: S,
}

/// Starts a pass over the rows of `part` of the batches of what `plan` plans; `None` where a row of a batch depends on others.
pub(super) fn planned<T, S, M>(
    plan: Plan<T, S>,
    batching: &Arc<Batching<M>>,
    run: &Runtime,
    part: &Part,
) -> Result<Option<PartPass<M::Batch, S>>>
where
    T: Send + 'static,
    S: Position,
    M: MakeBatch<T>,
{
    let rows = part.rows(batching.size)?;
    let own = if rows.is_empty() { None } else { batching.of_rows::<T>(rows.len()) };
    let Some(own) = own else { return Ok(None) };
    let ahead = if run.parallel() > 0 { AHEAD } else { 0 };
    let (state, batching) = (plan.pass.state(), batching.clone());
    let (planned, open, members, end) = (VecDeque::new(), PlannedRows::default(), 0, None);
    Ok(Some(Box::new(PlannedBatches { plan, batching, own, rows, planned, open, members, ahead, state, end })))
}

impl<T, S, M> PlannedBatches<T, S, M>
where
    S: Position,
    M: MakeBatch<T>,
{
    /// Plans until enough is planned.
    fn plan_ahead(&mut self, cx: &mut Cx) {
        while self.end.is_none()
            && (self.planned.is_empty() || (self.members < self.ahead && self.planned.len() < MOST_BATCHES))
        {
            if let Err(error) = self.plan_batch(cx) {
                self.end = Some(Err(error));
            }
        }
    }

    /// Plans a batch, and has the elements of the part's rows expected.
    fn plan_batch(&mut self, cx: &mut Cx) -> Result<()> {
        let size = self.batching.size;
        self.open.fill(size, &mut self.plan.pass, cx)?;
        let (count, digest) = (self.open.len(), self.open.digest());
        let is_all = count < size;
        if is_all {
            self.end = Some(Ok(()));
        }
        if count == 0 || (is_all && self.batching.remainder == Remainder::Drop) {
            self.open.clear();
            return Ok(());
        }
        let recipes: Vec<Recipe> = match is_all {
            true => (0..count).map(|row| self.open.recipe(row)).collect(),
            false => self.rows.iter().map(|row| self.open.recipe(row)).collect(),
        };
        self.open.clear();
        self.expect(&recipes);
        self.planned.push_back(Planned { recipes, is_all, digest, after: self.plan.pass.state() });
        Ok(())
    }

    fn expect(&mut self, recipes: &[Recipe]) {
        for recipe in recipes {
            self.plan.make.expect(recipe);
            self.members += recipe.len();
        }
    }

    /// Makes the rows of a batch that are the part's own, or all of the last.
    fn make(&mut self, planned: &Planned<S>, cx: &mut Cx) -> Result<Dealt<M::Batch>> {
        let Planned { recipes, is_all, .. } = planned;
        let mut rows = Vec::with_capacity(recipes.len());
        for recipe in recipes {
            rows.push(self.plan.make.make(recipe, cx)?);
        }
        match is_all {
            true => self.batching.make(rows, cx).map(Dealt::Whole),
            false => Ok(Dealt::Own(self.own.make(rows, cx)?, self.rows.clone(), Some(planned.digest))),
        }
    }

    /// Expects again what is planned: a batch that failed has left some of its elements behind.
    fn expect_again(&mut self) -> Result<()> {
        self.plan.make.forget()?;
        self.members = 0;
        let planned = std::mem::take(&mut self.planned);
        planned.iter().for_each(|planned| self.expect(&planned.recipes));
        self.planned = planned;
        Ok(())
    }
}

impl<T, S, M> DatasetIterator for PlannedBatches<T, S, M>
where
    T: Send + 'static,
    S: Position,
    M: MakeBatch<T>,
{
    type Item = Dealt<M::Batch>;
    type State = S;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        self.plan_ahead(cx);
        let Some(planned) = self.planned.pop_front() else {
            return match &mut self.end {
                // It goes on behind the element that failed.
                Some(end @ Err(_)) => {
                    let error = std::mem::replace(end, Ok(()));
                    self.end = None;
                    error.map(|()| None)
                }
                _ => {
                    self.state = self.plan.pass.state();
                    Ok(None)
                }
            };
        };
        self.members -= planned.recipes.iter().map(|recipe| recipe.len()).sum::<usize>();
        let made = self.make(&planned, cx);
        if made.is_err() {
            self.expect_again()?;
        }
        self.state = planned.after;
        made.map(Some)
    }

    fn state(&self) -> S {
        self.state.clone()
    }

    fn restore(&mut self, state: S, cx: &mut Cx) -> Result<()> {
        self.planned.clear();
        self.open.clear();
        (self.members, self.end) = (0, None);
        self.plan.make.forget()?;
        self.plan.pass.restore(state.clone(), cx)?;
        self.state = state;
        Ok(())
    }
}
