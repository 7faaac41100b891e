//! Large memory that is used again: what the system hands out anew takes a fault for every 4 KiB, and as long again as writing there.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::buffer::{Buffer, Owner};

/// Smaller memory is left to the allocator, which does not give it back at once.
const LEAST: usize = 64 << 10;
/// Bytes that a process keeps in any case, and the part of all that is lent: elements go in bursts, and come again.
const FEW: usize = 8 << 20;
const PART: usize = 8;

static SPARE: Mutex<Spare> = Mutex::new(Spare::new());

struct Spare {
    /// What was let go of, the latest last: it is still in the processor's cache.
    memory: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Bytes that are shared.
    lent: usize,
}

/// Room for `len` bytes, to be [shared](share) once they are written.
pub(crate) fn room(len: usize) -> Vec<u8> {
    if len < LEAST {
        return Vec::with_capacity(len);
    }
    let size = rounded(len);
    // Nobody waits while the system hands out memory.
    let used = spare().take(size);
    used.unwrap_or_else(|| Vec::with_capacity(size))
}

/// Lengths that differ little have memory of one size, an eighth more at most; powers of two, which blocks have, just what they need.
fn rounded(len: usize) -> usize {
    len.checked_next_power_of_two().map_or(len, |power| len.next_multiple_of((power / 16).max(1)))
}

/// The bytes, shared, whose memory is used again when the last view of it is gone.
pub(crate) fn share(bytes: Vec<u8>) -> Buffer {
    if bytes.capacity() < LEAST {
        return Buffer::from_vec(bytes);
    }
    spare().lent += bytes.capacity();
    Buffer::from_owner(Arc::new(Lent(bytes)))
}

/// Pieces, one behind the other, of `len` bytes together.
#[cfg(feature = "array_record")]
pub(crate) fn gather<'a>(len: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Buffer {
    let mut bytes = room(len);
    pieces.for_each(|piece| bytes.extend_from_slice(piece));
    share(bytes)
}

fn spare() -> MutexGuard<'static, Spare> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spare {
    const fn new() -> Self {
        Self { memory: VecDeque::new(), bytes: 0, lent: 0 }
    }

    fn take(&mut self, size: usize) -> Option<Vec<u8>> {
        let latest = self.memory.iter().rposition(|memory| memory.capacity() == size)?;
        let memory = self.memory.remove(latest)?;
        self.bytes -= memory.capacity();
        Some(memory)
    }

    /// What was lent is back. Those go that nobody has asked for longest.
    fn keep(&mut self, memory: Vec<u8>) {
        self.lent -= memory.capacity();
        self.bytes += memory.capacity();
        self.memory.push_back(memory);
        while self.bytes > FEW.max(self.lent / PART) {
            self.bytes -= self.memory.pop_front().map_or(0, |oldest| oldest.capacity());
        }
    }
}

struct Lent(Vec<u8>);

impl Owner for Lent {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.0)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut memory = take(&mut self.0);
        memory.clear();
        spare().keep(memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After these came back, while so many bytes are still lent.
    fn of(sizes: &[usize], lent: usize) -> Spare {
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

    #[test]
    fn memory_has_one_of_a_few_sizes() {
        for len in (LEAST..9 * LEAST).step_by(777) {
            assert!((len..=len + len / 8).contains(&rounded(len)), "{len}");
            assert_eq!(rounded(rounded(len)), rounded(len));
        }
        assert_eq!((rounded(1 << 17), rounded(1_000_000), rounded(usize::MAX)), (1 << 17, 1 << 20, usize::MAX));
    }

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
