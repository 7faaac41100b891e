use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::run::opaque::{debug_name, debug_with_parent};
use crate::dataset::run::thresholds::{FilterThresholds, Watch};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::Result;
use crate::exec::Runtime;

/// See [`IterDataset::filter`].
#[must_use = "datasets are lazy and do nothing until read"]
pub struct IterFilter<D, P> {
    parent: D,
    predicate: Arc<P>,
    thresholds: FilterThresholds,
    stage: StageId,
}

impl<D: Stage, P> IterFilter<D, P> {
    pub(super) fn new(parent: D, predicate: P, thresholds: FilterThresholds) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, predicate: Arc::new(predicate), thresholds, stage }
    }
}

impl<D: Stage, P> Stage for IterFilter<D, P> {
    fn name(&self) -> &'static str {
        "filter"
    }
    fn params(&self) -> String {
        self.thresholds.params()
    }
    fn role(&self) -> Role {
        Role::MayDrop
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
    fn check(&self) -> Result<()> {
        self.thresholds.check()
    }
}

impl<D, P> IterDataset for IterFilter<D, P>
where
    D: IterDataset,
    P: Fn(&D::Item) -> bool + Send + Sync + 'static,
{
    type Item = D::Item;
    type Iter = IterFilterIter<D::Iter, P>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let watch = Watch::new(self.thresholds);
        Ok(IterFilterIter {
            parent: self.parent.iter(run)?,
            predicate: self.predicate.clone(),
            watch,
            stage: self.stage,
        })
    }
}

/// A pass over [`IterFilter`].
pub struct IterFilterIter<I, P> {
    parent: I,
    predicate: Arc<P>,
    watch: Watch,
    stage: StageId,
}

/// Where a filter of a stream is.
///
/// The state of its parent alone is read as one with an empty window: so it was written before filters counted everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written<S>")]
pub struct FilterState<S> {
    /// Where the parent is.
    pub parent: S,
    /// Elements seen in the present window of the thresholds.
    pub seen: u64,
    /// Those of them that were dropped.
    pub dropped: u64,
}

/// The states that are read.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written<S> {
    Whole(Whole<S>),
    Parent(S),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole<S> {
    parent: S,
    seen: u64,
    dropped: u64,
}

impl<S> From<Written<S>> for FilterState<S> {
    fn from(written: Written<S>) -> Self {
        match written {
            Written::Whole(Whole { parent, seen, dropped }) => Self { parent, seen, dropped },
            Written::Parent(parent) => Self { parent, seen: 0, dropped: 0 },
        }
    }
}

impl<I, P> DatasetIterator for IterFilterIter<I, P>
where
    I: DatasetIterator,
    P: Fn(&I::Item) -> bool + Send + Sync,
{
    type Item = I::Item;
    type State = FilterState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        while let Some(element) = self.parent.next(cx)? {
            let keep = cx.consumed(self.stage, || (self.predicate)(&element));
            self.watch.count(!keep, cx).map_err(|e| cx.blame(self.stage, "filter", e))?;
            if keep {
                cx.produced(self.stage, 1, 0);
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    fn state(&self) -> Self::State {
        self.watch.state(self.parent.state())
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.watch.restore(state.seen, state.dropped).map_err(|e| cx.blame(self.stage, "filter", e))?;
        self.parent.restore(state.parent, cx)
    }
}

debug_with_parent!(IterFilter<D, P>);
debug_name!(IterFilterIter<I, P>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::{ErrorKind, MapDataset};

    #[test]
    fn keeps_what_the_predicate_says() {
        let ds = IterDataset::filter(Range::new(0, 2500).to_iter(), |x| x % 3 == 0);
        assert_eq!(laws::check(&ds), (0..2500).step_by(3).collect::<Vec<_>>());
    }

    #[test]
    fn fails_where_too_much_is_dropped_also_after_a_restore() {
        let thresholds = FilterThresholds { raise: Some(0.9), ..Default::default() };
        // 950 of the second thousand are dropped.
        let ds = Range::new(0, 3000).to_iter().filter_with(|x| !(1000..1950).contains(x), thresholds);
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        for _ in 0..1010 {
            iter.next(&mut cx).unwrap().unwrap();
        }
        let mut resumed = ds.iter(&Runtime::inline()).unwrap();
        resumed.restore(iter.state(), &mut cx).unwrap();
        for iter in [&mut iter, &mut resumed] {
            for x in 1960..1999 {
                assert_eq!(iter.next(&mut cx).unwrap(), Some(x));
            }
            let error = iter.next(&mut cx).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
            assert!(error.to_string().starts_with("stage 2 filter: 95.0 % of the last 1000"), "{error}");
            assert_eq!(iter.next(&mut cx).unwrap(), Some(2000));
        }
    }

    #[test]
    fn only_what_changes_the_data_is_in_the_fingerprint() {
        let lines = |t| (&Range::new(0, 9).to_iter().filter_with(|_| true, t) as &dyn Stage).lines();
        assert_eq!(lines(FilterThresholds::OFF), lines(FilterThresholds::default()));
        assert_eq!(lines(FilterThresholds { warn: None, raise: Some(0.5) })[2], "filter(raise=0.5)");
    }
}
