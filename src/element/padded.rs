//! Batches of a fixed size.

use super::digest::{Digest, StreamHasher};

/// A batch padded to its fixed size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padded<B> {
    /// The batch, always `size` elements long.
    pub batch: B,
    /// The number of real elements. The remaining elements, at the end, are padding.
    pub real: usize,
    /// The fixed size.
    pub size: usize,
}

impl<B> Padded<B> {
    /// Returns a mask of `size` values: `true` for real elements, `false` for padding.
    pub fn mask(&self) -> Vec<bool> {
        (0..self.size).map(|i| i < self.real).collect()
    }
}

impl<B: Digest> Digest for Padded<B> {
    fn digest(&self, hasher: &mut StreamHasher) {
        hasher.number(self.real as u64);
        self.batch.digest(hasher);
    }
}
