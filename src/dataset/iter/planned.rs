//! Passes over the rows of a part of batches that were planned out of keys.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::Batching;
use super::dealt::{BatchPlan, Dealt, PartPass};
use super::make_batch::MakeBatch;
use super::planned_deal::{PlannedDeal, rows_by_place};
use super::{DatasetIterator, Position};
use crate::cx::Cx;
use crate::dataset::Remainder;
use crate::dataset::plan::{Make, Plan, PlanPass, PlannedRows, Recipe};
use crate::error::{Error, Result};
use crate::exec::{Failed, Runtime};
use crate::part::{Part, RowNumbers};

/// Elements of the part's rows that are planned ahead, where somebody evaluates them ahead.
const AHEAD: usize = 4096;
/// No more batches are, however few elements those are.
const MOST_BATCHES: usize = 64;

/// The way in which batches come out of a plan, and are made of rows of type `T`.
pub(crate) trait PlanBatches<T>: Send {
    /// Type of a batch.
    type Batch: Send + 'static;

    /// Type of what a plan says of a batch, besides its rows.
    type About: Send + 'static;

    /// Plans the rows of the next batch into `rows`, out of what `pass` gives; `None` at the end. Returns the numbers of the part's own,
    /// none where each host makes all of them, and takes its own out of the batch; and what else is known of the batch.
    ///
    /// # Errors
    /// Those of `pass`. What is in `rows` then is gone on with.
    fn plan<S: Position>(
        &mut self,
        pass: &mut PlanPass<S>,
        rows: &mut PlannedRows,
        cx: &mut Cx,
    ) -> Result<Option<PlannedOwn<Self::About>>>;

    /// Makes a batch of all of its rows, or of the part's `own`, where the plan says `about` it. Rows that have failed are padding; `like` shows what that
    /// is like where all have.
    ///
    /// # Errors
    /// Where they do not go together.
    fn make(
        &mut self,
        rows: Vec<Option<T>>,
        like: Option<&T>,
        own: Option<&RowNumbers>,
        about: &Self::About,
        cx: &mut Cx,
    ) -> Result<Self::Batch>;
}

/// The numbers of the part's own rows of a planned batch, and what else is known of it.
pub(crate) type PlannedOwn<A> = (Option<RowNumbers>, A);

/// A pass over the rows of a part. Its states are those of the pass over all rows.
struct PlannedBatches<T, S, B: PlanBatches<T>> {
    plan: Plan<T, S>,
    batches: B,
    /// Where other rows are the part's own in each batch.
    deal: Option<PlannedDeal>,
    failed: Arc<Failed>,
    planned: VecDeque<Planned<S, B::About>>,
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
struct Planned<S, A> {
    recipes: Vec<Recipe>,
    /// Their numbers, where those are not all of its rows.
    own: Option<RowNumbers>,
    about: A,
    plan: BatchPlan,
    after: S,
}

/// Starts a pass over the part's rows of what `plan` plans; `deal` says whose rows are whose where `batches` do not.
pub(crate) fn pass_over_plan<T, S, B>(
    plan: Plan<T, S>,
    batches: B,
    deal: Option<PlannedDeal>,
    run: &Runtime,
) -> PartPass<B::Batch, S>
where
    T: Send + 'static,
    S: Position,
    B: PlanBatches<T> + 'static,
{
    let ahead = if run.parallel() > 0 { AHEAD } else { 0 };
    let (state, planned, open, failed) =
        (plan.pass.state(), VecDeque::new(), PlannedRows::default(), run.failed().clone());
    Box::new(PlannedBatches { plan, batches, deal, failed, planned, open, members: 0, ahead, state, end: None })
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
    let Some(own) = own else {
        let place = batching.stage.0 as usize;
        run.note_unplanned(place, |id| format!("batch (stage {id}) calls a function for all of its rows"));
        return Ok(None);
    };
    let deal = PlannedDeal::of(run.deal(), part, &*plan.make);
    if deal.is_none() && run.deal().balance().is_some() {
        return Ok(None);
    }
    if run.failed().pads() && plan.single && !own.says_padding() {
        return Err(no_mask());
    }
    Ok(Some(pass_over_plan(plan, OfSize { batching: batching.clone(), own, rows }, deal, run)))
}

#[cold]
fn no_mask() -> Error {
    let text = "elements that fail are to become padding, and `batch` does not say which of its rows are padding";
    Error::config(text).help(
        "have it write a mask (`batch_masked`, or `remainder: pad`), or pack rows, or let elements that fail be errors",
    )
}

/// Batches of so many elements each.
struct OfSize<M> {
    batching: Arc<Batching<M>>,
    /// The same for the part's rows alone.
    own: Batching<M>,
    rows: RowNumbers,
}

impl<T, M: MakeBatch<T>> PlanBatches<T> for OfSize<M> {
    type Batch = M::Batch;
    type About = ();

