use super::MapDataset;
use super::combine::{Combine, Combined};
use super::parents::Parents;
use crate::dataset::INFINITE;
use crate::dataset::at_end::AtEnd;
use crate::dataset::weights::{Weights, component_names};
use crate::error::{Error, Result};
use crate::rng::{MixOrder, PiecewiseOrder, Schedule};

/// Several datasets interleaved by weight, evenly at every scale and without randomness: Grain's `mix`.
///
/// The first `k` elements contain each dataset's share of `k`, rounded up or down. The mix has the largest length at
/// which no element occurs twice. After that length, each dataset continues at its next index: a longer dataset does
/// not restart. Use [`boxed`](super::MapDatasetExt::boxed) to mix datasets of different types.
///
/// ```
/// use gristmill::{dataset::map::{Mix, Range}, prelude::*};
/// let parts = vec![Range::new(0, 4), Range::new(100, 104)];
/// assert_eq!(Mix::new(parts.clone()).collect()?, [0, 100, 1, 101, 2, 102, 3, 103]);
/// assert_eq!(Mix::new(parts).weights([1.0, 3.0]).collect()?, [0, 100, 101, 102, 1]);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// [`check`](crate::dataset::Describe::check) returns an [`ErrorKind::Config`](crate::ErrorKind::Config) error for an empty list, an empty
/// dataset, and weights other than one finite number above 0 per dataset.
///
/// An index cannot depend on the lengths of elements, so weights count elements. To count tokens, mix streams:
/// [`iter::mix`](crate::dataset::iter::mix).
///
/// # Cost
/// One division per dataset, up to the chosen dataset. A schedule adds a binary search over its changes.
pub type Mix<D> = Combined<D, WeightedChoice>;

/// The choice of [`Mix`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct WeightedChoice {
    /// `None` if all are equal.
    weights: Option<Weights>,
    at_end: AtEnd,
    /// Names of the datasets for the report, if given.
    names: Vec<String>,
    plan: Option<Plan>,
}

#[derive(Clone, Debug)]
struct Plan {
    order: Order,
    len: u64,
}

#[derive(Clone, Debug)]
enum Order {
    Constant(MixOrder),
    Piecewise(PiecewiseOrder),
}

impl<D: MapDataset> Mix<D> {
    /// Mixes equal numbers of elements of all `datasets`.
    pub fn new(datasets: Vec<D>) -> Self {
        let combine = WeightedChoice { weights: None, at_end: AtEnd::Stop, names: Vec::new(), plan: None };
        Self { parents: Parents::new(datasets), combine }.planned()
    }

    /// Sets the weight of each dataset, rounded like Grain: down to multiples of a hundredth of the smallest weight.
    pub fn weights(self, weights: impl Into<Vec<f64>>) -> Self {
        self.weighted(Weights::LikeGrain(weights.into()))
    }

    /// Sets the exact weight of each dataset.
    ///
    /// DIFFERENCE: Grain has only rounded weights. It rounds 0.29 to 0.71 to 100 to 244, so 10 million elements contain
    /// 7,000 too many of the first dataset. Here the ratio is 29 to 71.
    pub fn exact_weights(self, weights: impl Into<Vec<f64>>) -> Self {
        self.weighted(Weights::Exact(weights.into()))
    }

    /// Sets weights that change at positions of the mix. The mix ends before the first index at which a dataset has too
    /// few elements.
    ///
    /// The schedule is part of the fingerprint. In streams, a state also restores with later entries that have changed:
    /// see [`IterMix::schedule`](crate::dataset::iter::IterMix::schedule).
    pub fn schedule(self, schedule: Schedule) -> Self {
        self.weighted(Weights::Scheduled(schedule))
    }

    pub(crate) fn weighted(mut self, weights: Weights) -> Self {
        self.combine.weights = Some(weights);
        self.planned()
    }

    /// Sets what happens if a dataset ends. [`AtEnd::Repeat`] makes the mix infinite: each dataset continues with its next
    /// epoch.
    ///
    /// [`check`](crate::dataset::Describe::check) returns an [`ErrorKind::Config`](crate::ErrorKind::Config) error for
    /// [`AtEnd::Redistribute`], which streams have.
    pub fn at_end(mut self, at_end: AtEnd) -> Self {
        self.combine.at_end = at_end;
        self.planned()
    }

    /// Sets the names of the datasets in the report. By default, datasets are named by their numbers, from 0.
    pub fn named<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.combine.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Plans the mix. If that fails, the mix is empty and `check` returns the error.
    fn planned(mut self) -> Self {
        self.combine.plan = self.combine.plan(&self.parents.lens().collect::<Vec<_>>()).ok();
        self
    }
}

impl WeightedChoice {
    fn plan(&self, lens: &[u64]) -> Result<Plan> {
        let count = lens.len();
        let lens: Vec<u64> = match self.at_end {
            AtEnd::Stop => lens.to_vec(),
            AtEnd::Repeat => lens.iter().map(|&len| if len == 0 { 0 } else { INFINITE }).collect(),
            AtEnd::Redistribute => {
                return Err(Error::config("a mix with random access cannot divide the weight of a dataset that ends")
                    .help("convert the datasets to streams first: `IterDataset.mix` in Python, `dataset::iter::mix` in Rust"));
            }
        };
        let order = match &self.weights {
            None => MixOrder::from_weights(&vec![1.0; count])?,
            Some(Weights::LikeGrain(weights)) => MixOrder::from_weights(weights)?,
            Some(Weights::Exact(weights)) => MixOrder::exact(weights)?,
            Some(Weights::Scheduled(schedule)) => {
                let order = PiecewiseOrder::new(schedule, count)?;
                return Ok(Plan { len: order.len(&lens)?, order: Order::Piecewise(order) });
            }
        };
        Ok(Plan { len: order.len(&lens)?, order: Order::Constant(order) })
    }
}

