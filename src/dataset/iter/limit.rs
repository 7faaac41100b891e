use super::DatasetIterator;
use super::flow::{Flow, Flowing, Start, hands_on};
use super::map_with_index::CounterState;
use crate::cx::{Cx, StageId};
use crate::dataset::entry::prelude::*;
use crate::dataset::facts::Facts;
use crate::dataset::memory::Memory;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Role;
use crate::error::{Error, Result};

/// See [`IterDatasetExt::limit`](super::IterDatasetExt::limit).
pub type IterLimit<D> = Flowing<D, CountFlow>;

/// See [`IterDatasetExt::skip`](super::IterDatasetExt::skip).
pub type IterSkip<D> = Flowing<D, CountFlow>;

/// [`Flow`] of [`IterLimit`] and [`IterSkip`]: yields the first `count` elements, or all later elements.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct CountFlow {
    pub(super) count: u64,
    /// Whether the first elements are skipped.
    pub(super) skips: bool,
}

impl Facts for CountFlow {
    fn name(&self) -> &'static str {
        if self.skips { "skip" } else { "limit" }
    }
    fn params(&self) -> String {
        self.count.to_string()
    }
    facts! { role: Role::Stateful, memory: Some(Memory::NOTHING) }

    fn check(&self) -> Result<()> {
        let none = || Error::config("the limit is 0 elements, and must be 1 or more");
        if self.skips || self.count > 0 { Ok(()) } else { Err(none()) }
    }
}

impl<I: DatasetIterator> Flow<I> for CountFlow {
    type Pass = IterCountIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        Ok(IterCountIter { parent, flow: *self, counted: 0, stage })
    }

    hands_on!(elements, batches);
}

/// A pass over [`IterLimit`] or [`IterSkip`].
#[doc(hidden)]
pub struct IterCountIter<I> {
    parent: I,
    flow: CountFlow,
    /// Number of the first elements that were read. Failed elements do not count.
    counted: u64,
    stage: StageId,
}

impl<I: DatasetIterator> DatasetIterator for IterCountIter<I> {
    type Item = I::Item;
    type State = CounterState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        while self.counted < self.flow.count {
            let element = self.parent.next(cx)?;
            self.counted += u64::from(element.is_some());
            if element.is_none() || !self.flow.skips {
                cx.produced(self.stage, u64::from(element.is_some()), 0);
                return Ok(element);
            }
        }
        if !self.flow.skips {
            return Ok(None);
        }
        let element = self.parent.next(cx)?;
        cx.produced(self.stage, u64::from(element.is_some()), 0);
        Ok(element)
    }

    fn state(&self) -> Self::State {
        CounterState { parent: self.parent.state(), counter: self.counted }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        let (counted, count) = (state.counter, self.flow.count);
        if state.counter > self.flow.count {
            let text = match self.flow.skips {
                true => format!("the state has skipped {counted} elements, and the pipeline skips {count}"),
                false => format!("{counted} elements were read, the limit is {count}"),
            };
            return Err(cx.blame(self.stage, self.flow.name(), Error::state(text)));
        }
        self.counted = counted;
        self.parent.restore(state.parent, cx)
    }
}

debug_name!(IterCountIter<I>);

arguments! {
    struct LimitArgs(count) {
        /// Number of elements to keep.
        count: Positive<u64>,
    }
}

const BUILD: Behind<BoxIter<Element>, LimitArgs, BoxIter<Element>> =
    Behind(|ds, LimitArgs { count }, _| Ok(ds.limit(count.0).boxed()));

pub(super) const LIMIT: StageEntry =
    StageEntry::iter("limit", "Ends after the first `count` elements.\n\nConfigError: `count` is 0.", &BUILD);

pub(super) const TAKE: StageEntry = StageEntry::iter(
    "take",
    "Ends after the first `count` elements, as `limit` does.\n\nConfigError: `count` is 0.",
    &BUILD,
);

arguments! {
    struct SkipArgs(count) {
        /// Number of elements to skip; 0 skips none.
        count: u64,
    }
}

pub(super) const SKIP: StageEntry = StageEntry::iter(
    "skip",
    "Skips the first `count` elements.\n\n\
     The skipped elements are evaluated once in each pass. Before `to_iter_dataset`, the slice `ds[count:]` skips \
     elements at no cost.\n\n\
     ConfigError: `count` is negative.",
    &Behind(|ds: BoxIter<Element>, SkipArgs { count }: SkipArgs, _| Ok(ds.skip(count).boxed())),
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::{IterDataset, laws};
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
    use crate::{ErrorKind, IterDatasetExt, MapDatasetExt};

    #[test]
    fn stops_after_so_many_or_earlier() {
        assert_eq!(laws::check(&Range::new(0, 9).to_iter().limit(4)), [0, 1, 2, 3]);
        assert_eq!(laws::check(&Range::new(0, 3).to_iter().limit(4)), [0, 1, 2]);
        assert_eq!(laws::check(&Range::new(0, 30).to_iter().filter(|x| x % 2 == 1).limit(3)), [1, 3, 5]);
    }

    #[test]
    fn a_state_behind_the_limit_is_refused() {
        let (ds, mut cx) = (Range::new(0, 9).to_iter().limit(4), Cx::default());
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let at = |counter: u64| CounterState { counter, ..ds.iter(&Runtime::inline()).unwrap().state() };
        iter.restore(at(4), &mut cx).unwrap();
        assert_eq!(iter.next(&mut cx).unwrap(), None);
        let error = iter.restore(at(5), &mut cx).unwrap_err();
        assert_eq!(error.to_string(), "stage 2 limit: 5 elements were read, the limit is 4");
    }

    #[test]
    fn nothing_is_not_a_limit() {
        let error = Range::new(0, 9).to_iter().limit(0).collect().unwrap_err();
        assert_eq!(error.to_string(), "stage 2 limit: the limit is 0 elements, and must be 1 or more");
    }

    #[test]
    fn leaves_out_so_many_or_all() {
        assert_eq!(laws::check(&Range::new(0, 6).to_iter().skip(4)), [4, 5]);
        assert_eq!(laws::check(&Range::new(0, 3).to_iter().skip(0)), [0, 1, 2]);
        assert!(laws::check(&Range::new(0, 3).to_iter().skip(3)).is_empty());
        assert!(laws::check(&Range::new(0, 3).to_iter().skip(9)).is_empty());
        assert_eq!(laws::check(&Range::new(0, 30).to_iter().filter(|x| x % 2 == 1).skip(13)), [27, 29]);
    }

    #[test]
    fn an_element_that_fails_is_none_of_those_left_out() {
        let ds = Range::new(0, 5).to_iter().try_map(|x| if x == 1 { Err(Error::data("no")) } else { Ok(x) }).skip(2);
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        assert!(iter.next(&mut cx).is_err());
        let state = iter.state();
        assert_eq!(iter.next(&mut cx).unwrap(), Some(3));
        iter.restore(state, &mut cx).unwrap();
        assert_eq!(iter.next(&mut cx).unwrap(), Some(3));
    }

    #[test]
    fn a_state_of_more_than_that_is_refused() {
        let ds = Range::new(0, 9).to_iter().skip(2);
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        let state = CounterState { counter: 3, ..iter.state() };
        let error = iter.restore(state, &mut cx).unwrap_err();
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::State, "the state has skipped 3 elements, and the pipeline skips 2")
        );
    }
}
