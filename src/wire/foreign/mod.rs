//! Memory of an extent that foreign code allocates while the extent is written, such as the arrays of NumPy.
//!
//! An array that a user's function returns must end up in the extent. If the array was allocated there, it is not copied: its
//! block is *given*, and the chunk records its offset.
//!
//! The rows of a batch are adjacent if a function makes them in sequence and their size is a multiple of 64 bytes. Adjacent
//! rows are given together and form the batch in place.
//!
//! # Why delivered data cannot change
//! The worker reports an extent as done only after foreign code has freed all its blocks. No foreign reference to the extent
//! is left then, regardless of references at the time of the gift. If a block is still in use, because a function keeps an
//! array, nothing of the extent is delivered. The worker keeps the extent and evaluates its elements again without blocks. The
//! extent is returned after its last block is freed.
//!
//! # Use of the slab
//! Blocks are allocated in the extent of a task, by the thread that runs the task, and only during the task. The memory that a
//! worker may keep is limited: a task uses no blocks if its extent would exceed the limit. All other allocations use the heap.

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

/// Minimum bytes of an array in a block. Smaller arrays use the heap, because copying them costs little.
pub(crate) const LEAST: usize = 64 << 10;

/// The extents that may contain blocks, by the address of their first byte.
static ALL: Mutex<BTreeMap<usize, Blocks>> = Mutex::new(BTreeMap::new());

/// Address range of all extents that were ever in [`ALL`].
static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGHEST: AtomicUsize = AtomicUsize::new(0);

/// True if rows of the last batch could have been given together.
static ROWS: AtomicBool = AtomicBool::new(false);

/// The language that owns the arrays.
static HOST: OnceLock<Host> = OnceLock::new();

thread_local! {
    /// `Some` if the next extent that this thread writes admits blocks. The value is true if forks do not have the extent.
    static ADMITS: Cell<Option<bool>> = const { Cell::new(None) };
    /// Address of the extent that this thread writes, or 0.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

fn all() -> MutexGuard<'static, BTreeMap<usize, Blocks>> {
    // No foreign code runs under the lock, so the map stays consistent after a panic elsewhere.
    ALL.locked()
}

/// The language that owns the arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    /// Makes the arrays of this thread use [`allocate`]. Returns `false` if that is not possible, or not yet.
    pub(crate) prepare: fn() -> bool,
    /// Frees memory that is no longer in use.
    pub(crate) free_unused: fn(),
}

/// Places arrays of `host` in extents. Only the first call has an effect.
pub(crate) fn admit_from(host: Host) {
    let _ = HOST.set(host);
}

/// Makes the next extent of the slab that this thread writes admit blocks, if a registered language supports them. Returns true
/// in that case; the caller must then call [`settle`] after the extent is written.
pub(crate) fn admit() -> bool {
    let ready = HOST.get().is_some_and(|host| (host.prepare)());
    if ready {
        fork::watch();
        ADMITS.set(Some(true));
    }
    ready
}

/// Final state of an extent that admitted blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Blocks are in use: the extent must be neither delivered nor written until [`is_free`] returns true.
    pub(crate) in_use: bool,
    /// Blocks were allocated.
    pub(crate) allocated: bool,
    /// Bytes that were allocated and are not part of the output.
    pub(crate) wasted: usize,
}

/// Ends the use of blocks in the extent that begins at `start`, after the extent is written. Returns its state.
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

/// Returns true if no used block is left in the extent that begins at `start`, and forgets the extent in that case.
pub(crate) fn is_free(start: usize) -> bool {
    let mut all = all();
    let free = all.get(&start).is_none_or(|blocks| !blocks.in_use());
    if free {
        all.remove(&start);
    }
    free
}

/// Records the row sizes of a written batch, one size per column.
///
/// The rows of an element are allocated in sequence. Rows of a column are therefore adjacent only if no other column has blocks
/// and no gap follows a row.
pub(crate) fn rows_were(sizes: &[usize]) {
    let mut large = sizes.iter().filter(|&&size| size >= LEAST);
    let fit = large.next().is_some_and(|size| size.is_multiple_of(ALIGN)) && large.next().is_none();
    ROWS.store(fit, Ordering::Relaxed);
}

