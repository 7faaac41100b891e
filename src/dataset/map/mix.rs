use super::parents::Parents;
use super::{Many, MapDataset};
use crate::cx::Cx;
use crate::dataset::node::{Describe, Indices, Moves, Node};
use crate::dataset::run::upcoming::Upcoming;
use crate::dataset::stage::{Role, Stage};
use crate::element::{Name, Ragged};
use crate::error::{Error, Result};
use crate::rng::MixOrder;

/// Several datasets interleaved by weight, evenly at every scale and without randomness: Grain's `mix`.
///
/// The first `k` elements contain each dataset's share of `k`, rounded up or down. The mix has the largest length at
/// which no element occurs twice. After that length, each dataset continues at its next index: a longer dataset does
/// not restart. Use [`boxed`](MapDataset::boxed) to mix datasets of different types.
///
/// ```
/// use gristmill::{MapDataset, dataset::map::{Mix, Range}};
/// let parts = vec![Range::new(0, 4), Range::new(100, 104)];
/// assert_eq!(Mix::new(parts.clone()).collect()?, [0, 100, 1, 101, 2, 102, 3, 103]);
/// assert_eq!(Mix::new(parts).weights([1.0, 3.0]).collect()?, [0, 100, 101, 102, 1]);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// [`check`](Describe::check) returns an [`ErrorKind::Config`](crate::ErrorKind::Config) error for an empty list, an empty
/// dataset, and weights other than one finite number above 0 per dataset.
///
/// # Cost
/// One division per dataset, up to the chosen dataset.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Mix<D> {
    parents: Parents<D>,
    weights: Weights,
    plan: Option<Plan>,
}

#[derive(Clone, Debug)]
enum Weights {
    Equal,
    LikeGrain(Vec<f64>),
    Exact(Vec<f64>),
}

#[derive(Clone, Debug)]
struct Plan {
    order: MixOrder,
    len: u64,
}

impl<D: MapDataset> Mix<D> {
    /// Mixes equal numbers of elements of all `datasets`.
    pub fn new(datasets: Vec<D>) -> Self {
        Self { parents: Parents::new(datasets), weights: Weights::Equal, plan: None }.planned()
    }

    /// Sets the weight of each dataset, rounded like Grain: down to multiples of a hundredth of the smallest weight.
    pub fn weights(mut self, weights: impl Into<Vec<f64>>) -> Self {
        self.weights = Weights::LikeGrain(weights.into());
        self.planned()
    }

    /// Sets the exact weight of each dataset.
    ///
    /// DIFFERENCE: Grain has only rounded weights. It rounds 0.29 to 0.71 to 100 to 244, so 10 million elements contain
    /// 7,000 too many of the first dataset. Here the ratio is 29 to 71.
    pub fn exact_weights(mut self, weights: impl Into<Vec<f64>>) -> Self {
        self.weights = Weights::Exact(weights.into());
        self.planned()
    }

    /// Plans the mix. If that fails, the mix is empty and `check` returns the error.
    fn planned(mut self) -> Self {
        self.plan = self.plan().ok();
        self
    }

    fn plan(&self) -> Result<Plan> {
        let order = match &self.weights {
            Weights::Equal => MixOrder::from_weights(&vec![1.0; self.parents.count()])?,
            Weights::LikeGrain(weights) => MixOrder::from_weights(weights)?,
            Weights::Exact(weights) => MixOrder::exact(weights)?,
        };
        let lens: Vec<u64> = self.parents.lens().collect();
        Ok(Plan { len: order.len(&lens)?, order })
    }
}

impl<D: MapDataset> Stage for Mix<D> {
    fn node(&self) -> Node<'_> {
        Node { describe: self, is_native: true, indices: Indices::Moved(self), ..Node::new("mix", Role::Order) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.parents.stages()
    }
}

impl<D: MapDataset> Describe for Mix<D> {
    fn params(&self) -> String {
        let count = self.parents.count();
        match &self.weights {
            Weights::Equal => count.to_string(),
            Weights::LikeGrain(weights) => format!("{count}, weights={weights:?}"),
            Weights::Exact(weights) => format!("{count}, exact_weights={weights:?}"),
        }
    }
    fn check(&self) -> Result<()> {
        if self.parents.count() == 0 {
            return Err(Error::config("the number of datasets to mix is 0, and must be 1 or more"));
        }
        self.plan().map(drop)
    }
}

impl<D: MapDataset> Moves for Mix<D> {
    fn will_read(&self, next: Upcoming<'_>) {
        if let Some(plan) = &self.plan {
            let places: Vec<_> = next.indices().iter().map(|&index| plan.order.at(index)).collect();
            self.parents.will_read(&places, next);
        }
    }
}

impl<D: MapDataset> MapDataset for Mix<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.plan.as_ref().map_or(0, |plan| plan.len)
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let Some(plan) = &self.plan else { return Ok(None) };
        let (which, at) = cx.consumed(self.parents.stage, || plan.order.at(index));
        self.parents.pass(which, at, cx)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
        let Some(plan) = &self.plan else { return Many::one_by_one(indices, |_| Ok(None)) };
        let places = || indices.iter().map(|&index| plan.order.at(index)).collect::<Vec<_>>();
        let places = cx.consumed_many(self.parents.stage, indices.len(), places);
        self.parents.pass_many(&places, cx)
    }

    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<D::Item>> {
        self.parents.get_records(source, records, cx)
    }

    fn get_ragged_records(&self, source: usize, records: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        self.parents.get_ragged_records(source, records, names, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::INFINITE;
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
}
