//! Encoding of a block in a key file: see [the layout](super#layout).

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::bits::{Frame, Packed, SLACK};
use super::block::{Key, KeyBlock, ONE};
use crate::error::{Error, Result};
use crate::mmap::prefetch;
use crate::units::grouped;

/// Slots per group; each group has its own frames.
pub(super) const GROUP: usize = 128;
/// Maximum number of lengths in a block; decoding takes four bytes of memory for each.
const MOST_LENS: u64 = 1 << 26;
/// Bytes per group in the directory of a block: four for the group's offset, four for the elements before the group.
const PLACE: usize = 8;

/// Bytes of a group that are prefetched before a key is read: about the size of a group of text lengths.
const PREFETCHED: usize = 256;

/// Head of a block: its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHead {
    /// Hash of the rest of the block.
    pub(super) hash: u64,
    /// Number of earlier blocks in the file.
    pub(super) number: u64,
    /// Number of elements in earlier blocks of the file.
    pub(super) before: u64,
    /// Length of the block in bytes, including this head.
    pub(super) bytes: u32,
    pub(super) slots: u32,
    pub(super) elements: u32,
}

impl BlockHead {
    pub(super) const BYTES: usize = 36;
    /// Length of the hash, which the hash does not cover.
    const UNHASHED: usize = 8;

    fn to_bytes(self) -> Vec<u8> {
        let wide = [self.hash, self.number, self.before].into_iter().flat_map(u64::to_le_bytes);
        wide.chain([self.bytes, self.slots, self.elements].into_iter().flat_map(u32::to_le_bytes)).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let wide = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[8 * at + i]));
        let narrow = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[24 + 4 * at + i]));
        let (hash, number, before) = (wide(0), wide(1), wide(2));
        Self { hash, number, before, bytes: narrow(0), slots: narrow(1), elements: narrow(2) }
    }
}

/// Returns the hash of a whole block. The hash of the file's head is the seed, so a block of another file does not match.
pub(super) fn hash_of(block: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(block.get(BlockHead::UNHASHED..).unwrap_or_default(), seed)
}

/// Encodes a block into `out` and replaces the previous content.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if the block has too many elements or lengths.
pub(super) fn encode(block: &KeyBlock, number: u64, before: u64, seed: u64, out: &mut Vec<u8>) -> Result<BlockHead> {
    let elements = u32::try_from(block.elements()).ok().filter(|_| block.lens().len() as u64 <= MOST_LENS);
    let elements = elements.ok_or_else(|| too_many(block))?;
    let groups = block.len().div_ceil(GROUP);
    out.clear();
    out.resize(BlockHead::BYTES + groups * PLACE, 0);
    let mut lens = block.lens();
    let mut done = 0;
    for group in 0..groups {
        let place = BlockHead::BYTES + group * PLACE;
        let (at, begun) = (out.len() as u32, done as u32);
        out[place..place + 4].copy_from_slice(&at.to_le_bytes());
        out[place + 4..place + PLACE].copy_from_slice(&begun.to_le_bytes());
        let slots = group * GROUP..block.len().min((group + 1) * GROUP);
        let elements: u64 = slots.clone().map(|slot| u64::from(Key::of_code(block.code(slot)).elements())).sum();
        let (ours, rest) = lens.split_at(elements as usize * block.columns());
        encode_group(slots.map(|slot| block.code(slot)), ours, block.columns(), out);
        (lens, done) = (rest, done + elements);
    }
    out.resize(out.len() + SLACK, 0);
    let (bytes, slots) = (out.len() as u32, block.len() as u32);
    let head = BlockHead { hash: 0, number, before, bytes, slots, elements };
    out[..BlockHead::BYTES].copy_from_slice(&head.to_bytes());
    let hash = hash_of(out, seed);
    out[..BlockHead::UNHASHED].copy_from_slice(&hash.to_le_bytes());
    Ok(BlockHead { hash, ..head })
}

