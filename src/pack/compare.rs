//! Comparison of packing strategies by padding, cuts and cost, computed from lengths alone.

use serde::Serialize;

use super::bins::{Bins, Fit};
use super::feature::{Feature, OverLong};
use super::window::{WindowOptions, WindowPacker};
use crate::error::{Error, Result};

/// Number of bins in a group of [`Strategy::FirstFit`] and [`Strategy::BestFit`].
const BINS: usize = 64;
/// Number of buckets in [`Strategy::LengthBuckets`].
const BUCKETS: usize = 8;

/// Strategy that makes batches of a fixed number of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strategy {
    /// One sequence per row, all rows of full length. Longer sequences are truncated.
    PadToMax,
    /// One sequence per row, padded to one of 8 lengths.
    /// A batch holds rows of equal length. All batches have about the same number of cells.
    LengthBuckets,
    /// First fit into 64 bins. Sequences longer than a row are split.
    FirstFit,
    /// Best fit into 64 bins. Sequences longer than a row are split.
    BestFit,
    /// Best fit over a look-ahead window of 1024 sequences. Sequences longer than a row are split.
    WindowBestFit,
    /// Concatenation of all sequences, cut at the end of each row.
    ConcatThenSplit,
}

impl Strategy {
    /// All strategies, simplest first.
    pub const ALL: [Self; 6] = [
        Self::PadToMax,
        Self::LengthBuckets,
        Self::FirstFit,
        Self::BestFit,
        Self::WindowBestFit,
        Self::ConcatThenSplit,
    ];

    /// Returns a label for display, such as `best-fit, 64 bins`.
    pub fn label(self) -> &'static str {
        match self {
            Self::PadToMax => "pad to max",
            Self::LengthBuckets => "length buckets ×8",
            Self::FirstFit => "first-fit, 64 bins",
            Self::BestFit => "best-fit, 64 bins",
            Self::WindowBestFit => "window best-fit, 1024",
            Self::ConcatThenSplit => "concat then split",
        }
    }
}

/// Outcome of a [`Strategy`] for the given lengths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Strategy of this outcome.
    pub strategy: Strategy,
    /// Share of cells that hold padding, from 0 to 1.
    pub padding_share: f64,
    /// Number of sequences cut into pieces.
    pub split: u64,
    /// Number of truncated sequences.
    pub truncated: u64,
    /// Number of tokens lost by truncation.
    pub tokens_lost: u64,
    /// Number of batches of `batch * seq_len` cells.
    pub batches: u64,
    /// Cost of attention over full rows: the sum of squared row lengths, relative to [`Strategy::PadToMax`].
    pub attention_cost: f64,
}

/// Runs every strategy over `lengths`, in order, with batches of `batch` rows of `seq_len` cells.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if `seq_len` or `batch` is 0 or above `i32::MAX`.
/// # Cost
/// A few tens of nanoseconds per sequence; memory for a few thousand numbers.
pub fn compare(lengths: &[u32], seq_len: usize, batch: usize) -> Result<Vec<Outcome>> {
    if seq_len == 0 || seq_len > i32::MAX as usize {
        return Err(Error::config(format!("a row length of {seq_len} is not in 1..={}", i32::MAX)));
    }
    if batch == 0 || batch > i32::MAX as usize {
        return Err(Error::config(format!("a batch of {batch} rows is not in 1..={}", i32::MAX)));
    }
    let case = Case { lengths, seq_len, batch };
    let baseline = case.pad_to_max().attention;
    let outcome = |strategy| Ok(case.tally(strategy)?.outcome(strategy, baseline));
    Strategy::ALL.into_iter().map(outcome).collect()
}

#[derive(Clone, Copy)]
struct Case<'a> {
    lengths: &'a [u32],
    seq_len: usize,
    batch: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    tokens: u64,
    cells: u64,
    split: u64,
    truncated: u64,
    tokens_lost: u64,
    batches: u64,
    attention: f64,
}

impl Tally {
    fn outcome(self, strategy: Strategy, baseline: f64) -> Outcome {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Outcome {
            strategy,
            padding_share: share(self.cells.saturating_sub(self.tokens) as f64, self.cells as f64),
            split: self.split,
            truncated: self.truncated,
            tokens_lost: self.tokens_lost,
            batches: self.batches,
            attention_cost: share(self.attention, baseline),
        }
    }

