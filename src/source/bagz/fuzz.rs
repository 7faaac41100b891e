//! Fuzz target.

use super::Bagz;
use crate::dataset::map::RandomAccess;
use crate::source::fuzzing::{Target, some};

pub(in crate::source) const TARGETS: &[Target] = &[("bagz", bagz)];

/// Reads a Bagz file. The first byte selects its name: compressed, uncompressed or undetermined.
fn bagz(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let name = ["a.bagz", "a.bag", "a"][usize::from(first % 3)];
    if let Ok(source) = Bagz::options().open_bytes(name, file) {
        assert!(source.len() <= file.len() as u64 / 8);
        some(&source);
    }
}
