//! Large memory that is used again: what the system hands out anew takes a fault for every 4 KiB, and as long again as writing there.

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

/// Smaller memory is left to the allocator, which does not give it back at once.
const LEAST: usize = 64 << 10;
/// Bytes that a process keeps in any case, and the part of all that is lent: elements go in bursts, and come again.
const FEW: usize = 8 << 20;
const PART: usize = 8;

/// Memory of one kind that is used again.
type Pool<T> = PerProcess<Mutex<Spare<T>>>;

/// Of what is appended to, byte by byte.
#[cfg(any(feature = "array_record", feature = "store"))]
static BYTES: Pool<u8> = PerProcess::new(|| Mutex::new(Spare::new()));
/// Of arrays: each is as long as it was, and has what it had.
static WORDS: Pool<Word> = PerProcess::new(|| Mutex::new(Spare::new()));

struct Spare<T> {
    /// Memory that was let go of, the latest last: it is still in the processor's cache.
    memory: VecDeque<Vec<T>>,
    bytes: usize,
    /// Bytes that are shared.
    lent: usize,
}

/// Whether memory of so many bytes is used again.
pub(super) fn is_large(len: usize) -> bool {
    len >= LEAST
}

/// Takes so many words that were written to before, if there are any.
pub(super) fn old_words(count: usize) -> Option<Vec<Word>> {
    WORDS.lock().take(count)
}

/// The words of an array, shared, which are used again when the last view of it is gone.
pub(super) fn lend(words: Vec<Word>) -> Arc<dyn Owner> {
    Arc::new(Lent::new(words, &WORDS))
}

/// Room for `len` bytes, to be [shared](share) once they are written.
#[cfg(any(feature = "array_record", feature = "store"))]
pub(crate) fn room(len: usize) -> Vec<u8> {
    if len < LEAST {
        return Vec::with_capacity(len);
    }
    let size = rounded(len);
    // Nobody waits while the system hands out memory.
    let used = BYTES.lock().take(size);
    let mut room = used.unwrap_or_else(|| Vec::with_capacity(size));
    room.clear();
    room
}

/// Memory for bytes of which only somebody else says how many there will be: it grows as they come.
///
/// A file or a server may claim any length. No more than 16 MiB is taken for what is not there yet, and twice what is.
#[cfg(feature = "store")]
pub(crate) struct Room {
    bytes: Vec<u8>,
    claimed: usize,
}

/// Bytes that are taken for a claim alone.
#[cfg(feature = "store")]
const BELIEVED: usize = 16 << 20;

#[cfg(feature = "store")]
impl Room {
    /// Room for as many bytes as are claimed, which need not be there.
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

    /// Takes memory for `need` bytes, and, so that it does not have to grow each time, for twice as many as there was, but
    /// for no more than all that were claimed.
    fn reserve(&mut self, need: usize) -> Result<()> {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        if need <= capacity {
            return Ok(());
        }
        let whole = if self.claimed < LEAST { self.claimed } else { rounded(self.claimed) };
        let size = capacity.saturating_mul(2).max(need).min(whole.max(need));
        // Memory of a size that is used again, as far as that is what was believed anyway.
        let size = if whole <= BELIEVED { whole.max(need) } else { size };
        self.bytes.try_reserve_exact(size - len).map_err(|_| too_much(self.claimed as u64, len))
    }

    /// The bytes, [shared](share).
    pub(crate) fn share(self) -> Buffer {
        share(self.bytes)
    }
}

#[cold]
#[cfg(feature = "store")]
fn too_much(claimed: u64, here: usize) -> Error {
    Error::new(ErrorKind::Io, format!("no memory for {}, of which {} have come", Bytes(claimed), Bytes(here as u64)))
        .help("the file or its server claims a length that cannot be, or this process needs more memory")
}

/// Lengths that differ little have memory of one size, an eighth more at most; powers of two, which blocks have, just what they need.
pub(super) fn rounded(len: usize) -> usize {
    len.checked_next_power_of_two().map_or(len, |power| len.next_multiple_of((power / 16).max(1)))
}

/// The bytes, shared, whose memory is used again when the last view of it is gone.
#[cfg(any(feature = "array_record", feature = "store"))]
pub(crate) fn share(bytes: Vec<u8>) -> Buffer {
    if bytes.capacity() < LEAST {
        return Buffer::from_vec(bytes);
    }
    Buffer::from_owner(Arc::new(Lent::new(bytes, &BYTES)))
}

/// Pieces, one behind the other, of `len` bytes together.
#[cfg(feature = "array_record")]
pub(crate) fn gather<'a>(len: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Buffer {
    let mut bytes = room(len);
    pieces.for_each(|piece| bytes.extend_from_slice(piece));
    share(bytes)
}

/// Bytes of memory that has room for what `memory` has.
fn bytes_of<T>(memory: &Vec<T>) -> usize {
    memory.capacity() * size_of::<T>()
}

impl<T> Spare<T> {
    const fn new() -> Self {
        Self { memory: VecDeque::new(), bytes: 0, lent: 0 }
    }

    /// Memory for just so many.
    fn take(&mut self, size: usize) -> Option<Vec<T>> {
        let latest = self.memory.iter().rposition(|memory| memory.capacity() == size)?;
        let memory = self.memory.remove(latest)?;
        self.bytes -= bytes_of(&memory);
        Some(memory)
    }

    /// Takes back what was lent. Those go that nobody has asked for longest.
    fn keep(&mut self, memory: Vec<T>) {
        // What was lent before a fork was counted by the parent.
        self.lent = self.lent.saturating_sub(bytes_of(&memory));
        self.bytes += bytes_of(&memory);
        self.memory.push_back(memory);
        while self.bytes > FEW.max(self.lent / PART) {
            self.bytes -= self.memory.pop_front().map_or(0, |oldest| bytes_of(&oldest));
        }
    }
}

/// Memory that goes back to its pool when this is dropped.
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

    /// After these came back, while so many bytes are still lent.
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
        // More than any process has.
        let error = Room::new(1 << 40).and_then(|mut room| room.reserve(1 << 62)).unwrap_err();
        assert_eq!(error.message(), "no memory for 1 TiB, of which 0 B have come");
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
