//! Packing: puts sequences of different lengths into rows of equal length.
//!
//! The kernels in this module work on features, cells and rows. The iterator stages connect them to datasets.

mod arena;
mod bins;
mod bit_tree;
mod bucket;
mod compare;
mod concat;
#[cfg_attr(not(feature = "spec"), allow(dead_code, reason = "pipeline files read entries"))]
pub(crate) mod entry;
mod feature;
mod group;
mod held;
mod stage;
mod stats;
mod window;
mod writer;

pub use arena::{Arena, Part};
pub use bins::Fit;
pub use bucket::{BatchSize, Bucket, BucketOptions, BucketPlanner};
pub use compare::{Outcome, Strategy, compare};
pub use concat::{ConcatOptions, ConcatThenSplit, Cursor, Fed, Positions};
pub use feature::{Feature, OverLong};
pub use group::{GroupOptions, GroupPacker, Placed};
pub use held::{Bits, HeldState};
pub use stage::{
    BinPackOptions, BosHandling, ConcatPackOptions, GroupPack, GroupPackFlow, GroupPackIter, GroupPackState, Labels,
    LengthBucketOptions, LengthBuckets, LengthBucketsFlow, LengthBucketsIter, LengthBucketsState, OutputNames,
    PackItem, PackedColumns, Packing, PaddingPositions, ParentState, RowSpec, TrainerNames, WindowPack, WindowPackFlow,
    WindowPackIter, WindowPackOptions, WindowPackState,
};
pub use stats::PackStats;
pub use window::{WindowOptions, WindowPacker};
pub use writer::Group;
