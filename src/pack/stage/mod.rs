//! Packing as stages of a pipeline.

mod buckets;
mod columns;
mod group;
mod kernel;
mod made;
mod notes;
mod options;
mod order;
mod packed_columns;
mod packer;
mod plan;
mod planned;
mod rows;
mod sequences;
#[cfg(test)]
mod tests;
mod tracked;
mod window;

pub use buckets::{LengthBucketOptions, LengthBuckets, LengthBucketsFlow, LengthBucketsIter, LengthBucketsState};
pub use group::{GroupPack, GroupPackFlow, GroupPackIter, GroupPackState};
pub use options::{BinPackOptions, BosHandling, ConcatPackOptions, WindowPackOptions};
pub use packed_columns::{Labels, PackedColumns, PaddingPositions};
pub use rows::{OutputNames, RowSpec};
pub use tracked::ParentState;
pub use window::{WindowPack, WindowPackFlow, WindowPackIter, WindowPackState};

use plan::GroupPlan;

use super::bins::Fit;
use crate::dataset::IterDataset;
use crate::dataset::iter::{Flowing, InOrder, IterMapped};
use crate::element::Element;

/// Packing, as methods of every stream of elements.
///
/// All stages yield rows as elements of shape `[length]` per feature, with `<feature>_segment_ids` (1, 2, … along the
/// row; 0 is padding) and `<feature>_positions` (the place of a token in its sequence), both `i32`, or under
/// [other names](OutputNames). The arrays of a row share the memory of the group it was packed in, which is written
/// again when none of its rows is held any more.
///
/// States hold positions only and are exact after every row; a restore reads again what was in memory: the elements of
/// one group, or of one window, and at most 16 more.
///
/// # Cost
/// Sequences of Arrow, Parquet and Megatron files go from their columns into rows without an element each, as long as nothing but
/// shuffles, slices and repeats is in between, no meta feature is listed, and no threads or workers evaluate elements ahead.
///
/// # Errors
/// Configurations that make no sense are `Config` errors before anything is read. An element with a feature missing, of
/// another dtype or shape than in the first element, or too long, is a `Data` error that names the feature, the element's
/// number and the stage.
pub trait Packing: IterDataset<Item = Element> + Sized {
    /// Packs sequences into the first of `num_packing_bins` rows that has room; when none has, all rows come out.
    ///
    /// Rows and their order are those of Grain's `FirstFitPackIterDataset`, for the same seed.
    ///
    /// ```
    /// use gristmill::dataset::map::Source;
    /// use gristmill::pack::{BinPackOptions, Packing, RowSpec};
    /// use gristmill::{Array, Element, IterDataset, MapDataset};
    ///
    /// # fn main() -> gristmill::Result<()> {
    /// let sequences = [vec![1, 2, 3], vec![4, 5], vec![6]];
    /// let elements = sequences.map(|tokens: Vec<i32>| Element::new().with("tokens", Array::from_vec(tokens)));
    /// let rows = Source::new(elements.to_vec())
    ///     .to_iter()
    ///     .first_fit_pack(BinPackOptions::new(RowSpec::new([("tokens", 4)]), 2).shuffle_bins(false))
    ///     .collect()?;
    /// assert_eq!(rows[0].array("tokens")?.as_slice::<i32>()?, [1, 2, 3, 6]);
    /// assert_eq!(rows[0].array("tokens_segment_ids")?.as_slice::<i32>()?, [1, 1, 1, 2]);
    /// assert_eq!(rows[1].array("tokens_positions")?.as_slice::<i32>()?, [0, 1, 0, 0]);
    /// # Ok(())
    /// # }
    /// ```
    fn first_fit_pack(self, options: BinPackOptions) -> GroupPack<Self> {
        Flowing::new(self, |_| GroupPackFlow::new(GroupPlan::Bins(options.with_fit(Fit::First))))
    }

    /// Packs sequences into the fullest of `num_packing_bins` rows that has room; when none has, all rows come out.
    ///
    /// Rows and their order are those of Grain's `BestFitPackIterDataset`, for the same seed.
    fn best_fit_pack(self, options: BinPackOptions) -> GroupPack<Self> {
        Flowing::new(self, |_| GroupPackFlow::new(GroupPlan::Bins(options.with_fit(Fit::Best))))
    }

    /// Concatenates everything and cuts it into rows, so that only the last row has padding. Sequences are cut: a piece
    /// that continues one is a sequence of its own.
    ///
    /// Rows are those of Grain's `ConcatThenSplitIterDataset`, apart from the [differences](super::ConcatThenSplit).
    fn concat_then_split_pack(self, options: ConcatPackOptions) -> GroupPack<Self> {
        Flowing::new(self, |_| GroupPackFlow::new(GroupPlan::Concat(options)))
    }

    /// Packs every row around the oldest sequence of a look-ahead window, with those that fit best: see
    /// [`WindowPacker`](super::WindowPacker).
    ///
    /// The fullest rows without cutting: on lengths log-normal with mean 220, rows of 1,024 have 99.9 % real tokens.
    /// A sequence comes out before `window` more have been read.
    fn window_pack(self, options: WindowPackOptions) -> WindowPack<Self> {
        Flowing::new(self, |_| WindowPackFlow::new(options))
    }

    /// Batches sequences of about the same length, padded to the boundary of their bucket.
    ///
    /// A batch has `<feature>`, `[rows, boundary]` with padding behind each sequence, and `<feature>_lengths`, `[rows]` of
    /// `i32`; other fields become lists. A batch comes out as soon as its bucket is full, so batches are in the order
    /// in which their last elements came.
    fn length_buckets(self, options: LengthBucketOptions) -> LengthBuckets<Self> {
        Flowing::new(self, |_| LengthBucketsFlow::new(options))
    }

    /// Adds columns that attention kernels and losses take, made out of the segment ids of packed rows or of batches of them.
    ///
    /// A batch of which rows differ in the length of `cu_seqlens` cannot be stacked: use it after `batch`, or with
    /// [`max_segments`](PackedColumns::max_segments). With a [`part`](crate::part), use it before `batch`.
    ///
    /// # Errors
    /// An element without segment ids, with a column named like one that is added, or with more segments than
    /// [`max_segments`](PackedColumns::max_segments) is a `Data` error.
    ///
    /// # Cost
    /// `O(cells)`; a copy of each column that changes.
    fn packed_columns(self, columns: PackedColumns) -> IterMapped<Self, PackedColumns, ()> {
        Flowing::new(self, |_| InOrder::new(columns, ()))
    }
}

impl<D: IterDataset<Item = Element>> Packing for D {}
