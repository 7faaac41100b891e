//! Records and lengths of the indices that a plan has read last.

use crate::dataset::run::upcoming::Found;

/// Number of indices that are kept.
const KEPT: usize = 1 << 15;
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
struct Place {
    /// `u64::MAX` if the place is empty.
    index: u64,
    /// Number of records of the source that were read, including this record.
    reads: u64,
    source: u32,
    is_single: bool,
}

impl Seen {
    /// Creates room for indices whose elements have `width` lengths.
    pub(super) fn new(width: usize) -> Self {
        let empty = Place { index: u64::MAX, reads: 0, source: 0, is_single: false };
        Self { places: vec![empty; KEPT], lens: vec![0; KEPT * width], width, sources: Vec::new(), next: 0 }
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

    /// Returns the lengths of the single element of an index, if the index is kept.
    pub(super) fn lens(&self, index: u64) -> Option<&[u32]> {
        let at = index as usize % KEPT;
        self.places.get(at).filter(|place| place.index == index && place.is_single)?;
        self.lens.get(at * self.width..(at + 1) * self.width)
    }

    /// Returns the address of the source of an index, and the number of records of the source that were read up to it,
    /// if the index is kept.
    pub(super) fn origin(&self, index: u64) -> Option<(usize, u64)> {
        let place = self.places.get(index as usize % KEPT).filter(|place| place.index == index)?;
        Some((self.sources.get(place.source as usize)?.0, place.reads))
    }
}
