//! Hash tables with the keys of units.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::Key;

/// Facts about units, by key.
pub(super) type ByKey<T> = HashMap<Key, T, BuildHasherDefault<KeyHasher>>;

/// Hasher for the numbers of files and of places in files. No attacker chooses these numbers, so a simple hash is
/// enough.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        // Hash tables use the highest and the lowest bits.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.wrapping_add(number).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::KeyHasher;

    #[test]
    fn neighbours_are_apart_wherever_a_table_looks() {
        let hash = |key: (usize, u64)| BuildHasherDefault::<KeyHasher>::default().hash_one(key);
        let keys = || (0..64usize).flat_map(|file| (0..64u64).map(move |unit| hash((file, unit))));
        let distinct = |of: fn(u64) -> u64| keys().map(of).collect::<HashSet<_>>().len();
        assert_eq!(distinct(|hash| hash), 4096);
        assert!(distinct(|hash| hash & 0xfff) > 2048, "the lowest 12 bits");
        assert_eq!(distinct(|hash| hash >> 57), 128, "the uppermost 7");
    }
}
