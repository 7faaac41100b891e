//! Passes over the rows of a part of batches that were planned out of keys.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::Batching;
use super::dealt::{BatchPlan, Dealt, PartPass};
use super::make_batch::MakeBatch;
use super::planned_deal::PlannedDeal;
use super::{DatasetIterator, Position};
use crate::cx::Cx;
use crate::dataset::Remainder;
use crate::dataset::plan::{Plan, Recipe, digest_of, recipe};
use crate::error::{Error, Result};
use crate::exec::{Failed, Runtime};
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
    /// Where other rows are the part's own in each batch.
    deal: Option<PlannedDeal>,
    failed: Arc<Failed>,
    planned: VecDeque<Planned<S>>,
    /// Elements in those.
    members: usize,
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
    /// Their numbers; `None` if they are all rows of the last batch, which is not whole.
    rows: Option<RowNumbers>,
    plan: BatchPlan,
    after: S,
}

/// Starts a pass over the rows of `part` of the batches of what `plan` plans; `None` where a row of a batch depends on others, or on what the rows
/// are that decide whose they are.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for a part that batches do not have, and where rows shall become padding of which batches
/// do not say that.
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
    let deal = PlannedDeal::of(run.deal(), part, &*plan.make);
    if deal.is_none() && run.deal().balance().is_some() {
        return Ok(None);
    }
    if run.failed().pads() && plan.single && !own.says_padding() {
        return Err(no_mask());
    }
    let failed = run.failed().clone();
    let ahead = if run.parallel() > 0 { AHEAD } else { 0 };
    let (state, batching) = (plan.pass.state(), batching.clone());
    let (planned, members, end) = (VecDeque::new(), 0, None);
    Ok(Some(Box::new(PlannedBatches { plan, batching, own, rows, deal, failed, planned, members, ahead, state, end })))
}

#[cold]
fn no_mask() -> Error {
    let text = "elements that fail are to become padding, and `batch` does not say which of its rows are padding";
    Error::config(text).help(
        "have it write a mask (`batch_masked`, or `remainder: pad`), or pack rows, or let elements that fail be errors",
    )
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
        let mut all = Vec::with_capacity(size);
        while all.len() < size {
            let Some(stand_in) = self.plan.pass.next(cx)? else {
                self.end = Some(Ok(()));
                break;
            };
            all.push(recipe(&stand_in)?);
        }
        let is_all = all.len() < size;
        if all.is_empty() || (is_all && self.batching.remainder == Remainder::Drop) {
            return Ok(());
        }
        let mut plan = BatchPlan { digest: Some(digest_of(&all)), ..BatchPlan::default() };
        let costs = match &self.deal {
            Some(deal) => Some(deal.costs(&all, &*self.plan.make)?),
            None => None,
        };
        let rows = match (&self.deal, &costs) {
            _ if is_all => None,
            (Some(deal), Some(costs)) => {
                let (rows, gain) = deal.rows(costs)?;
                plan.gain = gain;
                Some(rows)
            }
            _ => Some(self.rows.clone()),
        };
        let recipes = match &rows {
            Some(rows) => rows.iter().map(|row| std::mem::take(&mut all[row])).collect(),
            None => {
                plan.costs = costs;
                all
            }
        };
        self.expect(&recipes);
        self.planned.push_back(Planned { recipes, rows, plan, after: self.plan.pass.state() });
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
        let Planned { recipes, rows, plan, .. } = planned;
        let mut made = Vec::with_capacity(recipes.len());
        for recipe in recipes {
            made.push(self.plan.make.make(recipe, &self.failed, cx)?);
        }
        let like = self.like(&made, recipes)?;
        let batching = if rows.is_some() { &self.own } else { &*self.batching };
        let batch = match made.iter().all(Option::is_some) {
            true => batching.make(made.into_iter().flatten().collect(), cx)?,
            false => batching.make_padded(made, like.as_ref(), cx)?,
        };
        Ok(match rows {
            Some(rows) => Dealt::Own(batch, rows.clone(), plan.clone()),
            None => Dealt::Whole(batch, plan.clone()),
        })
    }

    /// A row that shows what padding is like, if all rows have failed.
    fn like(&mut self, made: &[Option<T>], recipes: &[Recipe]) -> Result<Option<T>> {
        match recipes.first() {
            Some(recipe) if made.iter().all(Option::is_none) => match self.plan.make.sample(recipe)? {
                None => Err(Error::data(
                    "all rows of the part have failed, and so have elements behind them, which would show what padding is like",
                )),
                like => Ok(like),
            },
            _ => Ok(None),
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
        (self.members, self.end) = (0, None);
        self.plan.make.forget()?;
        self.plan.pass.restore(state.clone(), cx)?;
        self.state = state;
        Ok(())
    }
}
