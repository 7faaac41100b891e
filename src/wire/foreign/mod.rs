//! Memory of an extent that foreign code allocates while the extent is written: the arrays of NumPy.
//!
//! An array that a function of the user returns has to lie in the extent in the end. Where the array was allocated there, it
//! is not copied: its block is *given*, and the chunk says where it lies.
//!
//! The rows of a batch lie one behind the other where a function makes them one after the other, each of a size that is a multiple of
//! 64 bytes: then they are given together, and are the batch as they lie.
//!
//! # Why nobody changes what was delivered
//! The worker says that an extent is done only after the foreign code has freed every block of it: then nobody refers to one
//! any more, whatever references there were when it was given. Where one is still in use (a function keeps an array), nothing of
//! the extent is delivered: the worker keeps it, the elements are evaluated again, without this, and it goes back when its last
//! block is freed.
//!
//! # What it takes of the slab
//! Blocks are allocated in the extent of a task, by the thread that is at it, and only while it is. What a worker keeps is
//! limited: no task takes part whose extent would be too much if it were kept. Everything else has its memory from the heap.

mod blocks;
mod fork;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use self::blocks::Blocks;
use super::ALIGN;
use crate::sync::Locked;

/// Smaller arrays are left to the heap: copying them costs little.
pub(crate) const LEAST: usize = 64 << 10;

/// The extents in which there may be blocks, by the address of their first byte.
static ALL: Mutex<BTreeMap<usize, Blocks>> = Mutex::new(BTreeMap::new());

/// All of those extents that there ever were lie between these addresses.
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// Whether rows of the batch that was written last could have been given together.
static ROWS: AtomicBool = AtomicBool::new(false);

/// The language whose arrays these are, to be asked.
static HOST: OnceLock<Host> = OnceLock::new();

thread_local! {
    /// Whether the next extent that this thread begins to write admits blocks, and whether forks do not have it.
    static ADMITS: Cell<Option<bool>> = const { Cell::new(None) };
    /// The extent that this thread writes, if it has; else 0.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

fn all() -> MutexGuard<'static, BTreeMap<usize, Blocks>> {
    // Nothing in here calls foreign code, so a panic elsewhere leaves it whole.
    ALL.locked()
}

/// The language whose arrays these are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    /// Has arrays that this thread makes [allocated](allocate) here; `false` if that cannot be, or not yet.
    pub(crate) prepare: fn() -> bool,
    /// Frees what is not in use any more.
    pub(crate) free_unused: fn(),
}

/// Has arrays of `host` lie in extents. The first one stands.
pub(crate) fn admit_from(host: Host) {
    let _ = HOST.set(host);
}

/// Has the next extent that this thread writes, a part of the slab, admit blocks, if there is a language for which that makes
/// sense. Where it does, [`settle`] is to be called once the extent is written.
pub(crate) fn admit() -> bool {
    let ready = HOST.get().is_some_and(|host| (host.prepare)());
    if ready {
        fork::watch();
        ADMITS.set(Some(true));
    }
    ready
}

/// State in which an extent that admitted blocks is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Blocks are in use: the extent must not be delivered, nor written to, until [`is_free`].
    pub(crate) in_use: bool,
    /// Blocks were allocated.
    pub(crate) allocated: bool,
    /// Bytes that were allocated and are no part of what was written.
    pub(crate) wasted: usize,
}

/// Ends the part of the extent that begins at `start` and is written.
pub(crate) fn settle(start: usize) -> Settled {
    ADMITS.set(None);
    if !all().contains_key(&start) {
        return Settled::default();
    }
    if let Some(host) = HOST.get() {
        (host.free_unused)();
    }
    let mut all = all();
    let Some(blocks) = all.get(&start) else { return Settled::default() };
    let settled = blocks.settled();
    if !settled.in_use {
        all.remove(&start);
    }
    settled
}

/// Whether no block is left in the extent that begins at `start`, which is forgotten then.
pub(crate) fn is_free(start: usize) -> bool {
    let mut all = all();
    let free = all.get(&start).is_none_or(|blocks| !blocks.in_use());
    if free {
        all.remove(&start);
    }
    free
}