fn encode_group(codes: impl Iterator<Item = u32> + Clone, lens: &[u32], columns: usize, out: &mut Vec<u8>) {
    let column = |column: usize| lens.iter().copied().skip(column).step_by(columns);
    let of_codes = Frame::of(codes.clone());
    let of_lens: Vec<Frame> = (0..columns).map(|at| Frame::of(column(at))).collect();
    out.extend(of_codes.to_bytes());
    of_lens.iter().for_each(|frame| out.extend(frame.to_bytes()));
    of_codes.pack(codes, out);
    of_lens.iter().enumerate().for_each(|(at, frame)| frame.pack(column(at), out));
}

#[cold]
fn too_many(block: &KeyBlock) -> Error {
    let (lens, slots) = (grouped(block.lens().len() as u64), grouped(block.len() as u64));
    Error::config(format!(
        "{slots} slots in a row yield {} elements with {lens} lengths, and a block of a key file holds {} elements and {} lengths at most",
        grouped(block.elements()),
        grouped(u32::MAX.into()),
        grouped(MOST_LENS)
    ))
    .help("yield fewer elements of a record, or split records before they are read")
}

/// Bytes of an encoded block, with its expected columns, slots and elements.
///
/// Methods return `None` if the bytes are not a valid block; this cannot happen once [`is_whole`](Self::is_whole) has returned true.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoded<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) columns: usize,
    pub(super) slots: usize,
    pub(super) elements: usize,
}

impl<'a> Encoded<'a> {
    /// Returns true if every group is complete and at its expected place.
    pub(super) fn is_whole(self) -> bool {
        self.check().is_some()
    }

    fn check(self) -> Option<()> {
        let few = self.elements as u64 <= u32::MAX.into() && self.elements as u64 * self.columns as u64 <= MOST_LENS;
        let groups = self.slots.div_ceil(GROUP);
        let (mut at, mut done) = (BlockHead::BYTES + groups * PLACE, 0);
        for number in 0..groups {
            let group = self.group(number)?;
            if (group.at, group.before) != (at, done) {
                return None;
            }
            let codes = group.codes()?;
            let elements = match codes.frame.only() {
                Some(code) => u64::from(Key::of_code(code).elements()) * codes.iter().len() as u64,
                None => codes.iter().map(|code| u64::from(Key::of_code(code).elements())).sum(),
            };
            if elements != group.elements as u64 {
                return None;
            }
            (at, done) = (group.end()?, done + group.elements);
        }
        (few && done == self.elements && at.checked_add(SLACK)? == self.bytes.len()).then_some(())
    }

    /// Returns group `number` of the block.
    #[inline]
    pub(super) fn group(self, number: usize) -> Option<Group<'a>> {
        let place = |number: usize| {
            let [a, b, c, d, e, f, g, h] = *self.bytes.get(BlockHead::BYTES + number * PLACE..)?.first_chunk()?;
            Some((u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize))
        };
        let begun = number * GROUP;
        let (at, before) = place(number)?;
        let slots = self.slots.checked_sub(begun)?.min(GROUP);
        let end = if slots < GROUP || begun + GROUP == self.slots { self.elements } else { place(number + 1)?.1 };
        let elements = end.checked_sub(before)?;
        Some(Group { at, before, slots, elements, columns: self.columns, bytes: self.bytes.get(at..)? })
    }

    /// Returns the directory entry of a group.
    #[inline]
    pub(super) fn place_of(self, number: usize) -> &'a [u8] {
        let Some(place) = self.bytes.get(BlockHead::BYTES + number * PLACE..) else { return &[] };
        &place[..place.len().min(PLACE)]
    }

    /// Appends all keys to a block with the same number of columns.
    pub(super) fn decode(self, into: &mut KeyBlock) -> Option<()> {
        into.lens_mut().reserve(self.elements * self.columns);
        for number in 0..self.slots.div_ceil(GROUP) {
            let group = self.group(number)?;
            match self.columns {
                0 => {}
                1 => into.lens_mut().extend(group.column(0)?.iter()),
                columns => {
                    let lens = into.lens_mut();
                    let begun = lens.len();
                    lens.resize(begun + group.elements * columns, 0);
                    for column in 0..columns {
                        let room = lens[begun..].iter_mut().skip(column).step_by(columns);
                        room.zip(group.column(column)?.iter()).for_each(|(len, value)| *len = value);
                    }
                }
            }
            group.codes()?.iter().for_each(|code| into.push_key(Key::of_code(code)));
        }
        Some(())
    }
}

