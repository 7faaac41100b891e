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

/// See [`IterDatasetExt::skip`](super::IterDatasetExt::skip).
pub type IterSkip<D> = Flowing<D, SkipFlow>;

/// [`Flow`] of [`IterSkip`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SkipFlow {
    pub(super) count: u64,
}

impl Facts for SkipFlow {
    fn name(&self) -> &'static str {
        "skip"
    }
    fn params(&self) -> String {
        self.count.to_string()
    }
    fn role(&self) -> Role {
        Role::Stateful
    }
    fn memory(&self) -> Option<Memory> {
        Some(Memory::NOTHING)
    }
}

impl<I: DatasetIterator> Flow<I> for SkipFlow {
    type Pass = IterSkipIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        Ok(IterSkipIter { parent, count: self.count, skipped: 0, stage })
    }

    hands_on!(elements, batches);
}

/// A pass over [`IterSkip`].
#[doc(hidden)]
pub struct IterSkipIter<I> {
    parent: I,
    count: u64,
    /// Elements skipped so far. Failed elements do not count.
    skipped: u64,
    stage: StageId,
}

impl<I: DatasetIterator> DatasetIterator for IterSkipIter<I> {
    type Item = I::Item;
    type State = CounterState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        while self.skipped < self.count {
            if self.parent.next(cx)?.is_none() {
                return Ok(None);
            }
            self.skipped += 1;
        }
        let element = self.parent.next(cx)?;
        if element.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }

    fn state(&self) -> Self::State {
        CounterState { parent: self.parent.state(), counter: self.skipped }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        if state.counter > self.count {
            let text =
                format!("the state has skipped {} elements, and the pipeline skips {}", state.counter, self.count);
            return Err(cx.blame(self.stage, "skip", Error::state(text)));
        }
        self.skipped = state.counter;
        self.parent.restore(state.parent, cx)
    }
}

debug_name!(IterSkipIter<I>);

arguments! {
    struct SkipArgs(count) {
        /// Number of elements to skip; 0 skips none.
        count: u64,
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::iter(
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
    use crate::dataset::iter::{IterDataset, IterDatasetExt, laws};
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
    use crate::{ErrorKind, MapDatasetExt};

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
