//! A filter with a name, behind a stateful stage: what it drops is watched, as of those in front of the border.

use std::fmt;

use super::{Function, Named, NamedFn, run};
use crate::cx::{Cx, StageId};
use crate::dataset::iter::{FilterState, FilterThresholds, Watch};
use crate::dataset::{DatasetIterator, IterDataset, Role, Stage};
use crate::error::Result;
use crate::exec::Runtime;

/// See [`NamedFn::watched`].
pub(crate) struct Watched<D, T> {
    filter: Named<D, T, T>,
    thresholds: FilterThresholds,
}

impl<T: 'static> NamedFn<T, T> {
    /// As a filter of the stream `parent`, which warns and fails where it drops too much.
    pub(crate) fn watched<D: Stage>(self, parent: D, thresholds: FilterThresholds) -> Watched<D, T> {
        Watched { filter: self.after(parent), thresholds }
    }
}

impl<D: Stage, T> Stage for Watched<D, T> {
    fn name(&self) -> &'static str {
        self.filter.name()
    }
    fn params(&self) -> String {
        let parts = [self.filter.params(), self.thresholds.params()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
    fn role(&self) -> Role {
        self.filter.role()
    }
    fn is_native(&self) -> bool {
        self.filter.is_native()
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.filter.parents()
    }
    fn check(&self) -> Result<()> {
        self.thresholds.check()
    }
}

impl<D: IterDataset> IterDataset for Watched<D, D::Item>
where
    D::Item: Send + 'static,
{
    type Item = D::Item;
    type Iter = WatchedIter<D::Iter, D::Item>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let Named { parent, function, stage, name, .. } = &self.filter;
        let (parent, function, watch) = (parent.iter(run)?, function.clone(), Watch::new(self.thresholds));
        Ok(WatchedIter { parent, function, watch, stage: *stage, name })
    }
}

/// A pass over a stream of [`Watched`].
pub(crate) struct WatchedIter<I, T> {
    parent: I,
    function: std::sync::Arc<Function<T, T>>,
    watch: Watch,
    stage: StageId,
    name: &'static str,
}

impl<I: DatasetIterator> DatasetIterator for WatchedIter<I, I::Item> {
    type Item = I::Item;
    type State = FilterState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        while let Some(element) = self.parent.next(cx)? {
            let kept = run(&*self.function, self.stage, self.name, element, cx)?;
            self.watch.count(kept.is_none(), cx).map_err(|e| cx.blame(self.stage, self.name, e))?;
            if kept.is_some() {
                return Ok(kept);
            }
        }
        Ok(None)
    }

    fn state(&self) -> Self::State {
        self.watch.state(self.parent.state())
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.watch.restore(state.seen, state.dropped).map_err(|e| cx.blame(self.stage, self.name, e))?;
        self.parent.restore(state.parent, cx)
    }
}

impl<D, T> fmt::Debug for Watched<D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.filter, self.thresholds)
    }
}

impl<I, T> fmt::Debug for WatchedIter<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WatchedIter({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::{ErrorKind, MapDataset};

    fn odd(share: Option<f64>) -> Watched<impl IterDataset<Item = i64>, i64> {
        let thresholds = FilterThresholds { warn: None, raise: share };
        NamedFn::filter("filter", "odd".into(), |x| Ok(x % 2 == 1)).watched(Range::new(0, 2500).to_iter(), thresholds)
    }

    #[test]
    fn it_keeps_what_a_filter_keeps() {
        assert_eq!(laws::check(&odd(Some(0.9))), (1..2500).step_by(2).collect::<Vec<_>>());
        assert_eq!((&odd(Some(0.5)) as &dyn Stage).lines()[2], "filter(odd, raise=0.5)");
    }

    #[test]
    fn it_fails_at_its_threshold() {
        let error = odd(Some(0.5)).collect().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.message().starts_with("50.0 % of the last 1000"), "{error}");
        assert!(odd(Some(1.5)).check().is_err());
    }

    #[test]
    fn a_state_from_before_it_counted_is_read() {
        let mut iter = odd(None).iter(&Runtime::inline()).unwrap();
        let whole = serde_json::to_value(iter.state()).unwrap();
        let state: FilterState<_> = serde_json::from_value(whole["parent"].clone()).unwrap();
        assert_eq!((state.seen, state.dropped), (0, 0));
        iter.restore(state, &mut Cx::default()).unwrap();
        assert_eq!(iter.next(&mut Cx::default()).unwrap(), Some(1));
    }
}
