//! Packing statistics for the report.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::feature::Feature;

/// Counts of the input and output of a packing stage, and of sequences that were split or dropped.
///
/// Cells and tokens are counted over all features except meta features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PackStats {
    /// Sequences written into rows. Each piece of a split sequence counts.
    pub sequences: u64,
    /// Real tokens written.
    pub tokens: u64,
    /// Rows yielded.
    pub rows: u64,
    /// Padding cells in the yielded rows.
    pub padding: u64,
    /// Sequences cut into pieces.
    pub splits: u64,
    /// Over-long sequences dropped.
    pub dropped: u64,
    /// Tokens in dropped sequences.
    pub dropped_tokens: u64,
    /// Rows closed early, because a meta feature had no room left or too many full rows were waiting.
    pub closed_early: u64,
}

impl PackStats {
    /// Returns the share of cells that hold real tokens, from 0 to 1; `None` before the first row.
    pub fn real_token_share(&self) -> Option<f64> {
        let cells = self.tokens + self.padding;
        (cells > 0).then(|| self.tokens as f64 / cells as f64)
    }
}

impl PackStats {
    /// Counts an over-long element of `lens` cells that becomes `pieces` sequences; 0 pieces means it is dropped.
    #[cold]
    pub(crate) fn count_uneven(&mut self, features: &[Feature], lens: &[usize], pieces: usize) {
        if pieces > 0 {
            self.splits += 1;
            return;
        }
        self.dropped += 1;
        let tokens: usize = features.iter().zip(lens).filter(|(f, _)| !f.meta).map(|(_, &len)| len).sum();
        self.dropped_tokens += tokens as u64;
    }
}

impl AddAssign for PackStats {
    fn add_assign(&mut self, other: Self) {
        self.sequences += other.sequences;
        self.tokens += other.tokens;
        self.rows += other.rows;
        self.padding += other.padding;
        self.splits += other.splits;
        self.dropped += other.dropped;
        self.dropped_tokens += other.dropped_tokens;
        self.closed_early += other.closed_early;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_cells() {
        assert_eq!(PackStats::default().real_token_share(), None);
        let mut stats = PackStats { tokens: 3, padding: 1, ..PackStats::default() };
        stats += stats;
        assert_eq!((stats.real_token_share(), stats.padding), (Some(0.75), 2));
    }
}
