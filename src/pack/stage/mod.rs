//! Packing stages of a pipeline.

mod buckets;
mod columns;
mod group;
mod item;
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
mod trainer_names;
mod window;

pub use buckets::{LengthBucketOptions, LengthBuckets, LengthBucketsFlow, LengthBucketsIter, LengthBucketsState};
pub use group::{GroupPack, GroupPackFlow, GroupPackIter, GroupPackState};
pub use item::PackItem;
pub use options::{BinPackOptions, BosHandling, ConcatPackOptions, WindowPackOptions};
pub use packed_columns::{Labels, PackedColumns, PaddingPositions};
pub use rows::{OutputNames, RowSpec};
pub use tracked::ParentState;
pub use trainer_names::TrainerNames;
pub use window::{WindowPack, WindowPackFlow, WindowPackIter, WindowPackState};

use plan::GroupPlan;

use super::bins::Fit;
use crate::dataset::IterDataset;
use crate::dataset::iter::Elements;
use crate::dataset::iter::{Flowing, InOrder, IterMapped};
use crate::element::Element;

/// Packing methods of every stream of elements.
///
/// All stages yield rows as elements of shape `[length]` per feature, with two `i32` arrays:
/// `<feature>_segment_ids` (1, 2, … along the row; 0 is padding) and `<feature>_positions` (the index of a token in
/// its sequence). [`OutputNames`] selects other names. The arrays of a row share the memory of the row's group.
/// This memory is reused after all rows of the group are dropped.
///
/// States contain only positions and are exact after every row. A restore rereads the elements of the current
/// group or window, and at most 16 more.
///
/// # Cost
/// Sequences of Arrow, Parquet and Megatron files are copied from their columns into rows without creating elements if:
/// - only shuffles, slices and repeats are between source and stage,
/// - no meta feature is listed,
/// - no threads or workers evaluate elements ahead.
///
/// # Errors
/// An invalid configuration is a `Config` error before anything is read.
/// An element is a `Data` error if a feature is missing or too long, or if its dtype or shape differs from the first element.
/// The error contains the name of the feature, the number of the element and the stage.
pub trait Packing: IterDataset<Item = Element> + Sized {
    /// Packs sequences into the first of `num_packing_bins` rows with room. If no row has room, all rows are yielded.
    ///
    /// Rows and their order are as in Grain's `FirstFitPackIterDataset` for an equal seed.
    ///
    /// ```
    /// use gristmill::dataset::map::Source;
    /// use gristmill::pack::{BinPackOptions, Packing, RowSpec};
    /// use gristmill::{Array, Element, prelude::*};
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

    /// Packs sequences into the fullest of `num_packing_bins` rows with room. If no row has room, all rows are yielded.
    ///
    /// Rows and their order are as in Grain's `BestFitPackIterDataset` for an equal seed.
    fn best_fit_pack(self, options: BinPackOptions) -> GroupPack<Self> {
        Flowing::new(self, |_| GroupPackFlow::new(GroupPlan::Bins(options.with_fit(Fit::Best))))
    }

    /// Concatenates all sequences and cuts the result into rows. Only the last row has padding.
    ///
    /// A piece that continues a cut sequence is a separate sequence with a separate segment id.
    /// Rows are as in Grain's `ConcatThenSplitIterDataset`, apart from the [differences](super::ConcatThenSplit).
    fn concat_then_split_pack(self, options: impl Into<ConcatPackOptions>) -> GroupPack<Self> {
        Flowing::new(self, |_| GroupPackFlow::new(GroupPlan::Concat(options.into())))
    }

    /// Packs each row with the oldest sequence of a look-ahead window and the sequences that fit best.
    ///
    /// See [`WindowPacker`](super::WindowPacker). Rows are the fullest of all stages that do not cut sequences:
    /// 99.9 % real tokens in rows of 1,024, for log-normal lengths with mean 220.
    /// A sequence is yielded before `window` more have been read.
    fn window_pack(self, options: impl Into<WindowPackOptions>) -> WindowPack<Self> {
        Flowing::new(self, |_| WindowPackFlow::new(options.into()))
    }

    /// Batches sequences of similar length, padded to the boundary of their bucket.
    ///
    /// A batch contains `<feature>`, `[rows, boundary]` with padding after each sequence, and `<feature>_lengths`,
    /// `[rows]` of `i32`. Other fields become lists. A batch is yielded as soon as its bucket is full,
    /// so batches are in the order of their last elements.
    fn length_buckets(self, options: LengthBucketOptions) -> LengthBuckets<Self> {
        Flowing::new(self, |_| LengthBucketsFlow::new(options))
    }

    /// Adds columns for attention kernels and losses, derived from the segment ids of packed rows or batches of rows.
    ///
    /// Rows cannot be stacked into a batch if their `cu_seqlens` differ in length. Use this stage after `batch`,
    /// or with [`max_segments`](PackedColumns::max_segments). With a [`part`](crate::part), use this stage before `batch`.
    ///
    /// # Errors
    /// `Data` if an element has no segment ids, or already has a column with the name of an added column.
    /// `Data` if an element has more segments than [`max_segments`](PackedColumns::max_segments).
    ///
    /// # Cost
    /// `O(cells)`; a copy of each column that changes.
    fn packed_columns(self, columns: PackedColumns) -> IterMapped<Self, PackedColumns, ()> {
        Flowing::new(self, |_| InOrder::new(columns, ()))
    }
}

impl<D: Elements> Packing for D {}
