//! Passes over the rows of a part, for batches that were planned from keys.

use std::collections::VecDeque;
use std::sync::Arc;

use super::deal::{PlannedDeal, rows_by_place};
use super::{Census, Make, Plan, PlanPass, PlannedBatch, PlannedRows, Recipe};
use crate::cx::Cx;
use crate::dataset::Remainder;
use crate::dataset::iter::{BatchPlan, Batching, DatasetIterator, Dealt, MakeBatch, PartPass, Position};
use crate::edits::{BatchNumbers, BatchSize};
use crate::error::{Error, Result};
use crate::exec::{Failed, PlansOnly, Runtime};
use crate::part::{Part, RowNumbers};

/// Elements of the part's rows that are planned ahead, if threads or workers evaluate elements ahead.
const AHEAD: usize = 4096;
/// Limit of planned batches, however few elements they have.
const MOST_BATCHES: usize = 64;

/// Plans batches, and makes them from rows of type `T`.
pub(crate) trait PlanBatches<T>: Send {
    /// Type of a batch.
    type Batch: Send + 'static;

    /// Facts about a planned batch, besides its rows.
    type About: Send + 'static;

    /// Plans the rows of the next batch from `pass` into `rows`. Returns `None` at the end.
    ///
    /// Returns the numbers of the part's own rows, and further facts about the batch. The numbers are `None` if every
    /// host makes all rows and takes its own from the batch.
    ///
    /// # Errors
    /// Errors of `pass`. The next call continues with the content of `rows`.
    fn plan<S: Position>(
        &mut self,
        pass: &mut PlanPass<S>,
        rows: &mut PlannedRows,
        cx: &mut Cx,
    ) -> Result<Option<PlannedOwn<Self::About>>>;

    /// Returns the number of rows in a batch with this number of planned rows: more if the batch is padded.
    fn made(&self, planned: usize, about: &Self::About) -> usize {
        let _ = about;
        planned
    }

    /// Makes a batch of all rows, or of the part's `own` rows. `about` contains the plan's facts about the batch.
    ///
    /// Failed rows become padding. If all rows have failed, `like` is the sample for it.
    ///
    /// # Errors
    /// The rows cannot be joined.
    fn make(
        &mut self,
        rows: Vec<Option<T>>,
        like: Option<&T>,
        own: Option<&RowNumbers>,
        about: &Self::About,
        cx: &mut Cx,
    ) -> Result<Self::Batch>;
}

/// Numbers of the part's own rows in a planned batch, and further facts about the batch.
pub(crate) type PlannedOwn<A> = (Option<RowNumbers>, A);

/// A pass over the rows of a part. Has the states of the pass over all rows.
struct PlannedBatches<T, S, B: PlanBatches<T>> {
    plan: Plan<T, S>,
    batches: B,
    /// Deal that replaces the row numbers from `batches`, if any.
    deal: Option<PlannedDeal>,
    failed: Arc<Failed>,
    planned: VecDeque<Planned<S, B::About>>,
    /// Elements in `planned`.
    members: usize,
    /// Numbers of the batches in the run.
    numbers: BatchNumbers,
    /// Rows of the next batch. Contains rows between two calls only if planning has failed.
    open: PlannedRows,
    /// Number of elements to plan ahead.
    ahead: usize,
    /// Position after the last yielded batch.
    state: S,
    /// End of the plan, once it is known: an error, or no more rows.
    end: Option<Result<()>>,
    /// See [`Runtime::only_planning`].
    plans_only: Option<Arc<PlansOnly>>,
    /// Census of the batches, if their contents are counted.
    census: Option<Arc<Census>>,
}

/// A planned batch: the recipes of its rows, and the position after it.
struct Planned<S, A> {
    recipes: Vec<Recipe>,
    /// Numbers of the rows; `None` if the recipes cover all rows of the batch.
    own: Option<RowNumbers>,
    about: A,
    plan: BatchPlan,
    after: S,
}

/// Starts a pass over the part's rows of `plan`. `deal`, if present, assigns rows to parts in place
/// of `batches`.
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
    let (plans_only, census) = (run.plans_only().cloned(), Census::of(run));
    Box::new(PlannedBatches {
        plan,
        batches,
        deal,
        failed,
        planned,
        numbers: BatchNumbers::new(run.edits().clone()),
        open,
        members: 0,
        ahead,
        state,
        end: None,
        plans_only,
        census,
    })
}

impl<M> Batching<M> {
    /// Starts a pass over the rows of `part` in batches of `plan`.
    ///
    /// Returns `None` if a row depends on other rows of its batch, or if the assignment of rows depends on their content.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if batches do not divide into such parts. Also if failed rows
    /// become padding and batches do not mark padding.
    pub(in crate::dataset) fn of_plan<T, S>(
        self: &Arc<Self>,
        plan: Plan<T, S>,
        run: &Runtime,
        part: &Part,
    ) -> Result<Option<PartPass<M::Batch, S>>>
    where
        T: Send + 'static,
        S: Position,
        M: MakeBatch<T>,
    {
        let rows = part.rows(self.size)?;
        let own = if rows.is_empty() { None } else { self.of_rows::<T>(rows.len()) };
        if own.is_none() && run.plans_only().is_some() {
            let batches = OfSize { batching: self.clone(), size: self.size_in(run), own, part: part.clone() };
            return Ok(Some(pass_over_plan(plan, batches, None, run)));
        }
        let Some(own) = own else {
            let place = self.stage.0 as usize;
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
        let batches = OfSize { batching: self.clone(), size: self.size_in(run), own: Some(own), part: part.clone() };
        Ok(Some(pass_over_plan(plan, batches, deal, run)))
    }
}

#[cold]
fn no_mask() -> Error {
    let text = "failed elements become padding, but `batch` does not mark its rows of padding";
    Error::config(text)
        .help("write a mask (`batch_masked`, or `remainder: pad`), pack rows, or set `on_failed_element: error`")
}

/// Batches of a number of elements, which edits may change.
struct OfSize<M> {
    batching: Arc<Batching<M>>,
    size: BatchSize,
    /// Rules for batches of the part's rows alone; `None` if a function makes batches, and only plans are requested.
    own: Option<Batching<M>>,
    part: Part,
}

impl<T, M: MakeBatch<T>> PlanBatches<T> for OfSize<M> {
    type Batch = M::Batch;
    /// The size of a whole batch.
    type About = usize;