    /// Adds `rows` rows of `length` cells.
    fn add_rows(&mut self, rows: u64, length: usize) {
        self.cells += rows * length as u64;
        self.attention += rows as f64 * (length as f64).powi(2);
    }
}

impl Case<'_> {
    fn tally(self, strategy: Strategy) -> Result<Tally> {
        match strategy {
            Strategy::PadToMax => Ok(self.pad_to_max()),
            Strategy::LengthBuckets => Ok(self.buckets()),
            Strategy::FirstFit => Ok(self.fit(Fit::First)),
            Strategy::BestFit => Ok(self.fit(Fit::Best)),
            Strategy::WindowBestFit => self.window(),
            Strategy::ConcatThenSplit => Ok(self.concat()),
        }
    }

    /// Counts kept and lost tokens if each row takes one sequence and truncates it.
    fn truncating(self) -> Tally {
        let limit = self.seq_len as u64;
        let mut tally = Tally::default();
        for length in self.lengths.iter().map(|&l| u64::from(l)) {
            tally.tokens += length.min(limit);
            tally.truncated += u64::from(length > limit);
            tally.tokens_lost += length.saturating_sub(limit);
        }
        tally
    }

    fn pad_to_max(self) -> Tally {
        let mut tally = self.truncating();
        let rows = self.lengths.len() as u64;
        tally.add_rows(rows, self.seq_len);
        tally.batches = rows.div_ceil(self.batch as u64);
        tally
    }

    fn buckets(self) -> Tally {
        let mut rows = [0u64; BUCKETS];
        // Boundaries are eighths of the row, rounded up. The last boundary is the row length.
        let boundary = |bucket: usize| (self.seq_len * (bucket + 1)).div_ceil(BUCKETS);
        for &length in self.lengths {
            let length = (length as usize).clamp(1, self.seq_len);
            let guess = (length * BUCKETS).div_ceil(self.seq_len) - 1;
            rows[if length > boundary(guess) { guess + 1 } else { guess }] += 1;
        }
        let mut tally = self.truncating();
        for (bucket, &count) in rows.iter().enumerate() {
            let length = boundary(bucket);
            tally.add_rows(count, length);
            tally.batches += count.div_ceil((self.batch * self.seq_len / length).max(1) as u64);
        }
        tally
    }

    /// Returns the pieces of every sequence in order. A long sequence gives full rows and a rest.
    fn pieces(self, tally: &mut Tally) -> impl Iterator<Item = usize> {
        let seq_len = self.seq_len;
        tally.tokens = self.lengths.iter().map(|&l| u64::from(l)).sum();
        tally.split = self.lengths.iter().filter(|&&l| l as usize > seq_len).count() as u64;
        self.lengths.iter().flat_map(move |&length| {
            let (full, rest) = (length as usize / seq_len, length as usize % seq_len);
            std::iter::repeat_n(seq_len, full).chain((rest > 0).then_some(rest))
        })
    }

    fn packed(self, mut tally: Tally, rows: u64) -> Tally {
        tally.add_rows(rows, self.seq_len);
        tally.batches = rows.div_ceil(self.batch as u64);
        tally
    }

    /// Simulates [`GroupPacker`](super::GroupPacker) without writing rows.
    fn fit(self, fit: Fit) -> Tally {
        let mut tally = Tally::default();
        let mut bins = Bins::new(fit, BINS, self.seq_len);
        let (mut free, mut open, mut rows) = ([self.seq_len; BINS], 0, 0u64);
        for piece in self.pieces(&mut tally) {
            let bin = bins.find(piece).unwrap_or_else(|| {
                bins.reset();
                free.fill(self.seq_len);
                rows += std::mem::take(&mut open);
                0
            });
            open += u64::from(free[bin] == self.seq_len);
            free[bin] -= piece;
            bins.set(bin, Some(free[bin]));
        }
        self.packed(tally, rows + open)
    }

    fn window(self) -> Result<Tally> {
        let options = WindowOptions { over_long: OverLong::Split, ..WindowOptions::default() };
        let mut packer = WindowPacker::new(&[Feature::new("tokens", self.seq_len)], options)?;
        let mut tally = Tally::default();
        let mut rows = 0;
        for piece in self.pieces(&mut tally) {
            packer.push(&[piece])?;
            while packer.next_row(false).is_some() {
                rows += 1;
            }
        }
        while packer.next_row(true).is_some() {
            rows += 1;
        }
        Ok(self.packed(tally, rows))
    }

    fn concat(self) -> Tally {
        let row = self.seq_len as u64;
        let mut tally = Tally::default();
        for length in self.lengths.iter().map(|&l| u64::from(l)).filter(|&l| l > 0) {
            let end = tally.tokens + length;
            tally.split += u64::from(tally.tokens / row != (end - 1) / row);
            tally.tokens = end;
        }
        let rows = tally.tokens.div_ceil(row);
        self.packed(tally, rows)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{GroupOptions, GroupPacker, Placed};
    use super::{BINS, Case, Feature, Fit, Outcome, OverLong, Strategy, Tally, compare};

    fn outcome(outcomes: &[Outcome], strategy: Strategy) -> Outcome {
        *outcomes.iter().find(|o| o.strategy == strategy).unwrap()
    }

    #[test]
    fn by_hand() {
        let outcomes = compare(&[8, 4, 4, 10, 1], 8, 2).unwrap();
        let o = |strategy| outcome(&outcomes, strategy);
        let padded = o(Strategy::PadToMax);
        assert_eq!((padded.batches, padded.truncated, padded.tokens_lost), (3, 1, 2));
        assert_eq!((padded.padding_share, padded.attention_cost), (15.0 / 40.0, 1.0));
        // Rows of 8, 4, 4, 8 and 1 cells; batches of 16 cells.
        let buckets = o(Strategy::LengthBuckets);
        assert_eq!((buckets.batches, buckets.padding_share), (3, 0.0));
        // Pieces 8, 4, 4, 8, 2, 1 fill four rows.
        let best = o(Strategy::BestFit);
        assert_eq!((best.batches, best.split, best.padding_share), (2, 1, 5.0 / 32.0));
        let concat = o(Strategy::ConcatThenSplit);
        assert_eq!((concat.batches, concat.split), (2, 1));
    }

    #[test]
    fn nothing_and_impossible_arguments() {
        assert!(compare(&[], 8, 2).unwrap().iter().all(|o| o.batches == 0 && o.padding_share == 0.0));
        assert!(compare(&[1], 0, 2).is_err());
        assert!(compare(&[1], 8, 0).is_err());
    }

    proptest! {
        /// The simulation and the packers produce equal numbers of tokens and cells.
        #[test]
        fn it_counts_what_the_packers_do(lengths in prop::collection::vec(0u32..40, 0..400), seq_len in 1usize..33) {
            let case = Case { lengths: &lengths, seq_len, batch: 4 };
            for fit in [Fit::First, Fit::Best] {
                let options = GroupOptions { fit, over_long: OverLong::Split, ..GroupOptions::new(BINS) };
                let mut packer = GroupPacker::new(&[Feature::new("t", seq_len)], options).unwrap();
                for piece in case.pieces(&mut Tally::default()) {
                    let bytes = vec![0; piece * 4];
                    if packer.push(&[&bytes]).unwrap() == Placed::Full {
                        packer.finish();
                        packer.push(&[&bytes]).unwrap();
                    }
                }
                packer.finish();
                let stats = packer.stats();
                let tally = case.fit(fit);
                prop_assert_eq!((tally.tokens, tally.cells), (stats.tokens, stats.tokens + stats.padding));
            }
        }

        /// Every strategy has room for its tokens, and no packed strategy needs fewer batches than concatenation.
        #[test]
        fn cells_hold_the_tokens(lengths in prop::collection::vec(1u32..40, 1..200), seq_len in 1usize..33) {
            let outcomes = compare(&lengths, seq_len, 3).unwrap();
            for o in &outcomes {
                prop_assert!((0.0..1.0).contains(&o.padding_share), "{:?}", o);
            }
            let concat = outcome(&outcomes, Strategy::ConcatThenSplit);
            for packed in [Strategy::FirstFit, Strategy::BestFit, Strategy::WindowBestFit] {
                prop_assert!(outcome(&outcomes, packed).batches >= concat.batches);
            }
        }
    }
}
