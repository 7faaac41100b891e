//! Records and lengths of the indices that a plan has read last.

use crate::dataset::run::upcoming::Found;
use crate::keys::{Key, KeyBlock};

/// Number of indices that are kept: the elements of a batch, and of the windows of packing stages.
const KEPT: usize = 1 << 16;
/// Largest distance back at which an index is read again because a chunk was interrupted.
const AGAIN: u64 = 1 << 12;

/// The indices of a prefix that were read last, with the source and the lengths of each. An index is at its number
/// modulo [`KEPT`].
pub(super) struct Seen {
    places: Vec<Place>,
    /// Lengths of the single element of each place.
    lens: Vec<u32>,
    /// Number of lengths of an element.
    width: usize,
    /// The address of each source, and the number of its records that were read.
    sources: Vec<(usize, u64)>,
    /// The index after the last index.
    next: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Place {
    /// `u64::MAX` if the place is empty.
    index: u64,
    /// Number of records of the source that were read, including this record.
    pub(super) reads: u64,
    pub(super) source: u32,
    is_single: bool,
}

impl Seen {
    /// Creates room for indices whose elements have `width` lengths.
    pub(super) fn new(width: usize) -> Self {
        let empty = Place { index: u64::MAX, reads: 0, source: 0, is_single: false };
        Self { places: vec![empty; KEPT], lens: vec![0; KEPT * width], width, sources: Vec::new(), next: 0 }
    }

    /// Notes that `indices` were read, which lead to `found`, in order. `block` has their keys after `before` earlier keys.
    pub(super) fn note_block(&mut self, indices: &[u64], found: &[Found], block: &KeyBlock, before: usize) {
        let is_run = indices.iter().zip(self.next..).all(|(index, next)| *index == next);
        if !is_run || !block.is_one_each() {
            for ((index, found), (key, lens)) in indices.iter().zip(found).zip(block.iter().skip(before)) {
                self.note(*index, found, matches!(key, Key::Elements(1)).then_some(lens));
            }
            return;
        }
        let mut lens = block.lens().get(before * self.width..).unwrap_or_default();
        let mut found = found;
        while let Some(at) = (!found.is_empty()).then_some(self.next as usize % KEPT) {
            let (now, later) = found.split_at(found.len().min(KEPT - at));
            self.note_run(now);
            let (now, rest) = lens.split_at(lens.len().min(now.len() * self.width));
            if let Some(kept) = self.lens.get_mut(at * self.width..at * self.width + now.len()) {
                kept.copy_from_slice(now);
            }
            (found, lens) = (later, rest);
        }
    }

    /// Notes the next indices, which end at the last place or before.
    fn note_run(&mut self, found: &[Found]) {
        for run in found.chunk_by(|one, next| one.source == next.source) {
            let Some(first) = run.first() else { continue };
            let (source, from) = (self.number(first.source), self.next as usize % KEPT);
            let (reads, next) = (self.sources[source].1 + 1, self.next);
            for (place, ahead) in self.places[from..].iter_mut().zip(0..run.len() as u64) {
                let (index, reads) = (next + ahead, reads + ahead);
                *place = Place { index, reads, source: source as u32, is_single: true };
            }
            self.sources[source].1 += run.len() as u64;
            self.next += run.len() as u64;
        }
    }

    /// Notes that an index was read. `lens` are the lengths of its element, if it has a single element.
    pub(super) fn note(&mut self, index: u64, found: &Found, lens: Option<&[u32]>) {
        let is_again = index < self.next && index > 0 && self.next - index <= AGAIN;
        let at = index as usize % KEPT;
        if !is_again {
            self.next = index + 1;
            let source = self.number(found.source);
            self.sources[source].1 += 1;
            let reads = self.sources[source].1;
            self.places[at] = Place { index, reads, source: source as u32, is_single: false };
        }
        let place = &mut self.places[at];
        if let Some(lens) = lens.filter(|lens| lens.len() == self.width && place.index == index) {
            place.is_single = true;
            self.lens[at * self.width..][..self.width].copy_from_slice(lens);
        }
    }

    fn number(&mut self, source: usize) -> usize {
        self.sources.iter().position(|(known, _)| *known == source).unwrap_or_else(|| {
            self.sources.push((source, 0));
            self.sources.len() - 1
        })
    }

    /// Returns the source of an index, and the number of records of the source that were read up to it, if the index is kept.
    #[inline]
    pub(super) fn place(&self, index: u64) -> Option<Place> {
        self.places.get(index as usize % KEPT).filter(|place| place.index == index).copied()
    }

    /// Returns the lengths of the single element of an index, if the index is kept.
    #[inline]
    pub(super) fn lens(&self, index: u64) -> Option<&[u32]> {
        self.place(index).filter(|place| place.is_single)?;
        let at = index as usize % KEPT;
        self.lens.get(at * self.width..(at + 1) * self.width)
    }

    /// Returns the address of a source.
    pub(super) fn address(&self, source: usize) -> usize {
        self.sources.get(source).map_or(0, |(address, _)| *address)
    }

    /// Returns the number of sources.
    pub(super) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Returns the largest number of records of the only source that were read up to one of `indices`. Returns `None` if there
    /// are several sources, or if an index is not kept.
    pub(super) fn reads_of_only(&self, indices: impl Iterator<Item = u64>) -> Option<u64> {
        let (mut reads, mut is_kept) = (0, self.sources.len() == 1);
        for index in indices {
            let place = &self.places[index as usize % KEPT];
            is_kept &= place.index == index;
            reads = reads.max(place.reads);
        }
        is_kept.then_some(reads)
    }
}