impl Combine for WeightedChoice {
    const IS_NATIVE: bool = true;

    facts! { name: "mix" }

    fn params(&self, count: usize) -> String {
        let at_end = if self.at_end == AtEnd::Stop { String::new() } else { format!(", at_end={}", self.at_end) };
        match &self.weights {
            None => format!("{count}{at_end}"),
            Some(Weights::LikeGrain(weights)) => format!("{count}, weights={weights:?}{at_end}"),
            Some(Weights::Exact(weights)) => format!("{count}, exact_weights={weights:?}{at_end}"),
            Some(Weights::Scheduled(schedule)) => format!("{count}, schedule={schedule}{at_end}"),
        }
    }
    fn components(&self, count: usize) -> Vec<String> {
        component_names(&self.names, count)
    }
    fn len(&self) -> u64 {
        self.plan.as_ref().map_or(0, |plan| plan.len)
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<(usize, u64)>> {
        Ok(self.plan.as_ref().map(|plan| match &plan.order {
            Order::Constant(order) => order.at(index),
            Order::Piecewise(order) => order.at(index),
        }))
    }
    fn inverse(&self, which: usize, place: u64) -> Option<u64> {
        match &self.plan.as_ref()?.order {
            Order::Constant(order) => order.index_of(which, place),
            Order::Piecewise(order) => order.index_of(which, place),
        }
    }
    fn check(&self, lens: &[u64]) -> Result<()> {
        if lens.is_empty() {
            return Err(Error::config("the number of datasets to mix is 0, and must be 1 or more"));
        }
        self.plan(lens).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::cx::Cx;
    use crate::dataset::Describe;
    use crate::dataset::map::Range;

    #[test]
    fn shares_are_even_and_the_shortest_ends_it() {
        let ds = Mix::new(vec![Range::new(0, 3), Range::new(10, 17)]);
        assert_eq!(ds.collect().unwrap(), [0, 10, 1, 11, 2, 12]);
        let ds = ds.weights([1.0, 2.0]);
        assert_eq!(ds.collect().unwrap(), [0, 10, 11, 1, 12, 13, 2, 14, 15]);
        assert_eq!(ds.params(), "2, weights=[1.0, 2.0]");
    }

    #[test]
    fn behind_its_length_every_part_goes_on() {
        let ds = Mix::new(vec![Range::new(0, 3), Range::new(10, 17)]).repeat(2);
        assert_eq!(ds.collect().unwrap(), [0, 10, 1, 11, 2, 12, 0, 13, 1, 14, 2, 15]);
    }

    #[test]
    fn a_part_without_end_waits_for_those_that_have_one() {
        let forever = |start| Range::new(start, start + 2).repeat(None);
        assert_eq!(Mix::new(vec![forever(0), forever(10)]).len(), INFINITE);
        let one = Mix::new(vec![forever(0).slice(..3).boxed(), forever(10).boxed()]);
        assert_eq!(one.collect().unwrap(), [0, 10, 1, 11, 0, 10]);
    }

    #[test]
    fn what_cannot_be_mixed_is_refused() {
        let two = || Mix::new(vec![Range::new(0, 3), Range::new(0, 3)]);
        for bad in [two().weights([1.0]), two().weights([1.0, 0.0]), two().exact_weights([1.0, f64::NAN])] {
            assert_eq!(bad.check().unwrap_err().kind(), crate::ErrorKind::Config);
            assert_eq!((bad.len(), bad.get(0, &mut Cx::default()).unwrap()), (0, None));
        }
        assert!(Mix::new(vec![Range::new(0, 3), Range::new(0, 0)]).check().is_err());
        assert!(Mix::new(Vec::<Range>::new()).check().is_err());
        assert!(two().weights([1.0]).weights([1.0, 5.0]).check().is_ok());
    }

    #[test]
    fn weights_change_at_positions() {
        let schedule = Schedule::new([1.0, 0.0]).then(3, [0.0, 1.0]).then(5, [1.0, 1.0]);
        let ds = Mix::new(vec![Range::new(0, 5), Range::new(10, 99)]).schedule(schedule);
        assert_eq!(ds.collect().unwrap(), [0, 1, 2, 10, 11, 3, 12, 4, 13]);
        assert_eq!(ds.params(), "2, schedule={0: [1.0]; 3: [0.0, 1.0]; 5: [1.0, 1.0]}");
        assert_eq!((ds.get(20, &mut Cx::default()).unwrap(), ds.len()), (Some(19), 9));
        assert!(Mix::new(Vec::<Range>::new()).schedule(Schedule::new([])).check().is_err());
    }

    #[test]
    fn datasets_repeat_or_end_the_mix() {
        let two = || Mix::new(vec![Range::new(0, 2), Range::new(10, 13)]);
        let ds = two().at_end(AtEnd::Repeat);
        assert_eq!((ds.len(), ds.params()), (INFINITE, "2, at_end=repeat".to_owned()));
        assert_eq!(ds.slice(..8).collect().unwrap(), [0, 10, 1, 11, 0, 12, 1, 10]);
        let error = two().at_end(AtEnd::Redistribute).check().unwrap_err();
        assert!(error.help_text().unwrap().contains("`IterDataset.mix`"), "{error}");
        let empty = Mix::new(vec![Range::new(0, 2), Range::new(0, 0)]).at_end(AtEnd::Repeat);
        assert!(empty.check().is_err());
    }
}
