use serde::{Deserialize, Serialize};

use super::DatasetIterator;
use super::flow::{Flow, Flowing, Start};
use crate::cx::{Cx, StageId};
use crate::dataset::entry::prelude::*;
use crate::dataset::facts::Facts;
use crate::dataset::memory::{Held, Memory};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Role;
use crate::error::{Error, Result};

/// See [`IterDatasetExt::cache`](super::IterDatasetExt::cache).
pub type IterCache<D> = Flowing<D, CacheFlow>;

/// [`Flow`] of [`IterCache`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct CacheFlow;

impl Facts for CacheFlow {
    facts! { name: "cache", role: Role::Stateful, memory: Some(Memory::elements(Held::All, Held::NONE)) }
}

impl<I: DatasetIterator<Item: Clone + Send + 'static>> Flow<I> for CacheFlow {
    type Pass = IterCacheIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        let start = parent.state();
        Ok(IterCacheIter { parent, start, cached: Vec::new(), complete: false, has_gap: false, position: 0, stage })
    }
}

/// A pass over [`IterCache`].
#[doc(hidden)]
pub struct IterCacheIter<I: DatasetIterator> {
    parent: I,
    start: I::State,
    cached: Vec<I::Item>,
    complete: bool,
    /// True if an element has failed. A restart then reads the parent again and meets the error.
    has_gap: bool,
    position: usize,
    stage: StageId,
}

/// Position of an [`IterCacheIter`].
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheState {
    /// Elements yielded.
    pub position: u64,
}

impl<I: DatasetIterator<Item: Clone + Send + 'static>> IterCacheIter<I> {
    /// Caches another element. Returns `false` at the end of the parent.
    fn grow(&mut self, cx: &mut Cx) -> Result<bool> {
        if self.complete {
            return Ok(false);
        }
        let next = self.parent.next(cx).inspect_err(|_| self.has_gap = true)?;
        let Some(element) = next else {
            self.complete = true;
            return Ok(false);
        };
        self.cached.push(element);
        Ok(true)
    }
}

impl<I: DatasetIterator<Item: Clone + Send + 'static>> DatasetIterator for IterCacheIter<I> {
    type Item = I::Item;
    type State = CacheState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        if self.position == self.cached.len() && !self.grow(cx)? {
            return Ok(None);
        }
        let element = cx.timed(self.stage, || self.cached[self.position].clone());
        self.position += 1;
        Ok(Some(element))
    }

    fn state(&self) -> CacheState {
        CacheState { position: self.position as u64 }
    }

    fn restore(&mut self, state: CacheState, cx: &mut Cx) -> Result<()> {
        let position = usize::try_from(state.position).unwrap_or(usize::MAX);
        if self.cached.is_empty() || self.has_gap {
            self.parent.restore(self.start.clone(), cx)?;
            self.cached.clear();
            (self.complete, self.has_gap) = (false, false);
        }
        while self.cached.len() < position {
            if !self.grow(cx)? {
                let text = format!("element {position} is not in the cache, which has {}", self.cached.len());
                return Err(cx.blame(self.stage, "cache", Error::state(text)));
            }
        }
        self.position = position;
        Ok(())
    }
}

debug_name!(IterCacheIter<I: DatasetIterator>);

arguments! {
    struct CacheArgs {}
}

pub(super) const ENTRY: StageEntry = StageEntry::iter(
    "cache",
    "Keeps all elements in memory for the later epochs of a subsequent `repeat`.",
    &Behind(|ds: BoxIter<Element>, _: CacheArgs, _| Ok(ds.cache().boxed())),
);

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::dataset::iter::{IterDataset, IterDatasetExt, laws};
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
    use crate::{ErrorKind, MapDatasetExt};

    #[test]
    fn yields_the_same_and_reads_the_parent_once() {
        let reads = Arc::new(AtomicU64::new(0));
        let count = reads.clone();
        let counted = Range::new(0, 5).map(move |x| {
            count.fetch_add(1, Ordering::Relaxed);
            x
        });
        let ds = counted.to_iter().cache().repeat(3);
        assert_eq!(ds.collect().unwrap(), [0, 1, 2, 3, 4].repeat(3));
        assert_eq!(reads.load(Ordering::Relaxed), 5);
        assert_eq!(laws::check(&ds), [0, 1, 2, 3, 4].repeat(3));
    }

    #[test]
    fn what_failed_fails_again() {
        let bad = Range::new(0, 5).try_map(|x| if x == 3 { Err(Error::data("bad")) } else { Ok(x) });
        let ds = bad.to_iter().cache().repeat(2);
        let (items, error) = laws::check_to_error(&ds);
        assert_eq!(items, [0, 1, 2]);
        assert!(error.unwrap().contains("element 3: bad"));
    }

    #[test]
    fn a_position_past_the_end_is_a_state_error() {
        let ds = Range::new(0, 4).to_iter().cache();
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let error = iter.restore(CacheState { position: 5 }, &mut Cx::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
    }
}
