//! The target of the fuzzers.

use super::Bagz;
use crate::dataset::map::RandomAccess;
use crate::source::fuzzing::some;

/// A Bagz file whose name says, by the first byte, that it is compressed, that it is not, or nothing.
pub(crate) fn bagz(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let name = ["a.bagz", "a.bag", "a"][usize::from(first % 3)];
    if let Ok(source) = Bagz::options().open_bytes(name, file) {
        assert!(source.len() <= file.len() as u64 / 8);
        some(&source);
    }
}
