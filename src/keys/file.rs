//! A key file that is read.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::block::{Key, KeyBlock};
use super::encoded::{BlockHead, Encoded, GROUP, hash_of};
use super::head::{KeyHead, stale};
use super::index::Index;
use super::recent::Recent;
use super::sealed::Bytes;
use super::{BLOCK, Sums};
use crate::error::{Error, Result};
use crate::mmap::{Access, Mapping, prefetch};

/// Slots in a row that are read together, at least.
const RUN: usize = 16;
/// Slots ahead of the one that is read, of which the place is asked for from memory, and of those half as far ahead the keys themselves.
const AHEAD: usize = 16;

/// A key file, mapped into memory: keys in order, a block at a time, or anywhere.
///
/// Head and index are checked when it is opened, and each block once, when something of it is first read. Any number of threads may read.
///
/// # The user's part
/// Do not change the file while it is read: see [`Mapping`](crate::source::Mapping). [`KeyWriter`](super::KeyWriter) puts a new one in its
/// place, and who has the old one open keeps that.
pub struct KeyFile {
    path: PathBuf,
    bytes: Bytes,
    head: KeyHead,
    /// The hash of the head, from which all others begin.
    seed: u64,
    index: Index,
    id: u64,
    /// A bit for each block that was checked.
    checked: Vec<AtomicU64>,
    sums: Sums,
    recent: Recent,
}

