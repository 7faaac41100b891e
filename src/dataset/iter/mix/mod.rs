mod edited;
mod pass;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::edited::Edited;
pub(crate) use self::edited::edited_mix;
pub use self::pass::IterMixIter;
use self::pass::{Counted, Ends};
use self::state::Entries;
pub use self::state::{Effective, MixOrigin, MixProgress, MixState};
use super::combine::{IterCombine, IterCombined};
use super::{DatasetIterator, IterDataset};
use crate::cx::StageId;
use crate::dataset::at_end::AtEnd;
use crate::dataset::plan::{Branches, Plan, PlanOf, Planning, cells_of};
use crate::dataset::run::siblings::Siblings;
use crate::dataset::weights::{Weights, component_names};
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::rng::{MixOrder, Row, Schedule, TokenTurns, Turns};

/// Mixes several `datasets`: an element of each in turn, or by [`weights`](IterMix::weights).
///
/// By default, weights are constant and count elements, and the mix ends if any dataset ends. Methods of [`IterMix`]
/// change this: [`schedule`](IterMix::schedule), [`by_tokens`](IterMix::by_tokens), [`at_end`](IterMix::at_end),
/// [`budget`](IterMix::budget).
///
/// The order of constant weights is Grain's, bit for bit: see [`MixOrder`]. DIFFERENCE: in Grain, an error of a dataset
/// ends the mix for good. Here, only the failed element is lost.
/// ```
/// use gristmill::{dataset::iter::mix, dataset::map::Range, prelude::*};
/// let ds = || [0, 100].map(|start| Range::new(start, start + 4).to_iter());
/// assert_eq!(mix(ds()).limit(3).collect()?, [0, 100, 1]);
/// assert_eq!(mix(ds()).weights([1.0, 2.0]).collect()?, [0, 100, 101, 1, 102, 103, 2]);
/// # Ok::<(), gristmill::Error>(())
/// ```
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if there are no datasets, if there are more or fewer weights than
/// datasets, or if a weight is not a finite number above 0.
pub fn mix<D: IterDataset>(datasets: impl IntoIterator<Item = D>) -> IterMix<D> {
    let parents: Vec<D> = datasets.into_iter().collect();
    let weights = Weights::LikeGrain(vec![1.0; parents.len()]);
    let order =
        WeightedTurns { weights, column: None, at_end: AtEnd::Stop, budget: BTreeMap::new(), names: Vec::new() };
    IterCombined::new(parents, order)
}

/// See [`mix`].
pub type IterMix<D> = IterCombined<Vec<D>, WeightedTurns>;

/// The order of an [`IterMix`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct WeightedTurns {
    weights: Weights,
    /// The array whose length is the number of tokens, if weights count tokens.
    column: Option<String>,
    at_end: AtEnd,
    /// Limits, by the numbers of the datasets.
    budget: BTreeMap<usize, u64>,
    /// Names of the datasets for the report, if given.
    names: Vec<String>,
}

impl<D> IterMix<D> {
    /// Sets a weight for each dataset. As in Grain, weights are truncated to about a hundredth of the smallest weight.
    pub fn weights(self, weights: impl Into<Vec<f64>>) -> Self {
        self.weighted(Weights::LikeGrain(weights.into()))
    }

    /// Sets weights that apply exactly as written: see [`MixOrder::exact`].
    pub fn exact_weights(self, weights: impl Into<Vec<f64>>) -> Self {
        self.weighted(Weights::Exact(weights.into()))
    }

    /// Sets weights that change at positions of the mix.
    ///
    /// The state contains the entries that have taken effect. It restores with another schedule if these entries are
    /// equal: entries after the state's position may be added, changed or removed. With
    /// [`accept_changes`](crate::LoaderBuilder::accept_changes), datasets may be appended that have weight 0 in all
    /// earlier entries.
    pub fn schedule(self, schedule: Schedule) -> Self {
        self.weighted(Weights::Scheduled(schedule))
    }

    setters! {
        pub(crate) weighted(weights: Weights) => combine.weights = weights;

        /// Makes weights count tokens: an element counts as many as its array `column` is long. Weights then apply
        /// exactly as written.
        ///
        /// The next element is of the dataset that is furthest below its share of all tokens, ties by the order of the
        /// datasets. A dataset exceeds its share by at most its last element. It falls below its share by at most `1 +
        /// 1/2 + … + 1/(n - 1)` elements of `n` datasets, so by one element of two datasets. Elements without the array
        /// are errors.
        ///
        /// # Cost
        /// A comparison for each dataset. A host that takes a part of the rows plans by keys with the lengths of
        /// `column`.
        pub by_tokens(column: impl Into<String>) => combine.column = Some(column.into());

        /// Sets what happens if a dataset ends. By default, the mix ends.
        pub at_end(at_end: AtEnd) => combine.at_end = at_end;
    }

