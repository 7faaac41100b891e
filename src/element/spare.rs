//! A pool of large allocations. Fresh memory from the system takes a page fault every 4 KiB, which costs as much time
//! as writing the page.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::{Arc, Mutex};

use bytemuck::Pod;

#[cfg(any(feature = "array_record", feature = "store"))]
use super::buffer::Buffer;
use super::buffer::{Owner, Word};
#[cfg(feature = "store")]
use crate::error::{Error, ErrorKind, Result};
use crate::fork::PerProcess;
#[cfg(feature = "store")]
use crate::units::Bytes;

/// Smallest pooled allocation in bytes. The allocator itself caches smaller allocations.
const LEAST: usize = 64 << 10;
/// Bytes that a process always keeps in a pool. `PART` allows an eighth of the lent bytes if that is more: elements are
/// dropped and allocated in bursts.
const FEW: usize = 8 << 20;
const PART: usize = 8;

/// A per-process pool for a kind of memory.
type Pool<T> = PerProcess<Mutex<Spare<T>>>;

/// The pool of byte vectors, which are cleared and appended to.
#[cfg(any(feature = "array_record", feature = "store"))]
static BYTES: Pool<u8> = PerProcess::new(|| Mutex::new(Spare::new()));
/// The pool of array memory. Each allocation keeps its length and its contents.
static WORDS: Pool<Word> = PerProcess::new(|| Mutex::new(Spare::new()));

struct Spare<T> {
    /// Returned memory, most recent last: the most recent is still in the processor's cache.
    memory: VecDeque<Vec<T>>,
    bytes: usize,
    /// Bytes currently lent.
    lent: usize,
}

/// Returns true if memory of `len` bytes is pooled.
pub(super) fn is_large(len: usize) -> bool {
    len >= LEAST
}

/// Takes `count` previously written words from the pool, if available.
pub(super) fn old_words(count: usize) -> Option<Vec<Word>> {
    WORDS.lock().take(count)
}

/// Wraps the words of an array as an owner. They return to the pool when the last view is dropped.
pub(super) fn lend(words: Vec<Word>) -> Arc<dyn Owner> {
    Arc::new(Lent::new(words, &WORDS))
}

/// Returns an empty vector with room for `len` bytes; [`share`] it after writing them.
#[cfg(any(feature = "array_record", feature = "store"))]
pub(crate) fn room(len: usize) -> Vec<u8> {
    if len < LEAST {
        return Vec::with_capacity(len);
    }
    let size = rounded(len);
    // Releases the lock before the allocation, so that no other thread waits for the system.
    let used = BYTES.lock().take(size);
    let mut room = used.unwrap_or_else(|| Vec::with_capacity(size));
    room.clear();
    room
}

/// Memory for bytes whose length is only claimed, by a file or a server. It grows as bytes arrive.
///
/// A claim may be wrong by any amount. At most 16 MiB is allocated for a claim alone, and at most twice the bytes that
/// have arrived.
#[cfg(feature = "store")]
pub(crate) struct Room {
    bytes: Vec<u8>,
    claimed: usize,
}

/// Bytes allocated for a claim alone, at most.
#[cfg(feature = "store")]
const BELIEVED: usize = 16 << 20;

#[cfg(feature = "store")]
impl Room {
    /// Returns room for `claimed` bytes, which may never arrive.
    pub(crate) fn new(claimed: u64) -> Result<Self> {
        let Ok(len) = usize::try_from(claimed) else { return Err(too_much(claimed, 0)) };
        let spare = if len < LEAST { None } else { BYTES.lock().take(rounded(len)) };
        let mut room = Self { bytes: spare.unwrap_or_default(), claimed: len };
        room.bytes.clear();
        room.reserve(len.min(BELIEVED))?;
        Ok(room)
    }

