use serde::{Deserialize, Serialize};

use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::memory::Memory;
use crate::dataset::node::{Describe, Node};
use crate::dataset::plan::{Branches, Plan, PlanOf, Planning};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::run::siblings::Siblings;
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::rng::{MixCursor, MixOrder};

/// Mixes several `datasets`: an element of each in turn, or by [`weights`](IterMix::weights). Ends if any dataset ends.
///
/// The order is Grain's, bit for bit: see [`MixOrder`]. DIFFERENCE: in Grain, an error of a dataset ends the mix for
/// good. Here, only the failed element is lost.
/// ```
/// use gristmill::{IterDataset, MapDataset, dataset::iter::mix, dataset::map::Range};
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
    let nodes: Vec<&dyn Stage> = parents.iter().map(|p| p as &dyn Stage).collect();
    let stage = stage_after(&nodes);
    let weights = vec![1.0; parents.len()];
    IterMix { parents, weights, exact: false, stage }
}

/// See [`mix`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct IterMix<D> {
    parents: Vec<D>,
    weights: Vec<f64>,
    exact: bool,
    stage: StageId,
}

impl<D> IterMix<D> {
    /// Sets a weight for each dataset. As in Grain, weights are truncated to about a hundredth of the smallest weight.
    pub fn weights(mut self, weights: impl Into<Vec<f64>>) -> Self {
        (self.weights, self.exact) = (weights.into(), false);
        self
    }

    /// Sets weights that apply exactly as written: see [`MixOrder::exact`].
    pub fn exact_weights(mut self, weights: impl Into<Vec<f64>>) -> Self {
        (self.weights, self.exact) = (weights.into(), true);
        self
    }

    fn order(&self) -> Result<MixOrder> {
        let (datasets, weights) = (self.parents.len(), self.weights.len());
        if datasets != weights {
            return Err(Error::config(format!("mix has {datasets} datasets and {weights} weights")));
        }
        if self.exact { MixOrder::exact(&self.weights) } else { MixOrder::from_weights(&self.weights) }
    }
}

impl<D: Stage> Stage for IterMix<D> {
    fn node(&self) -> Node<'_> {
        Node { describe: self, memory: Some(Memory::NOTHING), ..Node::new("mix", Role::Stateful) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.parents.iter().map(|p| p as &dyn Stage).collect()
    }
}

impl<D> Describe for IterMix<D> {
    fn params(&self) -> String {
        format!("{:?}{}", self.weights, if self.exact { ", exact" } else { "" })
    }
    fn check(&self) -> Result<()> {
        self.order().map(drop)
    }
}

impl<D: IterDataset> IterDataset for IterMix<D> {
    type Item = D::Item;
    type Iter = IterMixIter<D::Iter>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let order = self.order()?;
        let parents = Siblings::start(&self.parents, run)?;
        Ok(IterMixIter { parents, cursor: order.cursor(0), order, stop: false, stage: self.stage })
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        let order = self.order()?;
        let Some((passes, make, leaves)) = Branches::plan(&self.parents, planning)? else { return Ok(None) };
        let parents = Siblings::of(passes);
        let pass = IterMixIter { parents, cursor: order.cursor(0), order, stop: false, stage: self.stage };
        Ok(Some(Plan { pass: Box::new(pass), make: Box::new(make), single: true, leaves }))
    }
}

/// A pass over [`IterMix`].
pub struct IterMixIter<I> {
    parents: Siblings<I>,
    order: MixOrder,
    cursor: MixCursor,
    stop: bool,
    stage: StageId,
}

/// Position of an [`IterMixIter`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixState<S> {
    /// Position of each parent.
    pub parents: Vec<S>,
    /// Next position in the mix.
    pub index: u64,
    /// True if a parent has ended.
    pub stop: bool,
}

impl<I: DatasetIterator> DatasetIterator for IterMixIter<I> {
    type Item = I::Item;
    type State = MixState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        if self.stop {
            return Ok(None);
        }
        let element = match self.cursor.next() {
            Some((which, _)) => self.parents.next(which, cx)?,
            None => None,
        };
        self.stop = element.is_none();
        if !self.stop {
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }

    fn state(&self) -> Self::State {
        MixState { parents: self.parents.states(), index: self.cursor.position(), stop: self.stop }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.parents.restore(state.parents, cx).map_err(|e| cx.blame(self.stage, "mix", e))?;
        self.cursor = self.order.cursor(state.index);
        self.stop = state.stop;
        Ok(())
    }
}

debug_name!(IterMixIter<I>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::{ErrorKind, MapDataset};

    fn tens(k: i64, len: i64) -> impl IterDataset<Item = i64> {
        Range::new(10 * k, 10 * k + len).to_iter()
    }

    #[test]
    fn in_turn_until_the_first_ends() {
        assert_eq!(laws::check(&mix([tens(0, 3), tens(1, 9)])), [0, 10, 1, 11, 2, 12]);
        let nested = mix([tens(0, 2).repeat(3).boxed(), tens(5, 9).limit(7).boxed()]).weights([2.0, 1.0]);
        assert_eq!(laws::check(&nested), [0, 1, 50, 0, 1, 51, 0, 1, 52]);
    }

    #[test]
    fn exact_weights_are_kept() {
        let parts = || [Range::new(0, 29_000).to_iter(), Range::new(100_000, 171_000).to_iter()];
        assert_eq!(mix(parts()).exact_weights([0.29, 0.71]).collect().unwrap().len(), 100_000);
        // The weights are truncated to 100 : 244.
        assert_eq!(mix(parts()).weights([0.29, 0.71]).collect().unwrap().len(), 99_760);
    }

    #[test]
    fn an_error_costs_its_element_only() {
        let bad = Range::new(0, 3).try_map(|x| if x == 1 { Err(Error::data("bad")) } else { Ok(x) });
        let good = Range::new(10, 13).try_map(Ok);
        let ds = mix([bad.to_iter().boxed(), good.to_iter().boxed()]);
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        let all: Vec<_> = (0..6).map(|_| iter.next(&mut cx).ok().flatten()).collect();
        assert_eq!(all, [Some(0), Some(10), None, Some(11), Some(2), Some(12)]);
        assert_eq!(iter.next(&mut cx).unwrap(), None);
    }

    #[test]
    fn impossible_mixes_are_refused() {
        for weights in [vec![1.0], vec![1.0, 0.0], vec![1.0, f64::NAN]] {
            assert_eq!(mix([tens(0, 3), tens(1, 3)]).weights(weights).collect().unwrap_err().kind(), ErrorKind::Config);
        }
        assert_eq!(mix(Vec::<crate::BoxIter<i64>>::new()).collect().unwrap_err().kind(), ErrorKind::Config);
        let ds = mix([tens(0, 3), tens(1, 3)]);
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let state = MixState { parents: Vec::new(), ..iter.state() };
        assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
    }
}