/// Returns true if extents of batches benefit from blocks, because rows can be given together.
pub(crate) fn rows_fit() -> bool {
    ROWS.load(Ordering::Relaxed)
}

/// Allocates `len` bytes at a multiple of 64 in the extent that this thread writes. Returns `None` if there is no room or no extent.
pub(crate) fn allocate(len: usize) -> Option<*mut u8> {
    let start = CURRENT.get();
    if start == 0 || len < LEAST {
        return None;
    }
    let place = all().get_mut(&start)?.allocate(len)?;
    Some(std::ptr::with_exposed_provenance_mut(start + place))
}

/// Returns false if `address` is certainly not in a block. Fast for most memory.
#[inline]
fn may_be(address: usize) -> bool {
    LOWEST.load(Ordering::Relaxed) <= address && address < HIGHEST.load(Ordering::Relaxed)
}

/// Calls `with` on the blocks of the extent that contains `address`, and on its offset there.
fn find<R>(address: usize, with: impl FnOnce(&mut Blocks, usize) -> Option<R>) -> Option<R> {
    if !may_be(address) {
        return None;
    }
    let mut all = all();
    let (&start, blocks) = all.range_mut(..=address).next_back()?;
    with(blocks, address - start)
}

/// Frees the block that begins at `address`. Returns `false` if there is none.
pub(crate) fn free(address: usize) -> bool {
    find(address, Blocks::free).is_some()
}

/// Returns the bytes of the block that begins at `address`, if any.
pub(crate) fn len_of(address: usize) -> Option<usize> {
    find(address, |blocks, place| blocks.len_of(place))
}

/// Block allocator of a chunk writer whose extent admits blocks.
pub(super) struct Foreign {
    start: usize,
}

impl Foreign {
    /// Opens the extent of `len` bytes from `start` on, if [`admit`] was called on this thread.
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

    /// Returns the end of the used bytes. The writer has used the bytes up to `written`.
    pub(super) fn end(&self, written: usize) -> usize {
        self.with(|blocks| blocks.end()).map_or(written, |end| end.max(written))
    }

    /// Returns the end of the bytes that a reader needs.
    pub(super) fn needed(&self, written: usize) -> usize {
        self.with(|blocks| blocks.needed()).map_or(written, |end| end.max(written))
    }

    /// Records that the writer has used the bytes up to `end`.
    pub(super) fn wrote(&self, end: usize) {
        self.with(|blocks| blocks.wrote(end));
    }

    /// Returns the number of gifts.
    pub(super) fn given(&self) -> usize {
        self.with(|blocks| blocks.given).unwrap_or(0)
    }

    /// Takes back all but the first `given` gifts, and the output after `end`.
    pub(super) fn rewind(&self, end: usize, given: usize) {
        self.with(|blocks| blocks.rewind(end, given));
    }

    /// Returns true if used blocks exist that were not given.
    pub(super) fn has_others(&self) -> bool {
        self.with(|blocks| blocks.has_others()).unwrap_or(false)
    }

    /// Gives the blocks that contain the bytes at these addresses. Returns their offset in the extent.
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

    /// Admits blocks as tests need it: forks have the memory of tests.
    fn admit() {
        ADMITS.set(Some(false));
    }

    /// Returns an extent of `len` bytes at a multiple of 64.
    fn extent(len: usize) -> BufferMut {
        BufferMut::zeroed(len)
    }

    /// An array whose bytes are in the extent that it is written to.
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

    /// Checks that blocks allocated before the first word, and between words, are read as ordinary arrays.
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
        // One block is not part of the chunk.
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
        // A block can be given only once.
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
        // Blocks are not admitted.
        let out = Out::new(memory.as_mut_bytes());
        assert!(allocate(1 << 17).is_none());
        drop(out);
        admit();
        let out = Out::new(memory.as_mut_bytes());
        assert!(allocate(LEAST - 1).is_none() && allocate(1 << 20).is_none() && allocate(usize::MAX).is_none());
        assert!(std::thread::spawn(|| allocate(1 << 17).is_none()).join().unwrap());
        let block = allocate(1 << 17).unwrap() as usize;
        // Any thread may free the block.
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
        // Later output must not overwrite the block.
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
