//! A pool of large allocations. Fresh memory from the system takes a page fault every 4 KiB, which costs as much time
//! as writing the page.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::{Arc, Mutex};

use bytemuck::Pod;

use super::buffer::{Owner, Word};
use crate::fork::PerProcess;

/// Smallest pooled allocation in bytes. The allocator itself caches smaller allocations.
pub(crate) const LEAST: usize = 64 << 10;
/// Bytes that a process always keeps in a pool. `PART` allows an eighth of the lent bytes if that is more: elements are
/// dropped and allocated in bursts.
const FEW: usize = 8 << 20;
const PART: usize = 8;

/// A per-process pool for a kind of memory.
pub(super) type Pool<T> = PerProcess<Mutex<Spare<T>>>;

/// The pool of array memory. Each allocation keeps its length and its contents.
static WORDS: Pool<Word> = PerProcess::new(|| Mutex::new(Spare::new()));

pub(super) struct Spare<T> {
    /// Returned memory, most recent last: the most recent is still in the processor's cache.
    memory: VecDeque<Vec<T>>,
    bytes: usize,
    /// Bytes currently lent.
    lent: usize,
}

/// Returns true if memory of `len` bytes is pooled.
pub(crate) fn is_large(len: usize) -> bool {
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

/// Rounds a length up to a pooled size, so that similar lengths share memory. Adds an eighth at most, and nothing to
/// powers of two, which are the sizes of blocks.
pub(crate) fn rounded(len: usize) -> usize {
    len.checked_next_power_of_two().map_or(len, |power| len.next_multiple_of((power / 16).max(1)))
}

/// Returns the capacity of `memory` in bytes.
fn bytes_of<T>(memory: &Vec<T>) -> usize {
    memory.capacity() * size_of::<T>()
}

impl<T> Spare<T> {
    pub(super) const fn new() -> Self {
        Self { memory: VecDeque::new(), bytes: 0, lent: 0 }
    }

    /// Takes the most recent memory with a capacity of exactly `size`.
    pub(super) fn take(&mut self, size: usize) -> Option<Vec<T>> {
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
pub(super) struct Lent<T: Pod + Send + Sync> {
    memory: Vec<T>,
    pool: &'static Pool<T>,
}

impl<T: Pod + Send + Sync> Lent<T> {
    pub(super) fn new(memory: Vec<T>, pool: &'static Pool<T>) -> Self {
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

    #[test]
    fn memory_has_one_of_a_few_sizes() {
        for len in (LEAST..9 * LEAST).step_by(777) {
            assert!((len..=len + len / 8).contains(&rounded(len)), "{len}");
            assert_eq!(rounded(rounded(len)), rounded(len));
        }
        assert_eq!((rounded(1 << 17), rounded(1_000_000), rounded(usize::MAX)), (1 << 17, 1 << 20, usize::MAX));
    }
}
