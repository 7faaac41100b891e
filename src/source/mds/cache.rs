//! Decompressed shards that were read last, shared by all threads.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::element::Buffer;

/// Shards by number. A shard is decompressed by one thread while others that want it wait.
pub(super) struct Cache {
    slots: Vec<Mutex<Option<Buffer>>>,
    held: Mutex<Held>,
    budget: usize,
}

/// Which shards are here, the one that was used last at the end, and their bytes.
#[derive(Default)]
struct Held {
    shards: VecDeque<(usize, usize)>,
    bytes: usize,
}

impl Cache {
    /// For so many shards, of which up to `budget` bytes stay, and the latest whatever its size.
    pub(super) fn new(shards: usize, budget: usize) -> Self {
        Self { slots: (0..shards).map(|_| Mutex::default()).collect(), held: Mutex::default(), budget }
    }

    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    /// The shard, which `decompress` makes if it is not here.
    pub(super) fn get<E>(&self, shard: usize, decompress: impl FnOnce() -> Result<Buffer, E>) -> Result<Buffer, E> {
        let mut slot = self.slots[shard].lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match &*slot {
            Some(bytes) => bytes.clone(),
            None => slot.insert(decompress()?).clone(),
        };
        drop(slot);
        for other in self.used(shard, bytes.len()) {
            *self.slots[other].lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Ok(bytes)
    }

    /// Notes that a shard of so many bytes was used, and says which must go.
    fn used(&self, shard: usize, bytes: usize) -> Vec<usize> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.shards.back().is_some_and(|(last, _)| *last == shard) {
            return Vec::new();
        }
        match held.shards.iter().position(|(known, _)| *known == shard) {
            Some(place) => drop(held.shards.remove(place)),
            None => held.bytes += bytes,
        }
        held.shards.push_back((shard, bytes));
        let mut gone = Vec::new();
        while held.bytes > self.budget && held.shards.len() > 1 {
            if let Some((oldest, bytes)) = held.shards.pop_front() {
                held.bytes -= bytes;
                gone.push(oldest);
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = Cache::new(5, 3000);
        let get = |shard: usize, bytes: usize| {
            let mut made = false;
            let read = cache.get(shard, || {
                made = true;
                Ok::<_, ()>(Buffer::from_vec(vec![shard as u8; bytes]))
            });
            assert_eq!(read.unwrap().as_bytes()[0], shard as u8);
            made
        };
        assert_eq!([0, 1, 2].map(|shard| get(shard, 1000)), [true; 3]);
        assert!(!get(0, 1000));
        assert!(get(3, 1000));
        assert_eq!([0, 2, 3].map(|shard| get(shard, 1000)), [false; 3]);
        assert!(get(1, 1000));
        assert!(get(4, 9000) && !get(4, 9000));
        assert!(get(3, 1000));
        assert!(cache.get(0, || Err(1)).is_err());
    }
}