impl KeyFile {
    /// Opens a key file: reads its head and its index, and nothing of its blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be read, [`ErrorKind::Data`](crate::ErrorKind::Data) if it is cut off or damaged,
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if it is of another version. Each says how to make it again.
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        let path = path.as_ref();
        let mapping = Mapping::open(path, Access::Normal).map_err(stale)?;
        Self::of(path, Bytes::Mapped(mapping), Sums::Checked).map(Arc::new)
    }

    /// The same with bytes in memory.
    #[cfg(any(test, fuzzing))]
    pub(super) fn of_bytes(bytes: Vec<u8>, sums: Sums) -> Result<Self> {
        Self::of("x.gmk".as_ref(), Bytes::Held(bytes), sums)
    }

    fn of(path: &Path, bytes: Bytes, sums: Sums) -> Result<Self> {
        let (head, seed, end) = KeyHead::decode(bytes.all(), sums).map_err(|e| e.path(path))?;
        let decoded = Index::decode(bytes.all(), &head, end, seed, sums);
        let (index, id) = decoded.map_err(|e| e.path(path))?;
        let checked = (0..index.blocks.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { path: path.to_owned(), bytes, head, seed, index, id, checked, sums, recent: Recent::default() })
    }

    /// The prefix whose keys it holds.
    pub fn head(&self) -> &KeyHead {
        &self.head
    }

    /// A hash of everything in it: two files of the same hash hold the same keys of the same prefix.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Slots, each with a key.
    pub fn len(&self) -> u64 {
        self.head.len
    }

    /// Whether it has no slots.
    pub fn is_empty(&self) -> bool {
        self.head.len == 0
    }

    /// Elements that all slots yield together.
    pub fn elements(&self) -> u64 {
        self.index.elements
    }

    /// Blocks of [`BLOCK`](super::BLOCK) slots; the last one may have fewer.
    pub fn blocks(&self) -> u64 {
        self.index.blocks.len() as u64
    }

    /// Elements that the blocks in front of block `number` yield together; of one behind the last, all of them.
    pub fn elements_before(&self, number: u64) -> u64 {
        let block = usize::try_from(number).ok().and_then(|number| self.index.blocks.get(number));
        block.map_or(self.index.elements, |block| block.before)
    }

    /// Checks that the keys are those of `wanted`, which may want fewer columns.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) with the first stage, source or column that differs.
    pub fn check(&self, wanted: &KeyHead) -> Result<()> {
        self.head.check(wanted).map_err(|e| e.path(&self.path))
    }

    /// The keys of the slots from `number * BLOCK` on. A few that were asked for last are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the offset if the block is damaged, [`ErrorKind::Config`](crate::ErrorKind::Config)
    /// if there is none of this number.
    ///
    /// # Cost
    /// Some nanoseconds a key; 4 bytes of memory a length, and 4 a slot unless all yield one element.
    pub fn block(&self, number: u64) -> Result<Arc<KeyBlock>> {
        if number >= self.blocks() {
            let text = format!("there is no block {number} of keys, there are {}", self.blocks());
            return Err(Error::config(text).path(&self.path));
        }
        if let Some(block) = self.recent.get(number) {
            return Ok(block);
        }
        let mut block = KeyBlock::new(self.head.columns.len());
        let number = number as usize;
        self.checked(number)?.decode(&mut block).ok_or_else(|| self.changed(number))?;
        let block = Arc::new(block);
        self.recent.keep(number as u64, &block);
        Ok(block)
    }

    /// The key of one slot. The lengths of its elements, as [`KeyBlock::push`] takes them, are put into `lens`, in the place of what is there.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    ///
    /// # Cost
    /// Two or three reads of memory, where the block was checked: nothing is decoded but the key, or what up to 127 slots in front of it yield, where
    /// some yield several elements.
    #[inline]
    pub fn key(&self, slot: u64, lens: &mut Vec<u32>) -> Result<Key> {
        lens.clear();
        self.append(slot, lens)
    }

    /// Appends the keys of these slots, which may be in any order, to a block of as many columns.
    ///
    /// # Errors
    /// As [`block`](Self::block). What stands in front of the slot that failed was appended.
    ///
    /// # Cost
    /// Less than [`key`](Self::key) of each: several are on their way from memory at the same time, and those that follow one another are read as one.
    pub fn gather(&self, slots: &[u64], into: &mut KeyBlock) -> Result<()> {
        if into.columns() != self.head.columns.len() {
            let (columns, room) = (self.head.columns.len(), into.columns());
            return Err(Error::config(format!("keys of {columns} columns for a block of {room}")).path(&self.path));
        }
        let mut behind = 0;
        for (at, &slot) in slots.iter().enumerate() {
            if at < behind {
                continue;
            }
            let run =
                (0..).zip(&slots[at..]).take_while(|(place, next)| next.checked_sub(slot) == Some(*place)).count();
            if run >= RUN {
                self.append_run(slot, run, into)?;
                behind = at + run;
                continue;
            }
            if let Some(&next) = slots.get(at + AHEAD) {
                self.ask_for_place(next);
            }
            if let Some(&next) = slots.get(at + AHEAD / 2) {
                self.ask_for_key(next);
            }
            let begun = into.lens_mut().len();
            match self.append(slot, into.lens_mut()) {
                Ok(key) => into.push_key(key),
                Err(error) => {
                    into.lens_mut().truncate(begun);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Appends the keys of so many slots in a row.
    fn append_run(&self, slot: u64, count: usize, into: &mut KeyBlock) -> Result<()> {
        let Some(end) = slot.checked_add(count as u64).filter(|&end| end <= self.head.len) else {
            return Err(self.outside(self.head.len));
        };
        let mut next = slot;
        while next < end {
            let (number, inside) = split(next);
            let slots = inside % GROUP..GROUP.min(inside % GROUP + (end - next) as usize);
            let group = self.checked(number)?.group(inside / GROUP);
            next += slots.len() as u64;
            group.and_then(|group| group.append(slots, into)).ok_or_else(|| self.changed(number))?;
        }
        Ok(())
    }

    /// Appends the lengths of a slot to `lens`.
    #[inline]
    fn append(&self, slot: u64, lens: &mut Vec<u32>) -> Result<Key> {
        if slot >= self.head.len {
            return Err(self.outside(slot));
        }
        let (number, inside) = split(slot);
        let group = self.checked(number)?.group(inside / GROUP);
        group.and_then(|group| group.key(inside % GROUP, lens)).ok_or_else(|| self.changed(number))
    }

    #[cold]
    fn outside(&self, slot: u64) -> Error {
        Error::config(format!("there is no key {slot}, there are {}", self.head.len)).path(&self.path)
    }

    /// The block that a slot lies in, if it was checked.
    #[inline]
    fn ready(&self, slot: u64) -> Option<(Encoded<'_>, usize)> {
        let (number, inside) = split(slot);
        (slot < self.head.len && self.was_checked(number)).then(|| (self.encoded(number), inside / GROUP))
    }

    #[inline]
    fn ask_for_place(&self, slot: u64) {
        if let Some((block, group)) = self.ready(slot) {
            prefetch(block.place_of(group));
        }
    }

    #[inline]
    fn ask_for_key(&self, slot: u64) {
        if let Some(group) = self.ready(slot).and_then(|(block, group)| block.group(group)) {
            group.prefetch();
        }
    }

    #[inline]
    fn was_checked(&self, number: usize) -> bool {
        self.checked[number / 64].load(Relaxed) >> (number % 64) & 1 == 1
    }

    #[inline]
    fn encoded(&self, number: usize) -> Encoded<'_> {
        let (range, slots, elements) = self.index.block(number, self.head.len);
        let bytes = self.bytes.all().get(range).unwrap_or_default();
        Encoded { bytes, columns: self.head.columns.len(), slots, elements }
    }

    /// A block that there is, which is checked first where it was not.
    #[inline]
    fn checked(&self, number: usize) -> Result<Encoded<'_>> {
        let block = self.encoded(number);
        if !self.was_checked(number) {
            self.check_block(number, block)?;
        }
        Ok(block)
    }

    #[cold]
    fn check_block(&self, number: usize, block: Encoded<'_>) -> Result<()> {
        let entry = self.index.blocks[number];
        let damaged = |text| stale(Error::data(text).path(&self.path).offset(entry.at));
        let Some(head) = block.bytes.first_chunk().map(BlockHead::from_bytes) else {
            return Err(damaged(format!("block {number} is cut off")));
        };
        let hash = hash_of(block.bytes, self.seed);
        if let Some(written) = [head.hash, entry.hash].into_iter().find(|&written| self.sums.differ(written, hash)) {
            return Err(damaged(format!("the hash of block {number} is {written:#018x}, computed {hash:#018x}")));
        }
        let found = (head.number, head.before, head.bytes as usize, head.slots as usize, head.elements as usize);
        let wanted = (number as u64, entry.before, block.bytes.len(), block.slots, block.elements);
        if found != wanted || !block.is_whole() {
            return Err(damaged(format!("block {number} is not the one that the index names")));
        }
        self.checked[number / 64].fetch_or(1 << (number % 64), Relaxed);
        Ok(())
    }

    /// The error of a block that was right when it was checked.
    #[cold]
    fn changed(&self, number: usize) -> Error {
        let error = Error::data(format!("block {number} was changed while it was read"));
        stale(error.path(&self.path).offset(self.index.blocks[number].at))
    }
}

/// The block of a slot, and its place there.
#[inline]
fn split(slot: u64) -> (usize, usize) {
    ((slot / BLOCK as u64) as usize, (slot % BLOCK as u64) as usize)
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, len, elements) = (self.path.display(), self.head.len, self.index.elements);
        write!(f, "KeyFile({path}: {len} slots, {elements} elements, columns {:?})", self.head.columns)
    }
}
