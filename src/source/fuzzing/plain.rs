//! Formats whose bytes lie as they are: rows, tokens, records behind a list of their ends.

use crate::dataset::map::RandomAccess;

/// The first, second, middle and last record of a source.
fn some(source: &impl RandomAccess) {
    let len = source.len();
    [0, 1, len / 2, len.saturating_sub(1)].into_iter().for_each(|record| drop(source.read(record)));
}

/// A Bagz file whose name says, by the first byte, that it is compressed, that it is not, or nothing.
#[cfg(feature = "bagz")]
pub fn bagz(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let name = ["a.bagz", "a.bag", "a"][usize::from(first % 3)];
    if let Ok(source) = crate::source::Bagz::options().open_bytes(name, file) {
        assert!(source.len() <= file.len() as u64 / 8);
        some(&source);
    }
}

/// An index of Megatron's, over a few ids.
pub fn megatron(data: &[u8]) {
    use crate::source::{Megatron, MegatronUnit};
    for unit in [MegatronUnit::Sequence, MegatronUnit::Document] {
        if let Ok(source) = Megatron::options().unit(unit).open_bytes(data, &[1; 64]) {
            some(&source);
        }
    }
}
