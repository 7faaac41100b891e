//! Options of the packing stages.

use std::fmt;

use super::rows::{RowSpec, in_feature, number_bytes};
use crate::element::{DType, Name};
use crate::error::{Error, Result};
use crate::pack::bins::Fit;
use crate::pack::concat::{ConcatOptions, ConcatThenSplit, Positions};
use crate::pack::feature::{Feature, OverLong};
use crate::pack::group::{GroupOptions, GroupPacker};
use crate::pack::window::{WindowOptions, WindowPacker};

/// Options of [`first_fit_pack`](super::Packing::first_fit_pack) and [`best_fit_pack`](super::Packing::best_fit_pack).
#[derive(Clone, Debug, PartialEq)]
pub struct BinPackOptions {
    pub(super) rows: RowSpec,
    pub(super) group: GroupOptions,
    pub(super) seed: u64,
    pub(super) shuffle_bins: bool,
    pub(super) group_by: Option<Name>,
}

impl BinPackOptions {
    /// Creates options for groups of `num_packing_bins` rows, shuffled within a group with seed 0, as in Grain.
    pub fn new(rows: impl Into<RowSpec>, num_packing_bins: usize) -> Self {
        Self {
            rows: rows.into(),
            group: GroupOptions::new(num_packing_bins),
            seed: 0,
            shuffle_bins: true,
            group_by: None,
        }
    }

    setters! {
        /// Sets the seed for the order of rows within a group.
        #[must_use]
        pub seed: u64;

        /// Sets whether the rows of a group are shuffled. Otherwise the last rows of every group have the most padding.
        #[must_use]
        pub shuffle_bins: bool;

        /// Restricts shuffling to rows with an equal mean of the distinct nonzero values of `feature`.
        ///
        /// Rows with lower means come first. If the feature contains the epoch, epochs stay separate.
        #[must_use]
        pub shuffle_bins_group_by_feature(feature: impl AsRef<str>) => group_by = Some(Name::new(feature));

        /// Sets the maximum number of sequences in a row.
        #[must_use]
        pub max_sequences_per_bin(most: usize) => group.max_sequences = Some(most);

        /// Sets the policy for a sequence that is longer than a row. The default is an error.
        #[must_use]
        pub over_long(policy: OverLong) => group.over_long = policy;

        pub(super) with_fit(fit: Fit) => group.fit = fit;
    }

    pub(super) fn check(&self) -> Result<()> {
        self.rows.check()?;
        if let Some(name) = self.group_by.as_ref().filter(|name| self.rows.position(name).is_none()) {
            return Err(Error::config(format!("bins are grouped by feature {name:?}, which is not packed")));
        }
        GroupPacker::new(&example(&self.rows)?, self.group).map(drop)
    }
}

impl fmt::Display for BinPackOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, num_packing_bins={}", self.rows, self.group.bins)?;
        match self.shuffle_bins {
            true => write!(f, ", seed={}", self.seed)?,
            false => write!(f, ", shuffle_bins=false")?,
        }
        if let Some(feature) = &self.group_by {
            write!(f, ", shuffle_bins_group_by_feature={feature}")?;
        }
        if let Some(most) = self.group.max_sequences {
            write!(f, ", max_sequences_per_bin={most}")?;
        }
        write!(f, ", over_long={}", self.group.over_long)
    }
}

/// Options of [`window_pack`](super::Packing::window_pack).
#[derive(Clone, Debug, PartialEq)]
pub struct WindowPackOptions {
    pub(super) rows: RowSpec,
    pub(super) window: WindowOptions,
}

impl<R: Into<RowSpec>> From<R> for WindowPackOptions {
    fn from(rows: R) -> Self {
        Self::new(rows)
    }
}

impl WindowPackOptions {
    /// Creates options for a window of 1,024 sequences.
    pub fn new(rows: impl Into<RowSpec>) -> Self {
        Self { rows: rows.into(), window: WindowOptions::default() }
    }

    setters! {
        /// Sets the number of sequences to look ahead. They are held in memory, and read again on a restore.
        #[must_use]
        pub window(sequences: usize) => window.window = sequences;

        /// Sets the maximum number of sequences in a row.
        #[must_use]
        pub max_sequences_per_bin(most: usize) => window.max_sequences = Some(most);

        /// Sets the policy for a sequence that is longer than a row. The default is an error.
        #[must_use]
        pub over_long(policy: OverLong) => window.over_long = policy;
    }

    pub(super) fn check(&self) -> Result<()> {
        self.rows.check()?;
        WindowPacker::new(&example(&self.rows)?, self.window).map(drop)
    }
}

display_as!(WindowPackOptions, |self, f| {
    write!(f, "{}, window={}", self.rows, self.window.window)?;
    if let Some(most) = self.window.max_sequences {
        write!(f, ", max_sequences_per_bin={most}")?;
    }
    write!(f, ", over_long={}", self.window.over_long)
});

