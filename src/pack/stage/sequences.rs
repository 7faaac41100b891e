//! The cells of sequences that wait for their row.
//!
//! They are copied out of their elements, one behind the other: elements and the memory they are made of go back while
//! both are still in the cache, and a row is written without following pointers to places last seen long ago.

use std::collections::VecDeque;

use super::columns::with_slices;

/// Bytes of a block, unless one sequence takes more.
const BLOCK: usize = 64 << 10;
/// Blocks that are kept for later.
const SPARE: usize = 4;

/// Sequences of so many features each, the oldest first, and what is known of each.
///
/// All of it in one entry: between two looks at a sequence so much else passes that every further place is another miss.
#[derive(Debug)]
pub(super) struct Sequences<T> {
    features: usize,
    entries: VecDeque<Entry<T>>,
    /// Bytes of every feature of every sequence but its last.
    lens: VecDeque<usize>,
    blocks: VecDeque<Vec<u8>>,
    /// Blocks that were there and are not any more.
    gone: u64,
    spare: Vec<Vec<u8>>,
}

/// A sequence, and where its cells are.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    about: T,
    block: u64,
    start: usize,
    end: usize,
}

impl<T> Sequences<T> {
    /// Bytes that it has and does not need, at most: spare blocks, and what is not used of the first and the last.
    pub(super) const MOST_UNUSED: usize = (SPARE + 2) * BLOCK;

    pub(super) fn new(features: usize) -> Self {
        let (entries, lens, blocks) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { features, entries, lens, blocks, gone: 0, spare: Vec::new() }
    }

    /// Finds what is known of the oldest.
    pub(super) fn oldest(&self) -> Option<&T> {
        self.entries.front().map(|entry| &entry.about)
    }

    /// Finds what is known of the sequence in place `at`, counted from the oldest, to change.
    pub(super) fn about_mut(&mut self, at: usize) -> Option<&mut T> {
        self.entries.get_mut(at).map(|entry| &mut entry.about)
    }

    /// Adds a sequence: the bytes of each feature.
    pub(super) fn push<'a>(&mut self, about: T, cells: impl Iterator<Item = &'a [u8]> + Clone) {
        let bytes = cells.clone().map(<[u8]>::len).sum();
        self.make_room(bytes);
        let newest = self.gone + self.blocks.len() as u64 - 1;
        let Some(block) = self.blocks.back_mut() else { return };
        self.entries.push_back(Entry { about, block: newest, start: block.len(), end: block.len() + bytes });
        self.lens.extend(cells.clone().take(self.features - 1).map(<[u8]>::len));
        cells.for_each(|cells| block.extend_from_slice(cells));
    }

    /// Sees to it that the newest block takes `bytes` more without moving.
    fn make_room(&mut self, bytes: usize) {
        if self.blocks.back().is_none_or(|block| block.capacity() - block.len() < bytes) {
            let spare = if bytes <= BLOCK { self.spare.pop() } else { None };
            self.blocks.push_back(spare.unwrap_or_else(|| Vec::with_capacity(bytes.max(BLOCK))));
        }
    }

    /// Runs `run` with the bytes of every feature of the sequence in place `at`, counted from the oldest.
    ///
    /// # Panics
    /// If there is none.
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

    /// Forgets the `count` oldest.
    pub(super) fn forget(&mut self, count: usize) {
        self.entries.drain(..count.min(self.entries.len()));
        self.lens.drain(..(count * (self.features - 1)).min(self.lens.len()));
        let needed = self.entries.front().map_or(self.gone + self.blocks.len() as u64, |entry| entry.block);
        while self.gone < needed {
            self.gone += 1;
            let Some(mut block) = self.blocks.pop_front() else { return };
            // One that was made for a long sequence is not held on to.
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
        /// Against a list of owned copies, with sequences from nothing to more than a block.
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
