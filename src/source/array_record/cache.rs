//! Decoded chunks that were read last, shared by all threads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::records::Records;

/// A file and a chunk of it.
pub(super) type Key = (usize, usize);

/// Chunks by key, in shards with a lock each; the oldest goes first.
pub(super) struct Cache {
    shards: Vec<Mutex<Shard>>,
    /// Of one shard.
    budget: usize,
}

#[derive(Default)]
struct Shard {
    chunks: VecDeque<(Key, Arc<Records>)>,
    bytes: usize,
}

const SHARDS: usize = 16;
/// Few enough to be searched one after the other.
const MAX_CHUNKS: usize = 32;

impl Cache {
    /// Holds up to `budget` bytes, and the latest chunk of each of 16 shards whatever its size.
    pub(super) fn new(budget: usize) -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), budget: budget / SHARDS }
    }

    /// The chunk, decoded by `decode` if it is not here.
    pub(super) fn get<E>(&self, key: Key, decode: impl FnOnce() -> Result<Records, E>) -> Result<Arc<Records>, E> {
        let shard = || self.shards[(key.0 + key.1) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, records)) = shard().chunks.iter().rev().find(|(known, _)| *known == key) {
            return Ok(records.clone());
        }
        // Not under the lock: others read other chunks meanwhile.
        let records = Arc::new(decode()?);
        shard().put(key, records.clone(), self.budget);
        Ok(records)
    }
}

impl Shard {
    fn put(&mut self, key: Key, records: Arc<Records>, budget: usize) {
        if self.chunks.iter().any(|(known, _)| *known == key) {
            return;
        }
        self.bytes += records.memory();
        self.chunks.push_back((key, records));
        while self.chunks.len() > 1 && (self.bytes > budget || self.chunks.len() > MAX_CHUNKS) {
            self.bytes -= self.chunks.pop_front().map_or(0, |(_, records)| records.memory());
        }
    }
}
