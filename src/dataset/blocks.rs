//! Runs of neighbouring elements that a source reads together.

use std::ops::Range;
use std::sync::Arc;

/// The blocks of a dataset, in order. A block is a run of neighbouring elements that the source fetches or decodes
/// together. Examples are row groups of Parquet, chunks of ArrayRecord and shards of MDS. No block is empty, and each
/// element is in exactly one block.
#[derive(Clone, PartialEq, Eq)]
pub struct Blocks {
    /// Index after the last element of each block.
    ends: Arc<[u64]>,
    room: Option<u64>,
}

impl Blocks {
    /// Makes consecutive blocks of these lengths, without the empty blocks; `None` if the sum of the lengths exceeds 64
    /// bits.
    pub fn of(lens: impl IntoIterator<Item = u64>) -> Option<Self> {
        let (mut ends, mut end) = (Vec::new(), 0u64);
        for len in lens.into_iter().filter(|&len| len > 0) {
            end = end.checked_add(len)?;
            ends.push(end);
        }
        Some(Self { ends: ends.into(), room: None })
    }

    /// Makes blocks of `size` elements for a dataset of `len` elements. The last block may be smaller. `None` if `size`
    /// is 0.
    pub(crate) fn even(size: u64, len: u64) -> Option<Self> {
        let count = len.checked_next_multiple_of(size).map(|_| len.div_ceil(size))?;
        Some(Self { ends: (1..=count).map(|block| (block * size).min(len)).collect(), room: None })
    }

    /// Sets the number of elements in decoded blocks that the source can cache. The default is `None`: no limit.
    #[must_use]
    pub fn with_room(self, elements: Option<u64>) -> Self {
        Self { room: elements, ..self }
    }

    /// Returns the number of elements in decoded blocks that the source can cache; `None` if all blocks fit.
    pub fn room(&self) -> Option<u64> {
        self.room
    }

    /// Returns the number of blocks.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the total number of elements.
    pub fn elements(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the indices of the elements of block `at`; empty if there is no such block.
    #[inline]
    pub fn range(&self, at: usize) -> Range<u64> {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end);
        start..self.ends.get(at).map_or(start, |&end| end)
    }

    /// Returns the lengths of the blocks, first to last.
    pub fn lens(&self) -> impl ExactSizeIterator<Item = u64> {
        (0..self.count()).map(|at| self.len_of(at))
    }

    /// Returns the number of elements of block `at`; 0 if there is no such block.
    pub fn len_of(&self, at: usize) -> u64 {
        let range = self.range(at);
        range.end - range.start
    }

    /// Returns the block that contains element `index`, which must be below [`elements`](Self::elements).
    pub fn find(&self, index: u64) -> usize {
        self.ends.partition_point(|&end| end <= index)
    }

    /// Cuts the blocks to the elements in `kept`, and counts from its start.
    pub(crate) fn cut(&self, kept: Range<u64>) -> Option<Self> {
        let inside = (0..self.count()).map(|at| {
            let block = self.range(at);
            block.end.min(kept.end).saturating_sub(block.start.max(kept.start))
        });
        Some(Self::of(inside)?.with_room(self.room))
    }

    /// Returns the blocks of concatenated datasets; `None` if any dataset has no blocks.
    ///
    /// Several caches count as one cache with the room of the smallest.
    pub(crate) fn chained(parts: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
        let room = parts.iter().filter_map(Self::room).min();
        Some(Self::of(parts.iter().flat_map(Self::lens))?.with_room(room))
    }
}

debug_as!(Blocks, |self, f| write!(f, "Blocks({} of {} elements)", self.count(), self.elements()));

#[cfg(test)]
mod tests {
    use super::*;

    fn lens(blocks: &Blocks) -> Vec<u64> {
        blocks.lens().collect()
    }

    #[test]
    fn blocks_without_elements_are_left_out() {
        let blocks = Blocks::of([0, 2, 0, 3, 0]).unwrap();
        assert_eq!((blocks.count(), blocks.elements(), lens(&blocks)), (2, 5, vec![2, 3]));
        let found: Vec<_> = (0..5).map(|index| blocks.find(index)).collect();
        assert_eq!(found, [0, 0, 1, 1, 1]);
        assert_eq!((blocks.range(0), blocks.range(1), blocks.range(7)), (0..2, 2..5, 0..0));
        assert!(Blocks::of([u64::MAX, 1]).is_none());
        assert_eq!(Blocks::of([]).unwrap().elements(), 0);
    }

    #[test]
    fn even_blocks_end_with_the_data() {
        assert_eq!(lens(&Blocks::even(4, 10).unwrap()), [4, 4, 2]);
        assert_eq!(lens(&Blocks::even(5, 10).unwrap()), [5, 5]);
        assert_eq!(Blocks::even(5, 0).unwrap().count(), 0);
        assert!(Blocks::even(0, 10).is_none());
    }

    #[test]
    fn cut_and_chained_blocks_are_those_of_the_elements_that_are_left() {
        let blocks = Blocks::of([3, 3, 3]).unwrap().with_room(Some(6));
        assert_eq!(lens(&blocks.cut(1..7).unwrap()), [2, 3, 1]);
        assert_eq!(blocks.cut(1..7).unwrap().room(), Some(6));
        assert_eq!(blocks.cut(4..4).unwrap().count(), 0);
        let more = Blocks::of([2]).unwrap();
        let chained = Blocks::chained([Some(more), Some(blocks)]).unwrap();
        assert_eq!((lens(&chained), chained.room()), (vec![2, 3, 3, 3], Some(6)));
        assert!(Blocks::chained([None, Blocks::of([1])]).is_none());
    }
}
