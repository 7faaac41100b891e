use serde::{Deserialize, Serialize};

use super::DatasetIterator;
use super::flow::{Flow, Flowing, Start, hands_on};
use crate::cx::{Cx, StageId};
use crate::dataset::entry::prelude::*;
use crate::dataset::facts::Facts;
use crate::dataset::memory::Memory;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Role;
use crate::error::{Error, Result};

/// See [`IterDatasetExt::repeat`](super::IterDatasetExt::repeat).
pub type IterRepeat<D> = Flowing<D, RepeatFlow>;

/// [`Flow`] of [`IterRepeat`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct RepeatFlow {
    pub(super) epochs: Option<u64>,
}

impl Facts for RepeatFlow {
    facts! { name: "repeat", role: Role::Stateful, memory: Some(Memory::NOTHING) }

    fn params(&self) -> String {
        self.epochs.map_or_else(|| "forever".into(), |n| n.to_string())
    }
    fn check(&self) -> Result<()> {
        match self.epochs {
            Some(0) => Err(Error::config("the number of epochs is 0, and must be 1 or more")),
            _ => Ok(()),
        }
    }
}

impl<I: DatasetIterator> Flow<I> for RepeatFlow {
    type Pass = IterRepeatIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        let (start, last) = (parent.state(), self.epochs.map(|n| n.saturating_sub(1)));
        Ok(IterRepeatIter { parent, start, last, epoch: 0, empty: true, stage })
    }

    hands_on!(elements, batches);
}

/// A pass over [`IterRepeat`].
#[doc(hidden)]
pub struct IterRepeatIter<I: DatasetIterator> {
    parent: I,
    start: I::State,
    last: Option<u64>,
    epoch: u64,
    /// True if this epoch has not yielded an element yet.
    empty: bool,
    stage: StageId,
}

/// Position of an [`IterRepeatIter`].
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepeatState<S> {
    /// The parent's position in this epoch.
    pub parent: S,
    /// Number of the epoch, from 0.
    pub epoch: u64,
    /// True if the epoch has not yielded an element yet.
    pub empty: bool,
}

impl<I: DatasetIterator> DatasetIterator for IterRepeatIter<I> {
    type Item = I::Item;
    type State = RepeatState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        loop {
            if let Some(element) = self.parent.next(cx)? {
                self.empty = false;
                cx.produced(self.stage, 1, 0);
                return Ok(Some(element));
            }
            if self.last.is_some_and(|last| self.epoch >= last) {
                return Ok(None);
            }
            // All epochs are alike. After an empty epoch, an endless repeat would never yield an element.
            if self.empty {
                let error = Error::data(format!("epoch {} yielded no element, so repeating it never will", self.epoch));
                return self.last.map_or_else(|| Err(cx.blame(self.stage, "repeat", error)), |_| Ok(None));
            }
            self.parent.restore(self.start.clone(), cx)?;
            self.epoch += 1;
            self.empty = true;
        }
    }

    fn state(&self) -> Self::State {
        RepeatState { parent: self.parent.state(), epoch: self.epoch, empty: self.empty }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        if let Some(last) = self.last.filter(|&last| state.epoch > last) {
            let text = format!("epoch {} is out of range for {} epochs", state.epoch, last.saturating_add(1));
            return Err(cx.blame(self.stage, "repeat", Error::state(text)));
        }
        self.epoch = state.epoch;
        self.empty = state.empty;
        self.parent.restore(state.parent, cx)
    }
}

debug_name!(IterRepeatIter<I: DatasetIterator>);

arguments! {
    struct RepeatArgs(num_epochs) {
        /// Number of epochs. By default, the dataset is infinite.
        num_epochs: Option<Positive<u64>>,
        /// Whether each epoch has a new random order and new random numbers; only before `to_iter`. If false, each epoch repeats the first.
        reseed_each_epoch: bool = true,
    }
}

arguments! {
    /// Arguments of a stream, which repeats its first epoch.
    struct StreamRepeatArgs(num_epochs) {
        /// Number of epochs. By default, the dataset is infinite.
        num_epochs: Option<Positive<u64>>,
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::both(
    "repeat",
    "Repeats the dataset for several epochs, or without end. Before `to_iter`, shuffles differ between epochs; after it, \
     all epochs are equal.\n\n\
     A slice of a shuffled dataset has other elements in each epoch: see `split`. A loader logs a warning for such a repeat.\n\n\
     ConfigError: `num_epochs` is 0.",
    &Behind(|ds: BoxMap<Element>, RepeatArgs { num_epochs, reseed_each_epoch }: RepeatArgs, _| {
        Ok(ds.repeat(num_epochs.map(|count| count.0)).reseed_each_epoch(reseed_each_epoch).boxed())
    }),
    &Behind(|ds: BoxIter<Element>, StreamRepeatArgs { num_epochs }: StreamRepeatArgs, _| {
        Ok(ds.repeat(num_epochs.map(|count| count.0)).boxed())
    }),
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::{IterDataset, IterDatasetExt, laws};
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
    use crate::{ErrorKind, MapDatasetExt};

    #[test]
    fn epochs_are_alike() {
        let ds = Range::new(0, 3).to_iter().map_with_index(|i, x| (i, x)).repeat(3);
        assert_eq!(laws::check(&ds), [(0, 0), (1, 1), (2, 2)].repeat(3));
        let forever = Range::new(0, 3).to_iter().repeat(None).limit(8);
        assert_eq!(laws::check(&forever), [0, 1, 2, 0, 1, 2, 0, 1]);
    }

    #[test]
    fn nothing_for_ever_is_an_error() {
        let nothing = || Range::new(0, 5).to_iter().filter(|_| false);
        let error = nothing().repeat(None).collect().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.message().contains("epoch 0 yielded no element"), "{error}");
        // Also after a resume.
        assert!(laws::check_to_error(&nothing().repeat(None)).1.is_some());
    }

    #[test]
    fn nothing_several_times_is_nothing() {
        for epochs in [1, 2, 1 << 60] {
            assert!(laws::check(&Range::new(0, 5).to_iter().filter(|_| false).repeat(epochs)).is_empty());
        }
    }

    #[test]
    fn a_state_of_a_later_epoch_than_there_are_is_refused() {
        let ds = Range::new(0, 5).to_iter().repeat(2);
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let state = RepeatState { epoch: 2, ..iter.state() };
        assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
    }
}