    fn plan<S: Position>(
        &mut self,
        pass: &mut PlanPass<S>,
        rows: &mut PlannedRows,
        cx: &mut Cx,
    ) -> Result<Option<PlannedOwn<usize>>> {
        let size = self.size.now(cx);
        rows.fill(size, pass, cx)?;
        let is_short = rows.len() < size;
        if rows.len() == 0 || (is_short && self.batching.remainder == Remainder::Drop) {
            rows.clear();
            return Ok(None);
        }
        let own = if is_short { None } else { Some(self.part.rows(size)?) };
        Ok(Some((own, size)))
    }

    fn made(&self, planned: usize, size: &usize) -> usize {
        if self.batching.says_padding::<T>() { *size } else { planned }
    }

    fn make(
        &mut self,
        rows: Vec<Option<T>>,
        like: Option<&T>,
        own: Option<&RowNumbers>,
        size: &usize,
        cx: &mut Cx,
    ) -> Result<M::Batch> {
        let (batching, size) = match (own, &self.own) {
            (Some(rows), Some(own)) => (own, rows.len()),
            _ => (&*self.batching, *size),
        };
        match rows.iter().all(Option::is_some) {
            true => batching.make(rows.into_iter().flatten().collect(), size, cx),
            false => batching.make_padded(rows, like, size, cx),
        }
    }
}

impl<T, S, B> PlannedBatches<T, S, B>
where
    S: Position,
    B: PlanBatches<T>,
{
    /// Plans batches until enough elements or batches are planned, or the plan ends.
    fn plan_ahead(&mut self, cx: &mut Cx) {
        while self.end.is_none()
            && (self.planned.is_empty() || (self.members < self.ahead && self.planned.len() < MOST_BATCHES))
        {
            if let Err(error) = self.plan_batch(cx) {
                self.end = Some(Err(error));
            }
        }
    }

    /// Plans a batch, and announces the elements of the part's rows to the maker.
    fn plan_batch(&mut self, cx: &mut Cx) -> Result<()> {
        let (batches, pass, open) = (&mut self.batches, &mut self.plan.pass, &mut self.open);
        let numbers = &mut self.numbers;
        let planned = cx.planning_ahead(|cx| {
            numbers.begin(cx);
            let planned = cx.planning(|cx| batches.plan(pass, open, cx));
            if let Ok(Some(_)) = planned {
                numbers.end(cx);
            }
            planned
        })?;
        let Some((own, about)) = planned else {
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
        // Reuses the memory for the next batch.
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

    /// Plans a batch, and makes no elements. Returns `None` at the end.
    fn plan_alone(&mut self, spans: bool, cx: &mut Cx) -> Result<Option<PlannedBatch>> {
        let (batches, pass, open) = (&mut self.batches, &mut self.plan.pass, &mut self.open);
        let planned = cx.planning(|cx| batches.plan(pass, open, cx))?;
        self.state = self.plan.pass.state();
        let Some((_, about)) = planned else { return Ok(None) };
        let Some(census) = &self.census else {
            return PlannedBatch::new(std::mem::take(&mut self.open), &*self.plan.make, spans).map(Some);
        };
        let counted = census.count(&self.open, self.batches.made(self.open.len(), &about), &*self.plan.make);
        self.open.clear();
        Ok(Some(PlannedBatch::counted(counted?)))
    }

    /// Makes the part's own rows of a batch, or all rows if the plan assigned none.
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

    /// Returns a sample row for padding, if all rows have failed.
    fn like(&mut self, made: &[Option<T>], recipes: &[Recipe]) -> Result<Option<T>> {
        match recipes.first() {
            Some(recipe) if made.iter().all(Option::is_none) => match self.plan.make.sample(recipe)? {
                None => Err(Error::data(
                    "all rows of the part failed, and so did the elements after them, so the shape of the padding is unknown",
                )),
                like => Ok(like),
            },
            _ => Ok(None),
        }
    }

    /// Announces all planned batches again, because a failed batch leaves announced elements in the maker.
    fn expect_again(&mut self) -> Result<()> {
        self.plan.make.forget()?;
        self.members = 0;
        let planned = std::mem::take(&mut self.planned);
        planned.iter().for_each(|planned| self.expect(&planned.recipes));
        self.planned = planned;
        Ok(())
    }
}

/// Returns the recipes of all `rows`.
fn all(rows: &PlannedRows) -> Vec<Recipe> {
    (0..rows.len()).map(|row| rows.recipe(row)).collect()
}

/// Deals the rows of a batch by cost or by place. If `own` is `None`, returns all rows, dealt at delivery.
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
        if let Some(plans) = &self.plans_only {
            let spans = plans.spans();
            return Ok(self.plan_alone(spans, cx)?.map(Dealt::Planned));
        }
        self.plan_ahead(cx);
        let Some(planned) = self.planned.pop_front() else {
            return match &mut self.end {
                // The next call continues after the failed element.
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
        self.numbers.forget();
        self.plan.make.forget()?;
        self.plan.pass.restore(state.clone(), cx)?;
        self.state = state;
        Ok(())
    }
}
