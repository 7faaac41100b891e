//! Storage for the cells of sequences that wait for their row.
//!
//! Cells are copied out of their elements, one sequence after another. Elements and their memory
//! are released while still in the cache. Writing a row follows no pointers to memory that was last used long ago.
//! Rows that view memory of their source are not copied.

use std::collections::VecDeque;
use std::sync::Arc;

use super::columns::{with_cells_of_row, with_slices};
use crate::element::Ragged;

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
    blocks: Numbered<Vec<u8>>,
    views: Numbered<Arc<Ragged>>,
    spare: Vec<Vec<u8>>,
}

/// Sequence, with the place of its cells.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    about: T,
    place: Place,
}

/// Place of the cells of a sequence.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Bytes of a block.
    Block { block: u64, start: usize, end: usize },
    /// Row of views.
    View { view: u64, row: usize },
}

/// Queue of numbered values, each with the number of entries that use it. Unused values are removed from the front.
#[derive(Debug)]
struct Numbered<V> {
    values: VecDeque<(V, usize)>,
    /// Number of values removed from the front.
    gone: u64,
}

impl<V> Numbered<V> {
    fn new() -> Self {
        Self { values: VecDeque::new(), gone: 0 }
    }

    fn newest(&self) -> Option<&V> {
        self.values.back().map(|(value, _)| value)
    }

    fn push(&mut self, value: V) {
        self.values.push_back((value, 0));
    }

    /// Adds an entry to the newest value, and returns the value and its number.
    #[inline]
    fn enter(&mut self) -> Option<(&mut V, u64)> {
        let number = self.gone + self.values.len() as u64 - 1;
        let (value, entries) = self.values.back_mut()?;
        *entries += 1;
        Some((value, number))
    }

    #[inline]
    fn at(&self, number: u64) -> &V {
        &self.values[(number - self.gone) as usize].0
    }

    /// Removes an entry of a value.
    fn leave(&mut self, number: u64) {
        self.values[(number - self.gone) as usize].1 -= 1;
    }

    /// Removes the oldest value if no entry uses it.
    fn take_unused(&mut self) -> Option<V> {
        self.values.front().filter(|(_, entries)| *entries == 0)?;
        self.gone += 1;
        self.values.pop_front().map(|(value, _)| value)
    }
}

impl<T> Sequences<T> {
    /// Maximum allocated bytes that are not in use: spare blocks, and the unused parts of the first and last blocks.
    pub(super) const MOST_UNUSED: usize = (SPARE + 2) * BLOCK;

    pub(super) fn new(features: usize) -> Self {
        let (entries, lens) = (VecDeque::new(), VecDeque::new());
        Self { features, entries, lens, blocks: Numbered::new(), views: Numbered::new(), spare: Vec::new() }
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
        let Some((block, number)) = self.blocks.enter() else { return };
        let place = Place::Block { block: number, start: block.len(), end: block.len() + bytes };
        self.entries.push_back(Entry { about, place });
        self.lens.extend(cells.clone().take(self.features - 1).map(<[u8]>::len));
        cells.for_each(|cells| block.extend_from_slice(cells));
    }

    /// Adds a row of views as a sequence, without a copy of its cells.
    #[inline]
    pub(super) fn push_view(&mut self, about: T, rows: &Arc<Ragged>, row: usize) {
        if self.views.newest().is_none_or(|newest| !Arc::ptr_eq(newest, rows)) {
            self.views.push(rows.clone());
        }
        let Some((_, view)) = self.views.enter() else { return };
        self.entries.push_back(Entry { about, place: Place::View { view, row } });
        let inner = rows.columns().iter().take(self.features - 1);
        self.lens.extend(inner.map(|column| column.cells(row).len()));
    }

    /// Ensures the newest block has room for `bytes` more without reallocating.
    fn make_room(&mut self, bytes: usize) {
        if self.blocks.newest().is_none_or(|block| block.capacity() - block.len() < bytes) {
            let spare = if bytes <= BLOCK { self.spare.pop() } else { None };
            self.blocks.push(spare.unwrap_or_else(|| Vec::with_capacity(bytes.max(BLOCK))));
        }
    }