/// Policy for the first token of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BosHandling {
    /// The first token stays.
    #[default]
    DoNothing,
    /// The first token is replaced in every sequence, and in every piece that continues a sequence in the next row.
    ReplaceFirstTokenWithBos,
}

/// Options of [`concat_then_split_pack`](super::Packing::concat_then_split_pack).
#[derive(Clone, Debug, PartialEq)]
pub struct ConcatPackOptions {
    pub(super) rows: RowSpec,
    pub(super) split_full_length_features: bool,
    positions: Positions,
    bos_handling: BosHandling,
    bos_features: Vec<Name>,
    bos_token_id: Option<i64>,
}

impl<R: Into<RowSpec>> From<R> for ConcatPackOptions {
    fn from(rows: R) -> Self {
        Self::new(rows)
    }
}

impl ConcatPackOptions {
    /// Creates options with Grain's defaults: all sequences are cut, positions restart in a continuation, first tokens stay.
    pub fn new(rows: impl Into<RowSpec>) -> Self {
        Self {
            rows: rows.into(),
            split_full_length_features: true,
            positions: Positions::Restart,
            bos_handling: BosHandling::DoNothing,
            bos_features: Vec::new(),
            bos_token_id: None,
        }
    }

    setters! {
        /// Sets whether an element that fills a row alone is cut like any other. Otherwise it becomes a separate row.
        #[must_use]
        pub split_full_length_features: bool;

        /// Sets the first position of a continuation.
        #[must_use]
        pub positions: Positions;

        /// Sets the policy for the first token of a sequence. Replacement requires features and a token.
        #[must_use]
        pub bos_handling: BosHandling;

        /// Sets the token that replaces first tokens.
        #[must_use]
        pub bos_token_id(token: i64) => bos_token_id = Some(token);
    }

    /// Sets the features whose first token is replaced.
    #[must_use]
    pub fn bos_features<N: AsRef<str>>(mut self, features: impl IntoIterator<Item = N>) -> Self {
        self.bos_features.extend(features.into_iter().map(Name::new));
        self
    }

    /// Returns the options of the kernel. `dtype` returns the dtype of a feature by index.
    ///
    /// # Errors
    /// `Config` if `bos_features` names a feature that is not packed or is a meta feature.
    /// `Config` if the token does not fit the dtype of the feature.
    pub(super) fn kernel(&self, dtype: impl Fn(usize) -> DType, features: &[Feature]) -> Result<ConcatOptions> {
        let mut bos = Vec::new();
        // Nothing is replaced if cells are only counted.
        for name in self.bos_features.iter().filter(|_| features.iter().all(|feature| !feature.counted)) {
            let Some(at) = self.rows.position(name).filter(|&at| !features[at].meta) else {
                return Err(Error::config(format!(
                    "bos_features names {name:?}, which is not a packed feature with tokens"
                )));
            };
            let token = self.bos_token_id.unwrap_or_default() as f64;
            let number = number_bytes(dtype(at), token).map_err(|e| in_feature(name, &e))?;
            bos.push((at, number.repeat(features[at].cell / dtype(at).size())));
        }
        let (split_full, positions) = (self.split_full_length_features, self.positions);
        Ok(ConcatOptions { split_full, positions, bos, ..ConcatOptions::default() })
    }

    pub(super) fn check(&self) -> Result<()> {
        self.rows.check()?;
        if let Some(name) = self.rows.listed().next() {
            return Err(Error::config(format!(
                "meta feature {name:?} has no row length, and pieces have no list of values"
            )));
        }
        let (features, token) = (!self.bos_features.is_empty(), self.bos_token_id.is_some());
        let replaces = self.bos_handling == BosHandling::ReplaceFirstTokenWithBos;
        if replaces && !(features && token) {
            let missing = if features { "bos_token_id" } else { "bos_features" };
            return Err(Error::config(format!("replacing the first token needs {missing}"))
                .help("without it, no token would be replaced, and no error would be raised"));
        }
        if !replaces && (features || token) {
            let given = if features { "bos_features" } else { "bos_token_id" };
            return Err(Error::config(format!("{given} without bos_handling has no effect")));
        }
        let features = example(&self.rows)?;
        // Tokens are checked as `f64` here. The check against the real dtype follows at the first element.
        ConcatThenSplit::new(&features, self.kernel(|_| DType::F64, &features)?).map(drop)
    }
}

impl fmt::Display for ConcatPackOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, split_full_length_features={}", self.rows, self.split_full_length_features)?;
        if self.positions == Positions::Continue {
            write!(f, ", positions=continue")?;
        }
        if let Some(token) = self.bos_token_id {
            write!(f, ", bos={token} in {}", self.bos_features.join(" "))?;
        }
        Ok(())
    }
}

/// Returns features with cells of eight bytes, to check options before the first element.
fn example(rows: &RowSpec) -> Result<Vec<Feature>> {
    rows.resolve(&vec![(DType::F64, Vec::new()); rows.features().len()])
}
