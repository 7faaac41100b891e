//! Random-access datasets: one adaptor per file, with all methods on [`MapDatasetExt`].

pub(super) mod batch;
mod block_shuffle;
mod combinators;
mod combine;
mod concatenate;
mod dataset;
mod decoded;
mod each;
mod epochs;
mod facts;
pub(super) mod filter;
mod flat_map;
mod lanes;
#[expect(clippy::module_inception, reason = "one adaptor a file, named after its method")]
pub(super) mod map;
mod map_with_index;
mod mix;
mod order;
mod parents;
mod pointers;
pub(super) mod random_map;
mod range;
mod repeat;
mod seed;
mod select;
mod select_indices;
mod shuffle;
mod slice;
mod slots;
mod source;
mod split;
mod window_shuffle;
mod zip;

use super::entry::StageEntry;

pub use self::batch::Batch;
pub(super) use self::batch::stacked;
pub(crate) use self::block_shuffle::ENTRY as IN_BLOCKS;
pub use self::block_shuffle::{BlockOrder, BlockShuffle};
pub use self::combine::{Combine, Combined};
pub use self::concatenate::{Concatenate, Consecutive};
pub use self::dataset::{BulkRead, GetStacked};
pub use self::decoded::{Decoded, Shuffled};
pub(super) use self::each::apply;
pub use self::each::{Each, Mapped};
pub use self::facts::SourceFacts;
pub use self::filter::{Filter, FilterFn};
pub use self::flat_map::{FannedOut, FlatMap, TryFlatMap};
pub use self::map::{Map, MapFn, TryMap, TryMapFn};
pub use self::map_with_index::{ElementIndex, IndexFn, MapWithIndex, TryIndexFn, TryMapWithIndex};
pub use self::mix::{Mix, WeightedChoice};
pub use self::order::{Order, Ordered};
pub(super) use self::pointers::same_dataset;
pub use self::random_map::{DrawFn, RandomMap, TryDrawFn, TryRandomMap};
pub use self::range::Range;
pub use self::repeat::{Repeat, RepeatOrder};
pub use self::seed::{Seed, SeedOrder};
pub use self::select::{Select, Selection, SelectionMap};
pub use self::select_indices::{IndicesOrder, SelectIndices};
pub use self::shuffle::{Shuffle, ShuffleOrder};
pub use self::slice::{Slice, SliceOrder};
pub use self::slots::{Slots, SlotsFn};
pub use self::source::{RandomAccess, Source};
pub use self::split::{Split, SplitOrder, SplitSizes};
pub use self::window_shuffle::{WindowOrder, WindowShuffle};
pub use self::zip::{Zip, ZipAll};
#[doc(hidden)]
pub use self::{combinators::MapDatasetExt, dataset::MapDataset};
pub use crate::element::{Many, ManySlots};

/// The entries of the stages of order, in the order of the documentation.
#[cfg_attr(not(feature = "spec"), allow(dead_code, reason = "pipeline files read entries"))]
pub(crate) const STAGES: &[StageEntry] = &[
    seed::ENTRY,
    shuffle::ENTRY,
    window_shuffle::ENTRY,
    block_shuffle::ENTRY,
    slice::SLICE,
    split::ENTRY,
    slice::SHARD,
    select_indices::ENTRY,
];
