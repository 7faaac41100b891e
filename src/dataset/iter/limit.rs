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
pub type IterLimit<D> = Flowing<D, LimitFlow>;

/// [`Flow`] of [`IterLimit`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct LimitFlow {
    pub(super) count: u64,
}

impl Facts for LimitFlow {
    fn name(&self) -> &'static str {
        "limit"
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
    fn check(&self) -> Result<()> {
        if self.count == 0 { Err(Error::config("the limit is 0 elements, and must be 1 or more")) } else { Ok(()) }
    }
}

impl<I: DatasetIterator> Flow<I> for LimitFlow {
    type Pass = IterLimitIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        Ok(IterLimitIter { parent, count: self.count, read: 0, stage })
    }

    hands_on!(elements, batches);
}

/// A pass over [`IterLimit`].
#[doc(hidden)]
pub struct IterLimitIter<I> {
    parent: I,
    count: u64,
    read: u64,
    stage: StageId,
}

impl<I: DatasetIterator> DatasetIterator for IterLimitIter<I> {
    type Item = I::Item;
    type State = CounterState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        if self.read >= self.count {
            return Ok(None);
        }
        let element = self.parent.next(cx)?;
        if element.is_some() {
            self.read += 1;
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }

    fn state(&self) -> Self::State {
        CounterState { parent: self.parent.state(), counter: self.read }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        if state.counter > self.count {
            let text = format!("{} elements were read, the limit is {}", state.counter, self.count);
            return Err(cx.blame(self.stage, "limit", Error::state(text)));
        }
        self.read = state.counter;
        self.parent.restore(state.parent, cx)
    }
}

debug_name!(IterLimitIter<I>);

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

#[cfg(test)]
mod tests {
    use crate::cx::Cx;
    use crate::dataset::iter::map_with_index::CounterState;
    use crate::dataset::iter::{IterDataset, IterDatasetExt, laws};
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
    use crate::{DatasetIterator, MapDatasetExt};

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
}
