//! In-memory cache of object blocks, including blocks in flight.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::limit;
use super::retry::Failure;
use crate::element::Buffer;
use crate::sync::{Locked, Regardless};

/// Size of a block in bytes. The last block of an object may be shorter. A read of a single record fetches at most two
/// blocks more than the record.
pub(crate) const BLOCK: u64 = 128 << 10;

/// Key of a block: the key of the object's version, and the number of the block.
pub(in crate::store) type Key = (u128, u64);

/// Cache of blocks by key, in shards with separate locks. Evicts the least recently used block first. Prefetched blocks
/// stay longer, because they are still unread.
#[derive(Debug)]
pub(in crate::store) struct Blocks {
    shards: Vec<Shard>,
    /// Budget in bytes. The memory limit of the process may lower it.
    most: u64,
    /// Number of blocks that are in flight, or cached and still unread.
    unread: AtomicU64,
    /// Retry counts of recent requests, until a reader takes them. All blocks of a request share a counter.
    repeats: Mutex<HashMap<Key, Arc<AtomicU64>>>,
}

#[derive(Debug, Default)]
struct Shard {
    state: Mutex<State>,
    landed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// Cached blocks in eviction order: by the time of their last use.
    order: BTreeSet<(u64, Key)>,
    /// Logical clock: the number of blocks that have arrived.
    clock: u64,
    bytes: u64,
}

#[derive(Debug)]
enum Entry {
    /// A fetch is in progress.
    Coming,
    Here {
        bytes: Buffer,
        /// Clock value of the last use. The value is in the future if the block was prefetched and is unread.
        used: u64,
        unread: bool,
    },
    /// The fetch failed. Waiting readers receive the failure; later readers fetch again.
    Failed(Failure),
}

const SHARDS: usize = 16;
/// Maximum number of blocks with a retry count.
const MOST_REPEATS: usize = 4096;
/// Minimum number of blocks kept per shard, regardless of the budget. Prefetched blocks are thus still cached when they
/// are read.
const LEAST: usize = 2;

impl Blocks {
    pub(in crate::store) fn new(budget: u64) -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self { shards, most: budget, unread: AtomicU64::new(0), repeats: Mutex::default() }
    }

    /// Returns the number of blocks that may still be prefetched. Prefetching gets half of the memory. More blocks
    /// would be evicted before they are read, regardless of the number of readers.
    pub(in crate::store) fn room(&self) -> u64 {
        (self.budget() / BLOCK / 2).saturating_sub(self.unread.load(Relaxed))
    }

    /// Returns the budget in bytes.
    pub(in crate::store) fn budget(&self) -> u64 {
        limit::within(self.most)
    }

    /// Returns the total size of all cached blocks, in bytes.
    pub(in crate::store) fn held(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().bytes).sum()
    }

    /// Evicts all cached blocks. Fetches in progress continue.
    pub(in crate::store) fn clear(&self) {
        self.shards.iter().for_each(|shard| shard.lock().clear(&self.unread));
    }

    /// Returns true if the caller must fetch the block. The caller must then call [`land`](Self::land) or
    /// [`fail`](Self::fail).
    pub(in crate::store) fn claim(&self, key: Key) -> bool {
        let mut state = self.shard(key).lock();
        match state.entries.get(&key) {
            Some(Entry::Coming) => false,
            Some(Entry::Here { .. }) => {
                // A claimed block will be read again.
                let now = state.clock;
                state.touch(key, now);
                false
            }
            None | Some(Entry::Failed(_)) => {
                state.entries.insert(key, Entry::Coming);
                self.unread.fetch_add(1, Relaxed);
                true
            }
        }
    }

    /// Returns a block if it is cached.
    pub(in crate::store) fn get(&self, key: Key) -> Option<Buffer> {
        self.shard(key).lock().get(key, &self.unread)
    }

    /// Waits for a block in flight and returns the block. Returns `None` if the block is neither cached nor in flight.
    pub(in crate::store) fn wait(&self, key: Key) -> Result<Option<Buffer>, Failure> {
        let shard = self.shard(key);
        let is_coming = |state: &mut State| matches!(state.entries.get(&key), Some(Entry::Coming));
        let state = shard.landed.wait_while(shard.lock(), is_coming);
        let mut state = state.regardless();
        match state.entries.get(&key) {
            Some(Entry::Failed(failure)) => Err(failure.clone()),
            _ => Ok(state.get(key, &self.unread)),
        }
    }

    /// Counts a retry of the request for these blocks.
    pub(in crate::store) fn repeat(&self, keys: impl Iterator<Item = Key>) {
        let mut repeats = self.repeats.locked();
        // Nearly all dropped counts belong to blocks read long ago.
        if repeats.len() > MOST_REPEATS {
            repeats.clear();
        }
        let keys: Vec<Key> = keys.collect();
        // A request for the remaining blocks shares the counter of the original request.
        let count = keys.iter().find_map(|key| repeats.get(key).cloned()).unwrap_or_default();
        count.fetch_add(1, Relaxed);
        repeats.extend(keys.into_iter().map(|key| (key, count.clone())));
    }

    /// Returns the retries of the request for a block, and resets their count. Returns 0 if the count was dropped or
    /// already taken for another block of the request.
    pub(in crate::store) fn take_repeats(&self, key: Key) -> u64 {
        self.repeats.locked().get(&key).map_or(0, |count| count.swap(0, Relaxed))
    }

    /// Stores a fetched block and wakes its readers.
    pub(in crate::store) fn land(&self, key: Key, bytes: Buffer) {
        let shard = self.shard(key);
        shard.lock().put(key, bytes, self.budget() / SHARDS as u64, &self.unread);
        shard.landed.notify_all();
    }

    /// Records the failed fetch of a block and wakes its readers.
    pub(in crate::store) fn fail(&self, key: Key, failure: &Failure) {
        let shard = self.shard(key);
        if let Some(Entry::Coming) = shard.lock().entries.insert(key, Entry::Failed(failure.clone())) {
            self.unread.fetch_sub(1, Relaxed);
        }
        shard.landed.notify_all();
    }

    /// Makes a block the first to evict, because another read is unlikely.
    pub(in crate::store) fn release(&self, key: Key) {
        self.shard(key).lock().touch(key, 0);
    }

    fn shard(&self, key: Key) -> &Shard {
        &self.shards[(key.0 as usize).wrapping_add(key.1 as usize) % SHARDS]
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }
}

