//! Cache of values with a limit in bytes.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Values by key, with at most `most` bytes in total. Evicts the oldest insertion first.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    values: HashMap<K, (V, u64)>,
    /// Keys in eviction order.
    order: VecDeque<K>,
    bytes: u64,
    most: u64,
}

impl<K: Copy + Eq + Hash, V> Bounded<K, V> {
    pub(crate) fn new(most: u64) -> Self {
        Self { values: HashMap::new(), order: VecDeque::new(), bytes: 0, most }
    }

    /// Returns the value of a key. The eviction order does not change.
    pub(crate) fn get(&mut self, key: K) -> Option<&mut V> {
        self.values.get_mut(&key).map(|(value, _)| value)
    }

    /// Inserts a value of `bytes` bytes, or replaces the previous value of the key. Evicts the oldest values if the
    /// limit is exceeded.
    pub(crate) fn put(&mut self, key: K, value: V, bytes: u64) {
        match self.values.insert(key, (value, bytes)) {
            Some((_, before)) => self.bytes -= before,
            None => self.order.push_back(key),
        }
        self.bytes += bytes;
        while self.bytes > self.most {
            let Some((_, bytes)) = self.order.pop_front().and_then(|oldest| self.values.remove(&oldest)) else {
                return;
            };
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_when_their_room_is_wanted() {
        let mut kept = Bounded::new(10);
        (0..3).for_each(|key| kept.put(key, 'a', 4));
        assert_eq!([0, 1, 2].map(|key| kept.get(key).is_some()), [false, true, true]);
        kept.put(1, 'b', 6);
        assert_eq!((kept.get(1) == Some(&mut 'b'), kept.get(2) == Some(&mut 'a'), kept.bytes), (true, true, 10));
        kept.put(3, 'c', 11);
        assert_eq!((kept.values.len(), kept.order.len(), kept.bytes), (0, 0, 0));
    }
}
