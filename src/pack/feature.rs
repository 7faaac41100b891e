//! Packed features: row lengths, cell sizes, and the policy for sequences that are longer than a row.

use crate::element::Name;
use crate::error::{Error, Result};

/// Feature of the packed rows: a sequence of cells of equal size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Name of the feature, for messages.
    pub name: Name,
    /// Number of cells in a row.
    pub length: usize,
    /// Bytes of a cell: the size of the dtype times the inner dimensions.
    pub cell: usize,
    /// Alignment in cells: sequences start at multiples of this number. Gaps have segment id 0. 1 means no gaps.
    pub align: usize,
    /// Bytes of a padding cell; empty for zeros.
    pub padding: Vec<u8>,
    /// Whether rows also hold the feature shifted left by one within each sequence, as targets of a language model.
    pub shifted: bool,
    /// Whether this is a meta feature: packed without segment ids and positions, never split, not counted as tokens.
    pub meta: bool,
    /// Whether cells are only counted and never written, as in planning.
    pub counted: bool,
}

impl Feature {
    /// Creates a feature of 4-byte cells, without alignment, padded with 0.
    pub fn new(name: impl AsRef<str>, length: usize) -> Self {
        let name = Name::new(name);
        Self { name, length, cell: 4, align: 1, padding: Vec::new(), shifted: false, meta: false, counted: false }
    }

    /// Returns the number of row cells that `len` cells occupy, including the alignment gap.
    #[inline]
    pub(crate) fn aligned(&self, len: usize) -> usize {
        if self.align == 1 { len } else { len.next_multiple_of(self.align) }
    }

    /// Returns the piece length of an over-long sequence, in cells.
    ///
    /// The row length is rounded down to a multiple of the alignment, unless the alignment exceeds the row length.
    fn piece(&self) -> usize {
        if self.align > self.length { self.length } else { self.length - self.length % self.align }
    }

    /// Returns the number of cells in `bytes`.
    ///
    /// # Errors
    /// `Data` if `bytes` is not a whole number of cells, or has more cells than an `i32` position can count.
    #[inline]
    pub(crate) fn cells(&self, bytes: &[u8]) -> Result<usize> {
        let cells = if self.cell == 4 { bytes.len() / 4 } else { bytes.len() / self.cell };
        if cells * self.cell != bytes.len() || cells > i32::MAX as usize {
            return Err(self.bad_size(bytes.len()));
        }
        Ok(cells)
    }

    #[cold]
    fn bad_size(&self, bytes: usize) -> Error {
        let Self { name, cell, .. } = self;
        Error::data(format!("feature {name:?} has {bytes} bytes, not a whole number of cells of {cell}"))
    }

    fn check(&self) -> Result<()> {
        let Self { name, length, cell, align, .. } = self;
        if self.meta && self.shifted {
            return Err(Error::config(format!("feature {name:?}: a meta feature has no segments to shift within")));
        }
        if *length == 0 || *length > i32::MAX as usize {
            return Err(Error::config(format!(
                "feature {name:?}: a row length of {length} is not in 1..={}",
                i32::MAX
            )));
        }
        if *cell == 0 {
            return Err(Error::config(format!("feature {name:?}: cells of 0 bytes cannot be packed")));
        }
        if *align == 0 {
            return Err(Error::config(format!("feature {name:?}: sequences cannot start at multiples of 0 cells")));
        }
        if !self.padding.is_empty() && self.padding.len() != *cell {
            let bytes = self.padding.len();
            return Err(Error::config(format!(
                "feature {name:?}: the padding value has {bytes} bytes, but a cell has {cell}"
            )));
        }
        Ok(())
    }
}

/// Checks a list of features.
///
/// # Errors
/// `Config` if the list is empty, a name is repeated, or all features are meta features.
/// `Config` if a length, cell size, alignment or padding is invalid.
pub(crate) fn check(features: &[Feature]) -> Result<()> {
    if features.iter().all(|f| f.meta) {
        return Err(Error::config("packing needs at least one feature that is not a meta feature"));
    }
    for (at, feature) in features.iter().enumerate() {
        feature.check()?;
        if features[..at].iter().any(|f| f.name == feature.name) {
            return Err(Error::config(format!("feature {:?} is listed twice", feature.name)));
        }
    }
    Ok(())
}

/// Writes the number of cells of each feature of `element` into `lens`.
///
/// # Errors
/// `Data` if the number of features differs, or a feature is not a whole number of cells.
#[inline]
pub(crate) fn measure(features: &[Feature], element: &[&[u8]], lens: &mut Vec<usize>) -> Result<()> {
    if element.len() != features.len() {
        return Err(wrong_count(features, element.len()));
    }
    lens.clear();
    for (feature, bytes) in features.iter().zip(element) {
        lens.push(feature.cells(bytes)?);
    }
    Ok(())
}