    /// Adds the next bytes.
    pub(crate) fn fill(&mut self, piece: &[u8]) -> Result<()> {
        self.reserve(self.bytes.len().saturating_add(piece.len()))?;
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Allocates memory for `need` bytes. Doubles the capacity to avoid repeated growth, up to the claimed length.
    fn reserve(&mut self, need: usize) -> Result<()> {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        if need <= capacity {
            return Ok(());
        }
        let whole = if self.claimed < LEAST { self.claimed } else { rounded(self.claimed) };
        let size = capacity.saturating_mul(2).max(need).min(whole.max(need));
        // A pooled size, if the whole claim is below the limit for claims.
        let size = if whole <= BELIEVED { whole.max(need) } else { size };
        self.bytes.try_reserve_exact(size - len).map_err(|_| too_much(self.claimed as u64, len))
    }

    /// Returns the bytes as a shared [`Buffer`], like [`share`].
    pub(crate) fn share(self) -> Buffer {
        share(self.bytes)
    }
}

#[cold]
#[cfg(feature = "store")]
fn too_much(claimed: u64, here: usize) -> Error {
    Error::new(
        ErrorKind::Io,
        format!("no memory for {}, of which {} were received", Bytes(claimed), Bytes(here as u64)),
    )
    .help("the file or its server claims an impossible length, or this process needs more memory")
}

/// Rounds a length up to a pooled size, so that similar lengths share memory. Adds an eighth at most, and nothing to
/// powers of two, which are the sizes of blocks.
pub(super) fn rounded(len: usize) -> usize {
    len.checked_next_power_of_two().map_or(len, |power| len.next_multiple_of((power / 16).max(1)))
}

/// Turns the bytes into a shared [`Buffer`], whose memory returns to the pool when the last view is dropped.
#[cfg(any(feature = "array_record", feature = "store"))]
pub(crate) fn share(bytes: Vec<u8>) -> Buffer {
    if bytes.capacity() < LEAST {
        return Buffer::from_vec(bytes);
    }
    Buffer::from_owner(Arc::new(Lent::new(bytes, &BYTES)))
}

/// Concatenates `pieces`, `len` bytes in total.
#[cfg(feature = "array_record")]
pub(crate) fn gather<'a>(len: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Buffer {
    let mut bytes = room(len);
    pieces.for_each(|piece| bytes.extend_from_slice(piece));
    share(bytes)
}

/// Returns the capacity of `memory` in bytes.
fn bytes_of<T>(memory: &Vec<T>) -> usize {
    memory.capacity() * size_of::<T>()
}

impl<T> Spare<T> {
    const fn new() -> Self {
        Self { memory: VecDeque::new(), bytes: 0, lent: 0 }
    }

    /// Takes the most recent memory with a capacity of exactly `size`.
    fn take(&mut self, size: usize) -> Option<Vec<T>> {
        let latest = self.memory.iter().rposition(|memory| memory.capacity() == size)?;
        let memory = self.memory.remove(latest)?;
        self.bytes -= bytes_of(&memory);
        Some(memory)
    }

    /// Takes back lent memory. Frees the memory returned longest ago if the pool exceeds its limit.
    fn keep(&mut self, memory: Vec<T>) {
        // Memory lent before a fork was counted by the parent process.
        self.lent = self.lent.saturating_sub(bytes_of(&memory));
        self.bytes += bytes_of(&memory);
        self.memory.push_back(memory);
        while self.bytes > FEW.max(self.lent / PART) {
            self.bytes -= self.memory.pop_front().map_or(0, |oldest| bytes_of(&oldest));
        }
    }
}

/// Memory that returns to its pool on drop.
struct Lent<T: Pod + Send + Sync> {
    memory: Vec<T>,
    pool: &'static Pool<T>,
}

impl<T: Pod + Send + Sync> Lent<T> {
    fn new(memory: Vec<T>, pool: &'static Pool<T>) -> Self {
        pool.lock().lent += bytes_of(&memory);
        Self { memory, pool }
    }
}