/// Group of slots in an encoded block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group<'a> {
    /// Offset of the group in the block.
    at: usize,
    /// Number of elements in earlier groups of the block.
    before: usize,
    slots: usize,
    elements: usize,
    columns: usize,
    /// Bytes from the start of the group to the end of the block.
    bytes: &'a [u8],
}

impl<'a> Group<'a> {
    /// Prefetches the bytes from which a key of the group is likely to be read.
    #[inline]
    pub(super) fn prefetch(self) {
        prefetch(&self.bytes[..self.bytes.len().min(PREFETCHED)]);
    }

    /// Returns a frame: 0 is the frame of the codes, `1 + column` the frame of a column.
    #[inline]
    fn frame(self, number: usize) -> Option<Frame> {
        Frame::from_bytes(*self.bytes.get(number * Frame::BYTES..)?.first_chunk()?)
    }

    /// Returns the offset of the packed numbers, after the frames.
    #[inline]
    fn packed(self) -> usize {
        (1 + self.columns) * Frame::BYTES
    }

    /// Returns the codes of the slots.
    #[inline]
    fn codes(self) -> Option<Packed<'a>> {
        Packed::new(self.frame(0)?, self.slots, self.bytes.get(self.packed()..)?)
    }

    /// Returns the offset of a column's lengths in the group. With the number of columns, returns the end of the group.
    #[inline]
    fn start_of(self, column: usize) -> Option<usize> {
        let mut start = self.packed() + self.frame(0)?.bytes_for(self.slots);
        for before in 0..column {
            start += self.frame(1 + before)?.bytes_for(self.elements);
        }
        Some(start)
    }

    /// Returns the lengths of all elements in a column.
    #[inline]
    fn column(self, column: usize) -> Option<Packed<'a>> {
        let start = self.start_of(column)?;
        Packed::new(self.frame(1 + column)?, self.elements, self.bytes.get(start..)?)
    }

    /// Returns the end of the group in the block, if the block is long enough.
    fn end(self) -> Option<usize> {
        let end = self.at + self.start_of(self.columns)?;
        (end <= self.at + self.bytes.len()).then_some(end)
    }

    /// Appends the keys of a range of slots to a block with the same number of columns.
    pub(super) fn append(self, slots: Range<usize>, into: &mut KeyBlock) -> Option<()> {
        let is_one_each = self.codes()?.frame.only() == Some(ONE) && self.columns == 1;
        if is_one_each && slots.end <= self.elements {
            let column = self.column(0)?;
            into.lens_mut().extend(slots.clone().map(|at| column.get(at)));
            into.push_ones(slots.len());
            return Some(());
        }
        for slot in slots {
            let key = self.key(slot, into.lens_mut())?;
            into.push_key(key);
        }
        Some(())
    }

    /// Returns the key of a slot, and appends its lengths to `lens`.
    #[inline]
    pub(super) fn key(self, slot: usize, lens: &mut Vec<u32>) -> Option<Key> {
        let codes = self.codes()?;
        let (key, first) = match codes.frame.only() {
            Some(code) => (Key::of_code(code), slot * Key::of_code(code).elements() as usize),
            None if codes.frame.is_bitmap() => (Key::of_code(codes.get(slot)), codes.ones(slot)),
            None => {
                let elements = |code| Key::of_code(code).elements() as usize;
                (Key::of_code(codes.get(slot)), (0..slot).map(|slot| elements(codes.get(slot))).sum())
            }
        };
        let end = first.checked_add(key.elements() as usize).filter(|&end| end <= self.elements)?;
        if self.columns == 1 {
            let packed = self.column(0)?;
            lens.extend((first..end).map(|at| packed.get(at)));
        } else {
            for at in first..end {
                for column in 0..self.columns {
                    lens.push(self.column(column)?.get(at));
                }
            }
        }
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(block: &KeyBlock) -> Vec<u8> {
        let mut bytes = Vec::new();
        let head = encode(block, 3, 70, 9, &mut bytes).unwrap();
        assert_eq!(BlockHead::from_bytes(bytes.first_chunk().unwrap()), head);
        assert_eq!((head.bytes as usize, head.slots as usize), (bytes.len(), block.len()));
        assert_eq!((head.number, head.before, head.hash), (3, 70, hash_of(&bytes, 9)));
        bytes
    }

    fn view<'a>(block: &KeyBlock, bytes: &'a [u8]) -> Encoded<'a> {
        Encoded { bytes, columns: block.columns(), slots: block.len(), elements: block.elements() as usize }
    }

    #[test]
    fn what_is_all_equal_takes_a_place_and_frames() {
        let mut block = KeyBlock::new(1);
        (0..10 * GROUP).for_each(|_| block.push(1, &[4096]).unwrap());
        let bytes = encoded(&block);
        assert_eq!(bytes.len(), BlockHead::BYTES + 10 * (PLACE + 2 * Frame::BYTES) + SLACK);
        assert!(view(&block, &bytes).is_whole());
    }

    #[test]
    fn a_group_lies_behind_the_one_before_it() {
        let mut block = KeyBlock::new(1);
        (0..3 * GROUP).for_each(|_| block.push(1, &[4096]).unwrap());
        let mut bytes = encoded(&block);
        assert!(view(&block, &bytes).is_whole());
        // Group 1 points at the bytes of group 0, which are equal to its own.
        bytes.copy_within(BlockHead::BYTES..BlockHead::BYTES + 4, BlockHead::BYTES + PLACE);
        assert!(!view(&block, &bytes).is_whole());
    }

    #[test]
    fn an_outlier_widens_its_group_alone() {
        let size = |outlier: u32| {
            let mut block = KeyBlock::new(1);
            (0..100 * GROUP as u32).for_each(|i| block.push(1, &[if i == 5000 { outlier } else { i % 512 }]).unwrap());
            encoded(&block).len()
        };
        assert_eq!(size(u32::MAX) - size(0), (32 - 9) * GROUP / 8);
    }

    #[test]
    fn a_block_has_no_more_lengths_than_memory_for_them() {
        let mut block = KeyBlock::new(0);
        block.push(Key::MOST, &[]).unwrap();
        assert!(view(&block, &encoded(&block)).is_whole());
        block.push(2, &[]).unwrap();
        let error = encode(&block, 0, 0, 0, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("2 slots in a row yield 4 294 967 296 elements"), "{error}");
        // Equal lengths take no bytes, so a small file can claim a huge number of them.
        let mut block = KeyBlock::new(1);
        block.push(1, &[7]).unwrap();
        let mut bytes = encoded(&block);
        let code = Key::Elements(1 << 27).code().to_le_bytes();
        let at = BlockHead::BYTES + PLACE + 1;
        bytes[at..at + 4].copy_from_slice(&code);
        assert!(!Encoded { bytes: &bytes, columns: 1, slots: 1, elements: 1 << 27 }.is_whole());
        assert!(!Encoded { bytes: &bytes, columns: 1, slots: 1, elements: 1 }.is_whole());
        let small = Key::Elements(1 << 20).code().to_le_bytes();
        bytes[at..at + 4].copy_from_slice(&small);
        assert!(Encoded { bytes: &bytes, columns: 1, slots: 1, elements: 1 << 20 }.is_whole());
    }
}
