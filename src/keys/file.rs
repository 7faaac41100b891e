//! Reader of key files.

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

/// Minimum number of consecutive slots that are read as one run.
const RUN: usize = 16;
/// Prefetch distance in slots for a group's directory entry; the keys are prefetched at half this distance.
const AHEAD: usize = 16;

/// Key file, mapped into memory. Keys can be read in order, by block, or at random.
///
/// Opening the file checks its head and its index. Each block is checked once, on its first read. Any number of threads may read.
///
/// # The user's part
/// Do not change the file while it is open: see [`Mapping`](crate::source::Mapping). [`KeyWriter`](super::KeyWriter) replaces a file by
/// renaming a new file over it, and open readers keep the old file.
pub struct KeyFile {
    path: PathBuf,
    bytes: Bytes,
    head: KeyHead,
    /// Hash of the head, the seed of all other hashes.
    seed: u64,
    index: Index,
    id: u64,
    /// Bitmap of the blocks that have been checked.
    checked: Vec<AtomicU64>,
    sums: Sums,
    recent: Recent,
}

impl KeyFile {
    /// Opens a key file. Reads its head and its index, but no block.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read, [`ErrorKind::Data`](crate::ErrorKind::Data) if it is truncated or
    /// damaged, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if its version is unsupported. The help names the remedy.
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        let path = path.as_ref();
        let mapping = Mapping::open(path, Access::Normal).map_err(stale)?;
        Self::of(path, Bytes::Mapped(mapping), Sums::Checked).map(Arc::new)
    }

    /// Opens a key file from bytes in memory.
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

    /// Returns the head, which identifies the prefix.
    pub fn head(&self) -> &KeyHead {
        &self.head
    }

    /// Returns a hash of the whole content. Files with equal ids hold the same keys of the same prefix.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of slots; each slot has a key.
    pub fn len(&self) -> u64 {
        self.head.len
    }

    /// Returns true if the file has no slots.
    pub fn is_empty(&self) -> bool {
        self.head.len == 0
    }

    /// Returns the total number of elements of all slots.
    pub fn elements(&self) -> u64 {
        self.index.elements
    }

    /// Returns the number of blocks of [`BLOCK`](super::BLOCK) slots; the last block may have fewer slots.
    pub fn blocks(&self) -> u64 {
        self.index.blocks.len() as u64
    }

    /// Returns the number of elements before block `number`, or of the whole file if there is no such block.
    pub fn elements_before(&self, number: u64) -> u64 {
        let block = usize::try_from(number).ok().and_then(|number| self.index.blocks.get(number));
        block.map_or(self.index.elements, |block| block.before)
    }

    /// Checks that this file holds the keys of `wanted`, which may have fewer columns.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) with the first difference in stages, sources or columns.
    pub fn check(&self, wanted: &KeyHead) -> Result<()> {
        self.head.check(wanted).map_err(|e| e.path(&self.path))
    }

    /// Returns the keys of the slots from `number * BLOCK` on. A few recently used blocks are cached.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the offset if the block is damaged, [`ErrorKind::Config`](crate::ErrorKind::Config)
    /// if the file has no such block.
    ///
    /// # Cost
    /// Some nanoseconds per key. Takes 4 bytes of memory per length, and 4 per slot unless every slot yields one element.
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

    /// Returns the key of a slot, and replaces the content of `lens` with its lengths, as in [`KeyBlock::push`].
    ///
    /// # Errors
    /// As [`block`](Self::block).
    ///
    /// # Cost
    /// Two or three memory reads if the block has been checked. Decodes only this key. If some slots yield several elements, the call also
    /// sums the counts of up to 127 earlier slots.
    #[inline]
    pub fn key(&self, slot: u64, lens: &mut Vec<u32>) -> Result<Key> {
        lens.clear();
        self.append(slot, lens)
    }

    /// Appends the keys of `slots`, in any order, to a block with the same number of columns.
    ///
    /// # Errors
    /// As [`block`](Self::block). The keys before the failed slot have been appended.
    ///
    /// # Cost
    /// Less than calling [`key`](Self::key) for each slot: several memory reads overlap, and consecutive slots are read as one run.
    pub fn gather(&self, slots: &[u64], into: &mut KeyBlock) -> Result<()> {
        if into.columns() != self.head.columns.len() {
            let (columns, room) = (self.head.columns.len(), into.columns());
            return Err(
                Error::config(format!("the keys have {columns} columns, but the block has {room}")).path(&self.path)
            );
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

    /// Appends the keys of `count` consecutive slots.
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

    /// Returns the key of a slot, and appends its lengths to `lens`.
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

    /// Returns the block of a slot and the slot's group, if the block has been checked.
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

    /// Returns an existing block, and checks it on its first use.
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
            return Err(damaged(format!("block {number} differs from its entry in the index")));
        }
        self.checked[number / 64].fetch_or(1 << (number % 64), Relaxed);
        Ok(())
    }

    /// Returns the error for a block that changed after its check.
    #[cold]
    fn changed(&self, number: usize) -> Error {
        let error = Error::data(format!("block {number} was changed while it was read"));
        stale(error.path(&self.path).offset(self.index.blocks[number].at))
    }
}

/// Returns the block of a slot, and the slot's index in the block.
#[inline]
fn split(slot: u64) -> (usize, usize) {
    ((slot / BLOCK as u64) as usize, (slot % BLOCK as u64) as usize)
}

debug_as!(KeyFile, |self, f| {
    let (path, len, elements) = (self.path.display(), self.head.len, self.index.elements);
    write!(f, "KeyFile({path}: {len} slots, {elements} elements, columns {:?})", self.head.columns)
});
