//! Values that are kept for later, as many as have room.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Values by key, of no more than `most` bytes together. The value that was put first goes first.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    values: HashMap<K, (V, u64)>,
    /// Keys in the order in which values go.
    order: VecDeque<K>,
    bytes: u64,
    most: u64,
}

impl<K: Copy + Eq + Hash, V> Bounded<K, V> {
    pub(crate) fn new(most: u64) -> Self {
        Self { values: HashMap::new(), order: VecDeque::new(), bytes: 0, most }
    }

    /// Finds a value, which stays at its place in the order.
    pub(crate) fn get(&mut self, key: K) -> Option<&mut V> {
        self.values.get_mut(&key).map(|(value, _)| value)
    }

    /// Keeps a value of `bytes` bytes in place of the value that the key had.
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