/// Says of what size the rows of a batch are that was written, those of each of its columns. As the rows of one element are
/// allocated one behind the other, only those of one column can follow each other, and only if nothing is between them.
#[cfg_attr(not(any(feature = "python", test)), expect(dead_code, reason = "no other language has arrays"))]
pub(crate) fn rows_were(sizes: &[usize]) {
    let mut large = sizes.iter().filter(|&&size| size >= LEAST);
    let fit = large.next().is_some_and(|size| size.is_multiple_of(ALIGN)) && large.next().is_none();
    ROWS.store(fit, Ordering::Relaxed);
}

/// Whether extents of batches are worth admitting blocks: as rows that are given together.
pub(crate) fn rows_fit() -> bool {
    ROWS.load(Ordering::Relaxed)
}

/// Memory of `len` bytes in the extent that this thread writes, at a multiple of 64; `None` if there is none to be had.
pub(crate) fn allocate(len: usize) -> Option<*mut u8> {
    let start = CURRENT.get();
    if start == 0 || len < LEAST {
        return None;
    }
    let place = all().get_mut(&start)?.allocate(len)?;
    Some(std::ptr::with_exposed_provenance_mut(start + place))
}

/// Whether memory at `address` may be a block: quickly no, for most of it.
#[inline]
fn may_be(address: usize) -> bool {
    LOWEST.load(Ordering::Relaxed) <= address && address < HIGHEST.load(Ordering::Relaxed)
}

/// Does `with` on the blocks of the extent that `address` lies in, and its place there.
fn find<R>(address: usize, with: impl FnOnce(&mut Blocks, usize) -> Option<R>) -> Option<R> {
    if !may_be(address) {
        return None;
    }
    let mut all = all();
    let (&start, blocks) = all.range_mut(..=address).next_back()?;
    with(blocks, address - start)
}

/// Frees the block that begins at `address`; `false` if none does.
pub(crate) fn free(address: usize) -> bool {
    find(address, Blocks::free).is_some()
}

/// Bytes of the block that begins at `address`, if one does.
pub(crate) fn len_of(address: usize) -> Option<usize> {
    find(address, |blocks, place| blocks.len_of(place))
}

/// The part of a chunk writer in an extent that admits blocks.
pub(super) struct Foreign {
    start: usize,
}

impl Foreign {
    /// Of the extent of `len` bytes from `start` on, if this thread was told that it [admits](admit) blocks.
    pub(super) fn begin(start: usize, len: usize) -> Option<Self> {
        let shared = ADMITS.take().filter(|_| len > 0 && fork::knows_pages())?;
        LOWEST.fetch_min(start, Ordering::Relaxed);
        HIGHEST.fetch_max(start + len, Ordering::Relaxed);
        all().insert(start, Blocks::new(len, shared));
        CURRENT.set(start);
        Some(Self { start })
    }

    fn with<R>(&self, with: impl FnOnce(&mut Blocks) -> R) -> Option<R> {
        all().get_mut(&self.start).map(with)
    }

    /// The end of what is in use, of which the writer has the bytes up to `written`.
    pub(super) fn end(&self, written: usize) -> usize {
        self.with(|blocks| blocks.end()).map_or(written, |end| end.max(written))
    }

    /// The end of what a reader needs.
    pub(super) fn needed(&self, written: usize) -> usize {
        self.with(|blocks| blocks.needed()).map_or(written, |end| end.max(written))
    }

    /// The writer has written up to `end`.
    pub(super) fn wrote(&self, end: usize) {
        self.with(|blocks| blocks.wrote(end));
    }

    /// Counts what was given.
    pub(super) fn given(&self) -> usize {
        self.with(|blocks| blocks.given()).unwrap_or(0)
    }

    /// Takes all but the first `given` blocks back, and what was written behind `end`.
    pub(super) fn rewind(&self, end: usize, given: usize) {
        self.with(|blocks| blocks.rewind(end, given));
    }

