//! Index of blocks and trailer of a key file.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::encoded::BlockHead;
use super::head::{KeyHead, stale};
use super::{BLOCK, Sums, slots_of};
use crate::error::{Error, Result};
use crate::units::grouped;

/// Last bytes of every key file.
const END: &[u8; 8] = b"gmkeyend";
/// Length of the trailer: offset of the index, elements of all blocks, the hash, and [`END`].
const TRAILER: usize = 32;
/// Bytes of the trailer that the hash covers, in addition to the index.
const HASHED: usize = 16;

/// Index entry of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Offset of the block in the file.
    pub(super) at: u64,
    /// Number of elements in earlier blocks.
    pub(super) before: u64,
    /// Hash of the block.
    pub(super) hash: u64,
}

impl Entry {
    const BYTES: usize = 24;

    fn to_bytes(self) -> impl Iterator<Item = u8> {
        [self.at, self.before, self.hash].into_iter().flat_map(u64::to_le_bytes)
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self { at: number(bytes, 0), before: number(bytes, 1), hash: number(bytes, 2) }
    }
}

/// Reads the `i`-th number of `bytes`.
fn number(bytes: &[u8], i: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * i + byte]))
}

/// Index of all blocks of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) blocks: Vec<Entry>,
    /// Offset of the end of the last block.
    pub(super) end: u64,
    /// Number of elements of all blocks.
    pub(super) elements: u64,
}

impl Index {
    /// Creates an index without blocks, for a file whose head ends at `end`.
    pub(super) fn empty(end: usize) -> Self {
        Self { blocks: Vec::new(), end: end as u64, elements: 0 }
    }

    /// Appends a block that begins at the end of the last block.
    pub(super) fn push(&mut self, block: BlockHead) {
        self.blocks.push(Entry { at: self.end, before: self.elements, hash: block.hash });
        self.end += u64::from(block.bytes);
        self.elements += u64::from(block.elements);
    }

    /// Returns the index and the trailer as bytes. `seed` is the hash of the file's head.
    pub(super) fn encode(&self, seed: u64) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.blocks.iter().copied().flat_map(Entry::to_bytes).collect();
        bytes.extend([self.end, self.elements].into_iter().flat_map(u64::to_le_bytes));
        let hash = xxh3_64_with_seed(&bytes, seed);
        bytes.extend(hash.to_le_bytes());
        bytes.extend(END);
        bytes
    }

    /// Reads the index at the end of `file`, whose head ends at `head_end`. Returns the index and its hash.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the offset if the index is truncated or damaged.
    pub(super) fn decode(file: &[u8], head: &KeyHead, head_end: usize, seed: u64, sums: Sums) -> Result<(Self, u64)> {
        let len = file.len();
        let cut = |text: String| stale(Error::data(text).offset(len as u64));
        if !file.ends_with(END) {
            return Err(cut("the file is cut off, or was not written to its end".into()));
        }
        let blocks = head.len.div_ceil(BLOCK as u64);
        let begin =
            usize::try_from(blocks).ok().and_then(|blocks| blocks.checked_mul(Entry::BYTES)?.checked_add(TRAILER));
        let begin = begin.and_then(|bytes| len.checked_sub(bytes)).filter(|&begin| begin >= head_end);
        let begin = begin
            .ok_or_else(|| cut(format!("{} bytes cannot hold {} keys", grouped(len as u64), grouped(head.len))))?;
        let damaged = |text: String| stale(Error::data(text).offset(begin as u64));
        let (hashed, rest) = file[begin..].split_at(len - begin - TRAILER + HASHED);
        let (written, hash) = (number(rest, 0), xxh3_64_with_seed(hashed, seed));
        if sums.differ(written, hash) {
            return Err(damaged(format!("the hash of the index is {written:#018x}, computed {hash:#018x}")));
        }
        let (entries, trailer) = hashed.split_at(hashed.len() - HASHED);
        let blocks = entries.as_chunks().0.iter().map(Entry::from_bytes).collect();
        let index = Self { blocks, end: number(trailer, 0), elements: number(trailer, 1) };
        match index.is_sound(head_end as u64, begin as u64) {
            true => Ok((index, written)),
            false => Err(damaged("the index contains impossible blocks".into())),
        }
    }

    /// Returns true if the blocks are contiguous from the head to the index.
    fn is_sound(&self, head_end: u64, begin: u64) -> bool {
        let ends = self.blocks.iter().skip(1).map(|block| (block.at, block.before)).chain([(self.end, self.elements)]);
        let ordered = self.blocks.iter().zip(ends).all(|(block, (end, elements))| {
            block.at.checked_add(BlockHead::BYTES as u64).is_some_and(|least| least <= end)
                && elements.checked_sub(block.before).is_some_and(|elements| u32::try_from(elements).is_ok())
        });
        let first = self.blocks.first().map_or((self.end, self.elements), |block| (block.at, block.before));
        ordered && first == (head_end, 0) && self.end == begin
    }

    /// Returns the expected bytes of a block in the file, its slots and its elements.
    #[inline]
    pub(super) fn block(&self, number: usize, len: u64) -> (std::ops::Range<usize>, usize, usize) {
        let Entry { at, before, .. } = self.blocks[number];
        let (end, elements) =
            self.blocks.get(number + 1).map_or((self.end, self.elements), |next| (next.at, next.before));
        (at as usize..end as usize, slots_of(number as u64, len), (elements - before) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_of_blocks_that_cannot_be_is_refused() {
        let head = KeyHead::new("", BLOCK as u64 + 1);
        let block = |number| BlockHead { hash: number, number, before: 0, bytes: 100, slots: 1, elements: 5 };
        let mut index = Index::empty(10);
        index.push(block(0));
        index.push(block(1));
        let file = |index: &Index| [vec![b'x'; 210], index.encode(3)].concat();
        let (found, hash) = Index::decode(&file(&index), &head, 10, 3, Sums::Checked).unwrap();
        assert_eq!((&found, found.elements, found.end), (&index, 10, 210));
        assert_eq!(hash.to_le_bytes(), index.encode(3)[2 * Entry::BYTES + HASHED..][..8]);
        assert_eq!(found.block(1, head.len), (110..210, 1, 5));
        assert!(Index::decode(&file(&index), &head, 10, 4, Sums::Checked).is_err());
        let changes: [fn(&mut Index); 7] = [
            |index| index.blocks[1].at = 20,
            |index| index.blocks[1].at = u64::MAX,
            |index| index.blocks[0].at = 11,
            |index| index.blocks[1].before = 11,
            |index| index.blocks[1].before = u64::MAX,
            |index| index.end = 209,
            |index| index.elements = 1 << 40,
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut other = index.clone();
            change(&mut other);
            let error = Index::decode(&file(&other), &head, 10, 3, Sums::Checked).unwrap_err();
            assert_eq!(error.message(), "the index contains impossible blocks", "{at}");
        }
        let many = KeyHead::new("", 1 << 48);
        let error = Index::decode(&file(&index), &many, 10, 3, Sums::Checked).unwrap_err();
        assert_eq!(error.to_string(), "byte 290: 290 bytes cannot hold 281 474 976 710 656 keys");
    }
}