    /// Calls `run` with the bytes of every feature of the sequence at `at`, counted from the oldest.
    ///
    /// # Panics
    /// If there is no sequence at `at`.
    #[inline]
    pub(super) fn with<R>(&self, at: usize, run: impl FnOnce(&[&[u8]]) -> R) -> R {
        let (block, mut start, end) = match self.entries[at].place {
            Place::Block { block, start, end } => (self.blocks.at(block), start, end),
            Place::View { view, row } => return with_cells_of_row(self.views.at(view), row, run),
        };
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

    /// Reads the cells of a sequence that is a view, so that they are in the cache before they are copied.
    #[inline]
    pub(super) fn touch(&self, at: usize) {
        if let Some(Entry { place: Place::View { view, row }, .. }) = self.entries.get(at) {
            self.views.at(*view).touch(*row..*row + 1, false);
        }
    }

    /// Drops the `count` oldest sequences.
    pub(super) fn forget(&mut self, count: usize) {
        for Entry { place, .. } in self.entries.drain(..count.min(self.entries.len())) {
            match place {
                Place::Block { block, .. } => self.blocks.leave(block),
                Place::View { view, .. } => self.views.leave(view),
            }
        }
        self.lens.drain(..(count * (self.features - 1)).min(self.lens.len()));
        while self.views.take_unused().is_some() {}
        while let Some(mut block) = self.blocks.take_unused() {
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
    use crate::element::{Buffer, DType, RaggedColumn};

    /// Returns rows of two features.
    fn views(rows: &[[Vec<u8>; 2]]) -> Arc<Ragged> {
        let column = |feature: usize| {
            let mut column = RaggedColumn::new(DType::U8, &[], rows.len());
            for (at, row) in rows.iter().enumerate() {
                let memory = column.add_view(Buffer::from_vec(row[feature].clone()));
                column.place(at, memory, 0, row[feature].len()).unwrap();
            }
            column
        };
        let columns = [column(0), column(1)];
        Arc::new(columns.into_iter().fold(Ragged::new(rows.len()), |rows, column| rows.with_column(column).unwrap()))
    }

    #[test]
    fn rows_of_views_are_shared_until_they_are_forgotten() {
        let (rows, mut kept) = (views(&[[vec![1], vec![2, 3]], [vec![4], vec![]]]), Sequences::new(2));
        kept.push_view("a", &rows, 0);
        kept.push("b", [[5u8].as_slice(), &[6]].into_iter());
        kept.push_view("c", &rows, 1);
        assert_eq!((kept.views.values.len(), Arc::strong_count(&rows)), (1, 2));
        kept.with(0, |cells| assert_eq!(cells, [&[1][..], &[2, 3]]));
        kept.with(1, |cells| assert_eq!(cells, [[5], [6]]));
        kept.with(2, |cells| assert_eq!(cells, [&[4][..], &[]]));
        kept.forget(2);
        assert_eq!(Arc::strong_count(&rows), 2);
        kept.forget(1);
        assert_eq!(Arc::strong_count(&rows), 1);
    }

    proptest! {
        /// Compares with a list of owned copies, for sequences from 0 bytes to more than a block, some of them rows of views.
        #[test]
        fn what_went_in_is_there_until_it_is_forgotten(
            steps in prop::collection::vec((0usize..40_000, 0usize..90_000, 0usize..4, any::<bool>()), 1..60),
        ) {
            let (mut kept, mut naive) = (Sequences::new(2), VecDeque::new());
            for (number, (a, b, forget, is_view)) in steps.into_iter().enumerate() {
                let sequence = [vec![number as u8; a], vec![!number as u8; b]];
                if is_view {
                    // The first row is not in the queue.
                    kept.push_view(number, &views(&[[vec![1], vec![2]], sequence.clone()]), 1);
                } else {
                    kept.push(number, sequence.iter().map(Vec::as_slice));
                }
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
            prop_assert!(kept.blocks.values.is_empty() && kept.views.values.is_empty() && kept.spare.len() <= SPARE);
        }
    }

    #[test]
    fn blocks_are_used_again() {
        let mut kept = Sequences::new(1);
        let mut places = std::collections::HashSet::new();
        for _ in 0..1000 {
            kept.push((), std::iter::once([7; 1000].as_slice()));
            places.insert(kept.blocks.at(kept.blocks.gone).as_ptr());
            kept.forget(kept.entries.len() - 10.min(kept.entries.len()));
        }
        assert!(places.len() <= 2, "{}", places.len());
    }
}
