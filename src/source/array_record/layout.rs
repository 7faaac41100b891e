//! Offsets of the bytes of a chunk: a block header interrupts the chunk at every multiple of 65,536.

use std::borrow::Cow;
use std::ops::Range;

use super::super::pieces::Pieces;

/// Distance from one block header to the next, in bytes.
pub(super) const BLOCK: u64 = 1 << 16;
pub(super) const BLOCK_HEADER: u64 = 24;
/// Bytes per block that hold chunks.
const USABLE: u64 = BLOCK - BLOCK_HEADER;

/// Returns the end of `len` chunk bytes that begin at `begin`, counting the block headers between them.
pub(super) fn end_of(begin: u64, len: u64) -> Option<u64> {
    let before = begin.checked_add(USABLE - 1)? % BLOCK;
    let headers = len.checked_add(before)? / USABLE;
    begin.checked_add(len)?.checked_add(headers * BLOCK_HEADER)
}

/// Returns the first valid offset of a chunk at or after `at`. A chunk never starts in a block header or directly after
/// it.
pub(super) fn round_up(at: u64) -> Option<u64> {
    let to_block = at.wrapping_neg() % BLOCK;
    at.checked_add(to_block.saturating_sub(USABLE - 1))
}

// The bytes between two block headers are inside one block of a store.
const _: () = assert!(crate::store::BLOCK.is_multiple_of(BLOCK));

/// Bytes of a chunk: the bytes of the file from `begin` on, without the block headers.
#[derive(Clone, Copy)]
pub(super) struct Span<'a> {
    file: &'a Pieces<'a>,
    begin: u64,
    pub(super) len: u64,
}

impl<'a> Span<'a> {
    /// Returns `None` if a chunk cannot begin at `begin`, or if the span exceeds `limit` or the loaded part of the
    /// file.
    pub(super) fn new(file: &'a Pieces<'a>, begin: u64, len: u64, limit: u64) -> Option<Self> {
        let here = file.range();
        let fits = end_of(begin, len)? <= limit.min(here.end);
        (fits && begin >= here.start && round_up(begin)? == begin).then_some(Self { file, begin, len })
    }

    /// Returns the file offset of byte `at` of the chunk.
    fn place(self, at: u64) -> u64 {
        place(self.begin, at)
    }

    /// Returns bytes `range` as slices of the file, split at the block headers.
    pub(super) fn pieces(self, range: Range<u64>) -> impl Iterator<Item = &'a [u8]> {
        let mut left = range.end.min(self.len).saturating_sub(range.start);
        let mut at = self.place(range.start);
        std::iter::from_fn(move || {
            let take = left.min(BLOCK - at % BLOCK);
            let piece = self.file.get(at..at + take).filter(|_| take > 0)?;
            left -= take;
            at += take + BLOCK_HEADER;
            Some(piece)
        })
    }

    /// Returns bytes `range`; copies them only if a block header is among them.
    pub(super) fn read(self, range: Range<u64>) -> Cow<'a, [u8]> {
        let len = range.end.min(self.len).saturating_sub(range.start);
        let mut pieces = self.pieces(range);
        let first = pieces.next().unwrap_or_default();
        if first.len() as u64 == len {
            return Cow::Borrowed(first);
        }
        let mut bytes = Vec::with_capacity(len as usize);
        bytes.extend_from_slice(first);
        pieces.for_each(|piece| bytes.extend_from_slice(piece));
        Cow::Owned(bytes)
    }

    #[cfg(test)]
    fn unbroken(self, range: Range<u64>) -> Option<Range<u64>> {
        unbroken(self.begin, range).filter(|place| place.end <= self.file.range().end)
    }
}

/// Returns the file offset of byte `at` of a chunk that begins at `begin`.
fn place(begin: u64, at: u64) -> u64 {
    at.checked_add(1).and_then(|len| end_of(begin, len)).map_or(0, |end| end - 1)
}

/// Returns the place of bytes `range` of a chunk in the file, or `None` if a block header is among them.
pub(super) fn unbroken(begin: u64, range: Range<u64>) -> Option<Range<u64>> {
    let (start, len) = (place(begin, range.start), range.end.checked_sub(range.start)?);
    (len <= BLOCK - start % BLOCK).then(|| start..start + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the end byte by byte, over every header.
    fn naive_end(begin: u64, len: u64) -> u64 {
        let mut at = begin;
        for _ in 0..len {
            if at.is_multiple_of(BLOCK) {
                at += BLOCK_HEADER;
            }
            at += 1;
        }
        at
    }

    #[test]
    fn ends_are_those_of_counting() {
        for begin in [0, 25, 64, 1000, BLOCK - 41, BLOCK - 1, BLOCK, BLOCK + 25] {
            for len in [0, 1, 39, 40, 41, USABLE - 64, USABLE - 1, USABLE, USABLE + 1, 2 * USABLE, 200_000] {
                assert_eq!(end_of(begin, len), Some(naive_end(begin, len)), "{len} bytes from {begin}");
            }
        }
        assert_eq!(end_of(64, u64::MAX), None);
        assert_eq!(end_of(u64::MAX - 1, 1), None);
    }

    #[test]
    fn no_chunk_begins_in_or_right_behind_a_block_header() {
        let begins = |at| round_up(at) == Some(at);
        assert!([0, 25, 64, BLOCK - 1, BLOCK, BLOCK + 25].into_iter().all(begins));
        for at in 1..=24 {
            assert_eq!(round_up(BLOCK + at), Some(BLOCK + 25));
        }
    }

    #[test]
    fn headers_are_left_out() {
        let file: Vec<u8> = (0..3 * BLOCK).map(|at| if at % BLOCK < 24 { 0xff } else { (at % 251) as u8 }).collect();
        let bytes: Vec<u8> = (100..3 * BLOCK).filter(|at| at % BLOCK >= 24).map(|at| (at % 251) as u8).collect();
        for file in ways(&file) {
            let span = Span::new(&file, 100, bytes.len() as u64, u64::MAX).unwrap();
            for range in
                [0..0, 0..10, 65_400..65_500, 65_435..65_436, 65_436..65_437, 0..bytes.len() as u64, 70_000..140_000]
            {
                let want = &bytes[range.start as usize..range.end as usize];
                assert_eq!(span.read(range.clone()), want, "{range:?}");
                let unbroken = span.unbroken(range.clone());
                assert_eq!(unbroken.is_some(), span.pieces(range.clone()).count() <= 1, "{range:?}");
                assert!(unbroken.is_none_or(|place| file.get(place).unwrap() == want), "{range:?}");
            }
            assert!(Span::new(&file, 100, bytes.len() as u64 + 1, u64::MAX).is_none());
            assert!(Span::new(&file, 100, 10, 109).is_none());
        }
    }

    /// Returns the file in each representation of [`Pieces`].
    fn ways(file: &[u8]) -> Vec<Pieces<'_>> {
        use crate::element::Buffer;
        use crate::store::BLOCK;
        let end = file.len() as u64;
        let block = |first: u64| Buffer::copy_from(&file[first.max(90) as usize..end.min(first + BLOCK) as usize]);
        // Bytes before offset 90 are not loaded.
        let far = Pieces::Far { at: 90, end, blocks: (0..end).step_by(BLOCK as usize).map(block).collect() };
        assert!(Span::new(&far, 64, 10, u64::MAX).is_none());
        vec![Pieces::All(file), far]
    }
}
