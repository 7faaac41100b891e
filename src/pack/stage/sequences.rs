//! Storage for the cells of sequences that wait for their row.
//!
//! Cells are copied out of their elements, one sequence after another. Elements and their memory
//! are released while still in the cache. Writing a row follows no pointers to memory that was last used long ago.

use std::collections::VecDeque;

use super::columns::with_slices;

/// Bytes of a block, unless a single sequence takes more.
const BLOCK: usize = 64 << 10;
/// Maximum number of spare blocks to keep.
const SPARE: usize = 4;

/// Queue of sequences with `features` features each, oldest first, and a value of type `T` per sequence.
///
/// An entry contains all fields of a sequence. Much other data is used between two accesses to a sequence,
/// so each additional memory location would be another cache miss.
#[derive(Debug)]
pub(super) struct Sequences<T> {
    features: usize,
    entries: VecDeque<Entry<T>>,
    /// Bytes of every feature of every sequence, except the last feature.
    lens: VecDeque<usize>,
    blocks: VecDeque<Vec<u8>>,
    /// Number of blocks removed from the front.
    gone: u64,
    spare: Vec<Vec<u8>>,
}

/// Sequence, with the place of its cells.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    about: T,
    block: u64,
    start: usize,
    end: usize,
}

impl<T> Sequences<T> {
    /// Maximum allocated bytes that are not in use: spare blocks, and the unused parts of the first and last blocks.
    pub(super) const MOST_UNUSED: usize = (SPARE + 2) * BLOCK;

    pub(super) fn new(features: usize) -> Self {
        let (entries, lens, blocks) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { features, entries, lens, blocks, gone: 0, spare: Vec::new() }
    }

    /// Returns the value of the oldest sequence.
    pub(super) fn oldest(&self) -> Option<&T> {
        self.entries.front().map(|entry| &entry.about)
    }

    /// Returns the value of the sequence at `at`, counted from the oldest, for modification.
    pub(super) fn about_mut(&mut self, at: usize) -> Option<&mut T> {
        self.entries.get_mut(at).map(|entry| &mut entry.about)
    }

    /// Adds a sequence with the bytes of each feature.
    pub(super) fn push<'a>(&mut self, about: T, cells: impl Iterator<Item = &'a [u8]> + Clone) {
        let bytes = cells.clone().map(<[u8]>::len).sum();
        self.make_room(bytes);
        let newest = self.gone + self.blocks.len() as u64 - 1;
        let Some(block) = self.blocks.back_mut() else { return };
        self.entries.push_back(Entry { about, block: newest, start: block.len(), end: block.len() + bytes });
        self.lens.extend(cells.clone().take(self.features - 1).map(<[u8]>::len));
        cells.for_each(|cells| block.extend_from_slice(cells));
    }

    /// Ensures the newest block has room for `bytes` more without reallocating.
    fn make_room(&mut self, bytes: usize) {
        if self.blocks.back().is_none_or(|block| block.capacity() - block.len() < bytes) {
            let spare = if bytes <= BLOCK { self.spare.pop() } else { None };
            self.blocks.push_back(spare.unwrap_or_else(|| Vec::with_capacity(bytes.max(BLOCK))));
        }
    }

    /// Calls `run` with the bytes of every feature of the sequence at `at`, counted from the oldest.
    ///
    /// # Panics
    /// If there is no sequence at `at`.
    #[inline]
    pub(super) fn with<R>(&self, at: usize, run: impl FnOnce(&[&[u8]]) -> R) -> R {
        let Entry { block, mut start, end, .. } = self.entries[at];
        let block = &self.blocks[(block - self.gone) as usize];
        let inner = self.features - 1;
        if inner == 0 {
            return run(&[&block[start..end]]);
        }
        let ends = self.lens.range(at * inner..(at + 1) * inner).map(|&len| Some(len)).chain([None]);
        let cells = ends.map(|len| {
            let to = len.map_or(end, |len| start + len);
            &block[std::mem::replace(&mut start, to)..to]
        });
        with_slices(self.features, cells, run)
    }

    /// Drops the `count` oldest sequences.
    pub(super) fn forget(&mut self, count: usize) {
        self.entries.drain(..count.min(self.entries.len()));
        self.lens.drain(..(count * (self.features - 1)).min(self.lens.len()));
        let needed = self.entries.front().map_or(self.gone + self.blocks.len() as u64, |entry| entry.block);
        while self.gone < needed {
            self.gone += 1;
            let Some(mut block) = self.blocks.pop_front() else { return };
            // A block that was made for a long sequence is freed.
            if block.capacity() <= BLOCK && self.spare.len() < SPARE {
                block.clear();
                self.spare.push(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a list of owned copies, for sequences from 0 bytes to more than a block.
        #[test]
        fn what_went_in_is_there_until_it_is_forgotten(
            steps in prop::collection::vec((0usize..40_000, 0usize..90_000, 0usize..4), 1..60),
        ) {
            let (mut kept, mut naive) = (Sequences::new(2), VecDeque::new());
            for (number, (a, b, forget)) in steps.into_iter().enumerate() {
                let sequence = [vec![number as u8; a], vec![!number as u8; b]];
                kept.push(number, sequence.iter().map(Vec::as_slice));
                naive.push_back((number, sequence));
                if forget < 3 {
                    kept.forget(forget);
                    naive.drain(..forget.min(naive.len()));
                }
                prop_assert_eq!(kept.oldest(), naive.front().map(|(number, _)| number));
                for (at, (number, sequence)) in naive.iter().enumerate() {
                    prop_assert_eq!(kept.about_mut(at), Some(&mut number.clone()));
                    kept.with(at, |cells| assert!(cells == sequence));
                }
            }
            kept.forget(naive.len());
            prop_assert!(kept.blocks.is_empty() && kept.spare.len() <= SPARE);
        }
    }

    #[test]
    fn blocks_are_used_again() {
        let mut kept = Sequences::new(1);
        let mut places = std::collections::HashSet::new();
        for _ in 0..1000 {
            kept.push((), std::iter::once([7; 1000].as_slice()));
            places.insert(kept.blocks[0].as_ptr());
            kept.forget(kept.entries.len() - 10.min(kept.entries.len()));
        }
        assert!(places.len() <= 2, "{}", places.len());
    }
}