impl<T: Pod + Send + Sync> Owner for Lent<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.memory)
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(bytemuck::cast_slice_mut(&mut self.memory))
    }
}

impl<T: Pod + Send + Sync> Drop for Lent<T> {
    fn drop(&mut self) {
        self.pool.lock().keep(take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool after memory of these sizes came back, with `lent` bytes still lent.
    fn of(sizes: &[usize], lent: usize) -> Spare<u8> {
        let mut spare = Spare { lent: lent + sizes.iter().sum::<usize>(), ..Spare::new() };
        sizes.iter().for_each(|&size| spare.keep(Vec::with_capacity(size)));
        spare
    }

    #[test]
    fn what_fits_is_used_again_and_no_more_is_kept_than_may_be() {
        let mut spare = of(&[1000, 1000, 4000], 0);
        assert!(spare.take(1001).is_none() && spare.take(900).is_none());
        assert!(spare.take(1000).is_some_and(|memory| memory.is_empty() && memory.capacity() == 1000));
        assert_eq!((spare.memory.len(), spare.bytes), (2, 5000));
        let spare = of(&[FEW / 2, FEW / 2, FEW / 4], 0);
        assert_eq!((spare.memory.len(), spare.bytes, spare.lent), (2, FEW / 4 * 3, 0));
        assert_eq!((of(&[FEW + 1], 0).memory.len(), of(&[FEW + 1], 2 * PART * FEW).memory.len()), (0, 1));
    }

    #[cfg(feature = "store")]
    #[test]
    fn memory_is_taken_for_what_came_and_not_for_what_is_claimed() {
        for claimed in [1 << 40, 1 << 62, u64::MAX] {
            let mut room = Room::new(claimed).unwrap();
            (0..40).for_each(|_| room.fill(&[7; 1 << 20]).unwrap());
            assert!(room.bytes.capacity() <= 80 << 20, "{} bytes for 40 MiB", room.bytes.capacity());
            assert_eq!(room.share().len(), 40 << 20);
        }
        // More memory than any process has.
        let error = Room::new(1 << 40).and_then(|mut room| room.reserve(1 << 62)).unwrap_err();
        assert_eq!(error.message(), "no memory for 1 TiB, of which 0 B were received");
        for len in [0, 10, LEAST - 1, LEAST + 1, BELIEVED + 1, 3 * BELIEVED + 5] {
            let mut room = Room::new(len as u64).unwrap();
            vec![1; len].chunks(128 << 10).for_each(|piece| room.fill(piece).unwrap());
            assert!(room.bytes.capacity() <= rounded(len).max(LEAST), "{} for {len}", room.bytes.capacity());
            assert_eq!(room.share().len(), len);
        }
    }

    #[test]
    fn memory_has_one_of_a_few_sizes() {
        for len in (LEAST..9 * LEAST).step_by(777) {
            assert!((len..=len + len / 8).contains(&rounded(len)), "{len}");
            assert_eq!(rounded(rounded(len)), rounded(len));
        }
        assert_eq!((rounded(1 << 17), rounded(1_000_000), rounded(usize::MAX)), (1 << 17, 1 << 20, usize::MAX));
    }

    #[cfg(any(feature = "array_record", feature = "store"))]
    #[test]
    fn nobody_writes_to_what_is_viewed() {
        let len = (1 << 20) + 12_345;
        let shared = |byte| {
            let mut bytes = room(len);
            assert!(bytes.is_empty());
            bytes.resize(len, byte);
            share(bytes)
        };
        let first = shared(1);
        let view = first.slice(7..9).unwrap();
        drop(first);
        (2..9).for_each(|byte| assert_eq!(shared(byte).as_bytes(), vec![byte; len]));
        assert_eq!(view.as_bytes(), [1, 1]);
        assert_eq!(share(vec![5; 10]).as_bytes(), [5; 10]);
    }
}