    /// Whether blocks are in use that were not given.
    pub(super) fn has_others(&self) -> bool {
        self.with(|blocks| blocks.has_others()).unwrap_or(false)
    }

    /// Gives the blocks of which the bytes at these addresses are part: where in the extent they lie.
    pub(super) fn give(&self, bytes: Range<usize>) -> Option<usize> {
        let place = bytes.start.checked_sub(self.start)?;
        self.with(|blocks| blocks.give(place, bytes.len()))?.then_some(place)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if CURRENT.get() == self.start {
            CURRENT.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::element::Part;
    use crate::element::{BufferMut, DType, Owner, Tree};
    use crate::wire::input::In;
    use crate::wire::output::{Out, Stop};
    use crate::wire::region::fill;
    use crate::wire::tree::give_array;
    use crate::wire::{ChunkWriter, Cross, Crossing, read_parts};

    /// Forks have the memory of tests.
    fn admit() {
        ADMITS.set(Some(false));
    }

    /// An extent of `len` bytes at a multiple of 64.
    fn extent(len: usize) -> BufferMut {
        BufferMut::zeroed(len)
    }

    /// An array whose bytes lie in the extent that it is written to.
    struct There(usize, usize);

    impl Cross for There {
        const KIND: u32 = 1 << 20;

        fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
            let given = give_array(out, DType::U8, &[self.1], self.0..self.0 + self.1)?;
            if given { Ok(()) } else { out.text("elsewhere") }
        }

        fn read(_: &mut In<'_>) -> crate::Result<Self> {
            unreachable!("it is read as a tree")
        }
    }

    struct Extent(BufferMut);

    impl Owner for Extent {
        fn bytes(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }

    #[test]
    fn rows_fit_where_one_column_has_large_ones() {
        let cases: [(&[usize], bool); 6] = [
            (&[LEAST], true),
            (&[8, LEAST + 64, LEAST - 1], true),
            (&[], false),
            (&[LEAST - 64], false),
            (&[LEAST + 8], false),
            (&[LEAST, LEAST], false),
        ];
        for (sizes, fit) in cases {
            rows_were(sizes);
            assert_eq!(rows_fit(), fit, "{sizes:?}");
        }
    }

    /// Shows that what was allocated before the first word is written, and between words, is read as an array like any other.
    #[test]
    fn a_chunk_of_given_blocks_is_read() {
        let mut memory = extent(1 << 20);
        let start = memory.as_bytes().as_ptr() as usize;
        admit();
        let mut writer = ChunkWriter::new(memory.as_mut_bytes());
        let blocks: Vec<usize> = (1..=5u8)
            .map(|byte| {
                let block = allocate(LEAST + usize::from(byte)).unwrap();
                fill(block, LEAST + usize::from(byte), byte);
                block as usize
            })
            .collect();
        // One of them is no part of it.
        for byte in [1, 2, 4, 5] {
            let there = There(blocks[byte - 1], LEAST + byte);
            writer.push(&Ok(Some(there))).unwrap();
            assert!(free(blocks[byte - 1]));
        }
        assert!(writer.has_foreign() && free(blocks[2]) && !writer.has_foreign());
        let written = writer.finish();
        assert_eq!(settle(start), Settled { in_use: false, allocated: true, wasted: LEAST + 64 });
        let owner: Arc<dyn Owner> = Arc::new(Extent(memory));
        let as_trees = Crossing { kind: There::KIND, ..Crossing::<Tree>::OF };
        let parts = read_parts::<Tree, std::convert::Infallible>(&owner, written.used, as_trees, None).unwrap();
        let [Part::Slots(slots)] = &parts[..] else { panic!("no slots") };
        assert_eq!(slots.len(), 4);
        for (slot, byte) in parts.into_iter().map(Part::made).flat_map(slots_of).zip([1u8, 2, 4, 5]) {
            let Tree::Array(array) = slot else { panic!("no array") };
            assert_eq!(array.shape(), [LEAST + usize::from(byte)]);
            assert_eq!(array.bytes().as_ptr() as usize, blocks[usize::from(byte) - 1], "it lies where it was written");
            assert!(array.bytes().iter().all(|&each| each == byte));
        }
    }

    fn slots_of<W>(part: Part<Tree, W>) -> Vec<Tree> {
        let Part::Slots(slots) = part else { return Vec::new() };
        slots.into_iter().map(|slot| slot.unwrap().unwrap()).collect()
    }

    #[test]
    fn a_given_block_is_read_where_it_was_written() {
        let mut memory = extent(1 << 20);
        let bytes = memory.as_mut_bytes();
        let start = bytes.as_ptr() as usize;
        admit();
        let mut out = Out::new(bytes);
        let block = allocate(200_000).unwrap();
        assert!((block as usize - start).is_multiple_of(64));
        fill(block, 200_000, 7);
        assert_eq!(out.give(block as usize..block as usize + 200_000), Some((block as usize - start) as u64));
        // Once is enough.
        assert!(out.give(block as usize..block as usize + 200_000).is_none());
        let used = out.used();
        drop(out);
        assert!(allocate(200_000).is_none());
        assert!(settle(start).in_use);
        assert_eq!(len_of(block as usize), Some(200_000));
        assert!(free(block as usize) && !free(block as usize));
        assert!(is_free(start));
        let place = block as usize - start;
        assert!(used >= place + 200_000 && memory.as_bytes()[place..place + 200_000].iter().all(|&byte| byte == 7));
    }

    #[test]
    fn only_the_thread_that_was_told_to_has_blocks_and_only_large_ones() {
        let mut memory = extent(1 << 20);
        assert!(allocate(1 << 17).is_none());
        let start = memory.as_bytes().as_ptr() as usize;
        // Not told to.
        let out = Out::new(memory.as_mut_bytes());
        assert!(allocate(1 << 17).is_none());
        drop(out);
        admit();
        let out = Out::new(memory.as_mut_bytes());
        assert!(allocate(LEAST - 1).is_none() && allocate(1 << 20).is_none() && allocate(usize::MAX).is_none());
        assert!(std::thread::spawn(|| allocate(1 << 17).is_none()).join().unwrap());
        let block = allocate(1 << 17).unwrap() as usize;
        // Whoever frees it.
        assert!(std::thread::spawn(move || free(block)).join().unwrap());
        drop(out);
        let settled = settle(start);
        assert_eq!((settled.in_use, settled.allocated), (false, true));
        assert_eq!(settle(start), Settled::default());
        assert!(!free(block) && len_of(block).is_none());
    }

    #[test]
    fn what_is_taken_back_is_not_given() {
        let mut memory = extent(1 << 20);
        let start = memory.as_bytes().as_ptr() as usize;
        admit();
        let mut out = Out::new(memory.as_mut_bytes());
        let mark = out.mark();
        let block = allocate(1 << 17).unwrap() as usize;
        assert!(out.give(block..block + (1 << 17)).is_some());
        assert!(!out.has_foreign());
        out.rewind(mark);
        assert!(out.has_foreign() && out.used() < 1024);
        // What is written next does not go there.
        assert!(out.bytes(64, &[9; 1000]).is_ok());
        assert!(out.used() > block - start + (1 << 17));
        assert!(free(block));
        assert!(!out.has_foreign());
        drop(out);
        assert!(!settle(start).in_use);
    }

    #[test]
    fn a_writer_has_room_for_its_table_beside_blocks() {
        let mut memory = extent(1 << 18);
        let start = memory.as_bytes().as_ptr() as usize;
        admit();
        let mut out = Out::new(memory.as_mut_bytes());
        let blocks: Vec<usize> = std::iter::from_fn(|| allocate(LEAST)).map(|block| block as usize).collect();
        assert_eq!(blocks.len(), 3);
        for block in &blocks {
            assert!(out.give(*block..block + LEAST).is_some() && out.word(1).is_ok());
        }
        assert!(matches!(out.bytes(64, &[0; LEAST]), Err(Stop::Full)));
        drop(out);
        assert!(blocks.into_iter().all(free));
        assert!(!settle(start).in_use);
    }
}