    fn plan<S: Position>(
        &mut self,
        pass: &mut PlanPass<S>,
        rows: &mut PlannedRows,
        cx: &mut Cx,
    ) -> Result<Option<PlannedOwn<()>>> {
        let size = self.batching.size;
        rows.fill(size, pass, cx)?;
        let is_short = rows.len() < size;
        if rows.len() == 0 || (is_short && self.batching.remainder == Remainder::Drop) {
            rows.clear();
            return Ok(None);
        }
        Ok(Some(((!is_short).then(|| self.rows.clone()), ())))
    }

    fn make(
        &mut self,
        rows: Vec<Option<T>>,
        like: Option<&T>,
        own: Option<&RowNumbers>,
        (): &(),
        cx: &mut Cx,
    ) -> Result<M::Batch> {
        let batching = if own.is_some() { &self.own } else { &*self.batching };
        match rows.iter().all(Option::is_some) {
            true => batching.make(rows.into_iter().flatten().collect(), cx),
            false => batching.make_padded(rows, like, cx),
        }
    }
}

impl<T, S, B> PlannedBatches<T, S, B>
where
    S: Position,
    B: PlanBatches<T>,
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
        let (batches, pass, open) = (&mut self.batches, &mut self.plan.pass, &mut self.open);
        let Some((own, about)) = cx.planning(|cx| batches.plan(pass, open, cx))? else {
            self.end = Some(Ok(()));
            return Ok(());
        };
        let rows = std::mem::take(&mut self.open);
        let mut plan = BatchPlan { digest: Some(rows.digest()), ..BatchPlan::default() };
        let (own, recipes) = match &self.deal {
            Some(deal) => dealt(deal, own, &rows, &*self.plan.make, &mut plan)?,
            None => {
                let recipes = match &own {
                    None => all(&rows),
                    Some(own) => own.iter().map(|row| rows.recipe(row)).collect(),
                };
                (own, recipes)
            }
        };
        // Its memory serves the next.
        self.open = rows;
        self.open.clear();
        self.expect(&recipes);
        self.planned.push_back(Planned { recipes, own, about, plan, after: self.plan.pass.state() });
        Ok(())
    }

    fn expect(&mut self, recipes: &[Recipe]) {
        for recipe in recipes {
            self.plan.make.expect(recipe);
            self.members += recipe.len();
        }
    }

    /// Makes the rows of a batch that are the part's own, or all of one that is not whole.
    fn make(&mut self, planned: Planned<S, B::About>, cx: &mut Cx) -> Result<Dealt<B::Batch>> {
        let Planned { recipes, own, about, plan, .. } = planned;
        let mut made = Vec::with_capacity(recipes.len());
        for recipe in &recipes {
            made.push(self.plan.make.make(recipe, &self.failed, cx)?);
        }
        let like = self.like(&made, &recipes)?;
        let batch = self.batches.make(made, like.as_ref(), own.as_ref(), &about, cx)?;
        Ok(match own {
            Some(own) => Dealt::Own(batch, own, plan),
            None => Dealt::Whole(batch, plan),
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

/// What all of `rows` are made of.
fn all(rows: &PlannedRows) -> Vec<Recipe> {
    (0..rows.len()).map(|row| rows.recipe(row)).collect()
}

/// Deals the rows of a batch by what they cost, or where they come from; those of one of which the part has no rows of its `own` are dealt where it is handed over.
fn dealt<T>(
    deal: &PlannedDeal,
    own: Option<RowNumbers>,
    rows: &PlannedRows,
    make: &dyn Make<T>,
    plan: &mut BatchPlan,
) -> Result<(Option<RowNumbers>, Vec<Recipe>)> {
    let mut all = all(rows);
    let own = match deal {
        PlannedDeal::ByPlace(_) if own.is_none() => return Ok((None, all)),
        PlannedDeal::ByPlace(part) => rows_by_place(part, &all)?,
        PlannedDeal::ByCost(deal) => {
            let costs = deal.costs(&all, make)?;
            if own.is_none() {
                plan.costs = Some(costs);
                return Ok((None, all));
            }
            let (own, gain) = deal.rows(&costs)?;
            plan.gain = gain;
            own
        }
    };
    let recipes = own.iter().filter_map(|row| all.get_mut(row).map(std::mem::take)).collect();
    Ok((Some(own), recipes))
}

impl<T, S, B> DatasetIterator for PlannedBatches<T, S, B>
where
    T: Send + 'static,
    S: Position,
    B: PlanBatches<T>,
{
    type Item = Dealt<B::Batch>;
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
        let after = planned.after.clone();
        let made = self.make(planned, cx);
        if made.is_err() {
            self.expect_again()?;
        }
        self.state = after;
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