impl State {
    fn get(&mut self, key: Key, count: &AtomicU64) -> Option<Buffer> {
        let now = self.clock;
        let Some(Entry::Here { bytes, unread, .. }) = self.entries.get_mut(&key) else { return None };
        let (bytes, was_unread) = (bytes.clone(), std::mem::take(unread));
        count.fetch_sub(was_unread.into(), Relaxed);
        self.touch(key, now);
        Some(bytes)
    }

    /// Moves a block to `now` in the eviction order, unless the block is unread.
    fn touch(&mut self, key: Key, now: u64) {
        if let Some(Entry::Here { used, unread: false, .. }) = self.entries.get_mut(&key)
            && *used != now
        {
            self.order.remove(&(*used, key));
            self.order.insert((now, key));
            *used = now;
        }
    }

    fn clear(&mut self, count: &AtomicU64) {
        self.order.clear();
        self.bytes = 0;
        self.entries.retain(|_, entry| {
            let unread = matches!(entry, Entry::Here { unread: true, .. });
            count.fetch_sub(unread.into(), Relaxed);
            !matches!(entry, Entry::Here { .. })
        });
    }

    fn put(&mut self, key: Key, bytes: Buffer, budget: u64, count: &AtomicU64) {
        self.clock += 1;
        let len = bytes.len() as u64;
        let before = self.entries.remove(&key);
        let unread = matches!(before, Some(Entry::Coming | Entry::Here { unread: true, .. }));
        if let Some(Entry::Here { bytes, used, .. }) = before {
            self.order.remove(&(used, key));
            self.bytes -= bytes.len() as u64;
        }
        // The extra time is limited, because the intended reader may have stopped.
        let patience = if unread { 2 * (budget / BLOCK).max(LEAST as u64) } else { 0 };
        let used = self.clock + patience;
        self.entries.insert(key, Entry::Here { bytes, used, unread });
        self.order.insert((used, key));
        self.bytes += len;
        while self.bytes > budget && self.order.len() > LEAST {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            if let Some(Entry::Here { bytes, unread, .. }) = self.entries.remove(&oldest) {
                self.bytes -= bytes.len() as u64;
                count.fetch_sub(unread.into(), Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn bytes(len: usize) -> Buffer {
        Buffer::from_vec(vec![7u8; len])
    }

    /// Returns a key in shard 0.
    fn key(number: u64) -> Key {
        (0, number * SHARDS as u64)
    }

    #[test]
    fn a_request_that_is_repeated_is_counted_once_however_many_wait_for_it() {
        let blocks = Blocks::new(1 << 20);
        blocks.repeat((0..4).map(key));
        // Two blocks of the first request had arrived by then.
        blocks.repeat((2..4).map(key));
        blocks.repeat((8..9).map(key));
        assert_eq!([2, 3, 0, 1, 8, 9].map(|number| blocks.take_repeats(key(number))), [2, 0, 0, 0, 1, 0]);
        blocks.repeat((3..4).map(key));
        assert_eq!([0, 3].map(|number| blocks.take_repeats(key(number))), [1, 0]);
    }

    #[test]
    fn one_fetches_and_the_others_wait() {
        let blocks = Blocks::new(1 << 20);
        assert!(blocks.claim(key(1)) && !blocks.claim(key(1)));
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| blocks.wait(key(1)).unwrap().unwrap().len())).collect();
            blocks.land(key(1), bytes(5));
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap() == 5));
        });
        assert!(!blocks.claim(key(1)));
        assert!(blocks.wait(key(2)).unwrap().is_none());
    }

    #[test]
    fn a_failure_is_told_and_the_next_tries_again() {
        let blocks = Blocks::new(1 << 20);
        assert!(blocks.claim(key(1)));
        blocks.fail(key(1), &Failure::new(ErrorKind::Io, "no"));
        assert_eq!(blocks.wait(key(1)).unwrap_err().message, "no");
        assert!(blocks.claim(key(1)));
        blocks.land(key(1), bytes(1));
        assert!(blocks.get(key(1)).is_some());
    }

    #[test]
    fn there_is_room_for_what_is_not_read_yet() {
        let blocks = Blocks::new(64 * BLOCK);
        assert_eq!(blocks.room(), 32);
        (0..40).for_each(|number| assert!(blocks.claim((0, number))));
        assert_eq!(blocks.room(), 0);
        (0..20).for_each(|number| blocks.land((0, number), bytes(1)));
        (0..20).for_each(|number| drop(blocks.get((0, number)).or_else(|| blocks.get((0, number)))));
        (20..30).for_each(|number| blocks.fail((0, number), &Failure::new(ErrorKind::Io, "no")));
        assert_eq!(blocks.room(), 22);
        // Evicted blocks no longer take room, even if they were never read.
        (30..40).for_each(|number| blocks.land((0, number), bytes(BLOCK as usize)));
        (100..300).for_each(|number| blocks.land((0, number), bytes(BLOCK as usize)));
        assert_eq!(blocks.room(), 32);
    }

    #[test]
    fn what_is_still_to_be_read_stays_for_longer() {
        let blocks = Blocks::new(SHARDS as u64 * 4 * BLOCK);
        let come = |number| {
            blocks.land(key(number), bytes(BLOCK as usize));
        };
        assert!(blocks.claim(key(0)));
        come(0);
        (1..8).for_each(come);
        assert!(blocks.get(key(0)).is_some() && blocks.get(key(4)).is_none());
        // A block loses its extra time when it is read. An unread block is evicted eventually.
        assert!(blocks.claim(key(8)));
        come(8);
        (9..13).for_each(come);
        assert!(blocks.get(key(0)).is_none());
        (13..24).for_each(come);
        assert!(blocks.get(key(8)).is_none());
        assert_eq!(blocks.unread.load(Relaxed), 0);
    }

    #[test]
    fn two_blocks_stay_whatever_the_budget() {
        let blocks = Blocks::new(1);
        for number in 0..3 {
            assert!(blocks.claim(key(number)));
            blocks.land(key(number), bytes(BLOCK as usize));
        }
        assert_eq!([0, 1, 2].map(|number| blocks.get(key(number)).is_some()), [false, true, true]);
        assert_eq!(blocks.unread.load(Relaxed), 0);
    }

    #[test]
    fn what_is_let_go_is_fetched_again() {
        let blocks = Blocks::new(1 << 20);
        let room = blocks.room();
        assert!((0..3).all(|number| blocks.claim(key(number))));
        blocks.land(key(0), bytes(10));
        blocks.land(key(1), bytes(10));
        assert!(blocks.get(key(1)).is_some());
        blocks.clear();
        assert_eq!((blocks.held(), blocks.room()), (0, room - 1));
        assert!(blocks.claim(key(0)) && blocks.claim(key(1)) && !blocks.claim(key(2)));
        (0..3).for_each(|number| blocks.land(key(number), bytes(10)));
        assert!((0..3).all(|number| blocks.get(key(number)).is_some()));
        assert_eq!((blocks.held(), blocks.room()), (30, room));
    }

    #[test]
    fn what_was_used_last_stays_and_what_was_released_goes() {
        let blocks = Blocks::new(SHARDS as u64 * 30);
        (1..=3).for_each(|number| blocks.land(key(number), bytes(10)));
        assert!(blocks.get(key(1)).is_some());
        blocks.land(key(4), bytes(10));
        let here = |number| blocks.get(key(number)).is_some();
        assert_eq!([1, 2, 3, 4].map(here), [true, false, true, true]);
        blocks.release(key(4));
        blocks.land(key(5), bytes(10));
        assert_eq!([1, 3, 4, 5].map(here), [true, true, false, true]);
        // Unclaimed blocks have no reader, so they do not count as unread.
        assert_eq!(blocks.unread.load(Relaxed), 0);
        // Landing a block twice takes no more room.
        (0..9).for_each(|_| blocks.land(key(5), bytes(10)));
        assert_eq!([1, 3, 5].map(here), [true; 3]);
    }
}
