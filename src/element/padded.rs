//! Batches of a fixed size.

use super::digest::{Digest, StreamHasher};

/// A batch that was filled up to its fixed size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padded<B> {
    /// The batch, always of the fixed size.
    pub batch: B,
    /// Elements that are real; the rest, at the end, is padding.
    pub real: usize,
    /// The fixed size.
    pub size: usize,
}

impl<B> Padded<B> {
    /// `true` for every real element.
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