    /// Ends dataset number `which` after the element with which it has reached `limit` elements, or tokens if weights
    /// count tokens. Restarts of the dataset do not reset the count.
    ///
    /// The mix then ends with [`AtEnd::Stop`]. Otherwise the weight of the dataset is divided among the others.
    pub fn budget(mut self, which: usize, limit: u64) -> Self {
        self.combine.budget.insert(which, limit);
        self
    }

    /// Sets the names of the datasets in the report. By default, datasets are named by their numbers, from 0.
    pub fn named<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.combine.names = names.into_iter().map(Into::into).collect();
        self
    }
}

impl WeightedTurns {
    /// Returns true if the position determines the order.
    fn is_plain(&self) -> bool {
        let is_constant = !matches!(self.weights, Weights::Scheduled(_));
        is_constant && self.column.is_none() && self.at_end == AtEnd::Stop && self.budget.is_empty()
    }

    /// Returns the constant weights of which a mix of `datasets` datasets consists.
    fn rows(&self, datasets: usize) -> Result<Vec<Row>> {
        let weights = match &self.weights {
            Weights::Scheduled(_) if datasets == 0 => return Err(Error::config("a mix needs at least one component")),
            Weights::Scheduled(schedule) => return schedule.rows(datasets),
            Weights::LikeGrain(weights) | Weights::Exact(weights) => weights,
        };
        if datasets != weights.len() {
            return Err(Error::config(format!("mix has {datasets} datasets and {} weights", weights.len())));
        }
        let is_rounded = matches!(self.weights, Weights::LikeGrain(_)) && self.column.is_none();
        if is_rounded { MixOrder::from_weights(weights) } else { MixOrder::exact(weights) }?;
        Ok(vec![Row { from: 0, weights: weights.as_slice().into() }])
    }

    fn check_budget(&self, datasets: usize) -> Result<()> {
        for (which, limit) in &self.budget {
            if *which >= datasets {
                return Err(Error::config(format!("mix has {datasets} datasets and a budget for dataset {which}")));
            }
            if *limit == 0 {
                return Err(Error::config(format!("the budget of dataset {which} is 0, and must be 1 or more"))
                    .help("leave the dataset out, or give it weight 0"));
            }
        }
        Ok(())
    }

    /// Starts a pass over started parents.
    fn pass<I>(&self, parents: Siblings<I>, stage: StageId, run: &Runtime) -> Result<IterMixIter<I>>
    where
        I: DatasetIterator<Item: 'static>,
    {
        self.check_budget(parents.len())?;
        let rows: Arc<[Row]> = self.rows(parents.len())?.into();
        let rounded = usize::from(matches!(self.weights, Weights::LikeGrain(_)));
        let edited = Edited::new(run, stage, &rows, rounded);
        let turns = match &self.column {
            Some(column) => Counted::Tokens(TokenTurns::new(rows)?, column.as_str().into()),
            None => Counted::Elements(Turns::new(rows, rounded)?),
        };
        let entries = match &self.weights {
            Weights::Scheduled(schedule) => Entries::new(schedule),
            Weights::LikeGrain(_) | Weights::Exact(_) => Entries::default(),
        };
        let limits = (0..parents.len()).map(|which| self.budget.get(&which).copied());
        let ends = Ends::new(self.at_end, limits.collect(), &parents);
        Ok(IterMixIter::new(parents, turns, ends, entries, self.is_plain(), (stage, edited)))
    }
}

impl<D: IterDataset> IterCombine<Vec<D>> for WeightedTurns {
    type Pass = IterMixIter<D::Iter>;

    fn name(&self) -> &'static str {
        "mix"
    }
    fn params(&self) -> String {
        let mut params = match &self.weights {
            Weights::LikeGrain(weights) => format!("{weights:?}"),
            Weights::Exact(weights) => format!("{weights:?}, exact"),
            Weights::Scheduled(schedule) => format!("schedule={schedule}"),
        };
        if let Some(column) = &self.column {
            params += &format!(", by=tokens, column={column}");
        }
        if self.at_end != AtEnd::Stop {
            params += &format!(", at_end={}", self.at_end);
        }
        if !self.budget.is_empty() {
            params += &format!(", budget={:?}", self.budget);
        }
        params
    }
    fn components(&self, datasets: usize) -> Vec<String> {
        component_names(&self.names, datasets)
    }
    fn check(&self, datasets: usize) -> Result<()> {
        self.check_budget(datasets)?;
        self.rows(datasets).map(drop)
    }
    fn start(&self, parents: Siblings<D::Iter>, stage: StageId, run: &Runtime) -> Result<Self::Pass> {
        self.pass(parents, stage, run)
    }
    fn plan(&self, parents: &Vec<D>, stage: StageId, planning: &Planning<'_>) -> Result<Option<PlanOf<IterMix<D>>>> {
        let planned = Branches::plan(parents, planning, self.column.as_deref())?;
        let Some((passes, make, chains)) = planned else { return Ok(None) };
        let pass = self.pass(Siblings::of(passes), stage, &planning.run)?;
        Ok(Some(Plan { pass: Box::new(pass), make: Box::new(make), single: true, chains }))
    }
}