#[cold]
fn wrong_count(features: &[Feature], got: usize) -> Error {
    Error::data(format!("an element has {got} features, but {} are packed", features.len()))
}

/// Policy for a sequence that is longer than a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OverLong {
    /// An over-long sequence is an error, as in Grain.
    #[default]
    Error,
    /// An over-long sequence is cut into pieces of a row's length. Each piece is a separate sequence. Splits are counted.
    Split,
    /// An over-long sequence is dropped. Drops are counted.
    Drop,
}

display_as!(OverLong, |self, f| {
    f.write_str(match self {
        Self::Error => "error",
        Self::Split => "split",
        Self::Drop => "drop",
    })
});

/// Returns the number of pieces of an element of `lens` cells: 1 if the element fits a row, 0 if it is dropped.
///
/// # Errors
/// `Data` for an over-long feature under [`OverLong::Error`].
/// `Data` for an over-long meta feature under [`OverLong::Split`], because meta features are never split.
#[inline]
pub(crate) fn pieces(features: &[Feature], lens: &[usize], policy: OverLong) -> Result<usize> {
    if features.iter().zip(lens).all(|(feature, &len)| len <= feature.length) {
        return Ok(1);
    }
    over_long_pieces(features, lens, policy)
}

#[cold]
fn over_long_pieces(features: &[Feature], lens: &[usize], policy: OverLong) -> Result<usize> {
    if policy == OverLong::Drop {
        return Ok(0);
    }
    let mut pieces = 1;
    for (feature, &len) in features.iter().zip(lens) {
        if len <= feature.length {
            continue;
        }
        if policy == OverLong::Error || feature.meta {
            return Err(over_long(feature, len));
        }
        pieces = pieces.max(len.div_ceil(feature.piece()));
    }
    Ok(pieces)
}

#[cold]
pub(crate) fn over_long(feature: &Feature, len: usize) -> Error {
    let (name, limit) = (&feature.name, feature.length);
    let help = if feature.meta {
        "meta features are never split: give it a longer row"
    } else {
        "truncate it before, or choose to split or to drop over-long sequences"
    };
    Error::data(format!("feature {name:?} has {len} cells, a row takes {limit}")).help(help)
}

/// Returns the cell range of piece `piece`. Every piece repeats meta features whole.
#[inline]
pub(crate) fn piece_range(feature: &Feature, len: usize, piece: usize) -> std::ops::Range<usize> {
    if feature.meta {
        return 0..len;
    }
    let most = if len <= feature.length { feature.length } else { feature.piece() };
    let start = len.min(piece.saturating_mul(most));
    start..len.min(start.saturating_add(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_over_long_element_follows_the_policy() {
        let features = [Feature { align: 4, ..Feature::new("a", 10) }, Feature::new("b", 5)];
        assert_eq!(pieces(&features, &[10, 5], OverLong::Error).unwrap(), 1);
        let error = pieces(&features, &[11, 5], OverLong::Error).unwrap_err();
        assert_eq!(error.message(), "feature \"a\" has 11 cells, a row takes 10");
        assert_eq!(pieces(&features, &[11, 5], OverLong::Drop).unwrap(), 0);
        assert_eq!(pieces(&features, &[9, 11], OverLong::Split).unwrap(), 3);
        let cut = |f: usize, len| [0, 1, 2].map(|piece| piece_range(&features[f], len, piece));
        assert_eq!((cut(0, 9), cut(0, 11)), ([0..9, 9..9, 9..9], [0..8, 8..11, 11..11]));
        assert_eq!(cut(1, 11), [0..5, 5..10, 10..11]);
    }

    #[test]
    fn meta_features_are_never_split() {
        let features = [Feature::new("a", 4), Feature { meta: true, ..Feature::new("m", 2) }];
        assert!(pieces(&features, &[9, 3], OverLong::Split).is_err());
        assert_eq!(pieces(&features, &[9, 2], OverLong::Split).unwrap(), 3);
        assert_eq!(piece_range(&features[1], 2, 2), 0..2);
    }

    #[test]
    fn nonsense_is_refused() {
        let ok = Feature::new("a", 4);
        let bad = [
            Feature { length: 0, ..ok.clone() },
            Feature { cell: 0, ..ok.clone() },
            Feature { align: 0, ..ok.clone() },
            Feature { padding: vec![0; 3], ..ok.clone() },
            Feature { meta: true, ..ok.clone() },
            Feature { meta: true, shifted: true, ..ok.clone() },
        ];
        for feature in bad {
            assert!(check(std::slice::from_ref(&feature)).is_err(), "{feature:?}");
        }
        assert!(check(&[ok.clone(), ok.clone()]).unwrap_err().message().contains("twice"));
        assert!(check(&[]).is_err());
        check(&[ok]).unwrap();
    }
}
