//! Streams: ordered, stateful and checkpointable. Each adaptor has its own file; [`IterDatasetExt`] has all methods.

mod batch;
mod cache;
mod chunked;
mod combinators;
mod combine;
#[cfg(any(all(test, feature = "spec"), feature = "python"))]
mod cut;
#[cfg(feature = "python")]
mod cut_stream;
mod dataset;
mod dealt;
mod each;
mod edited;
mod fan;
mod flat_map;
mod flow;
mod interleave;
mod lanes;
#[cfg(test)]
pub(crate) mod laws;
mod limit;
mod make_batch;
mod map_with_index;
mod mix;
mod open_lane;
mod pass;
pub(super) mod rebatch;
mod repeat;
mod scan;
mod skip_bad;
mod stream;
mod stream_batch;
mod window_shuffle;
mod zip;

use super::entry::StageEntry;

pub(in crate::dataset) use self::batch::Batching;
pub use self::batch::{IterBatch, IterBatchIter};
pub use self::cache::{CacheFlow, CacheState, IterCache, IterCacheIter};
pub use self::combine::{IterCombine, IterCombined, Parents};
#[cfg(any(all(test, feature = "spec"), feature = "python"))]
pub(crate) use self::cut::Cut;
#[cfg(feature = "python")]
pub(crate) use self::cut_stream::CutStream;
pub(in crate::dataset) use self::dataset::same_stream;
pub use self::dealt::{BatchPlan, Dealt, PartPass, PartPassOf};
#[cfg(any(feature = "cli", feature = "python"))]
pub(crate) use self::dealt::{keyed_by, lanes_of};
pub(crate) use self::dealt::{keys_help, left_out, not_by_lanes, note_keys, plan_in_words, unmade, without_plan};
pub use self::each::{Counter, InOrder, IterMapped, IterMappedIter, Keep, Position};
pub(crate) use self::edited::edited_stages;
pub use self::fan::{FanFn, FanOut, FanState, FanStream, FanStreamIter};
pub use self::flat_map::{FlatMapFlow, FlatMapState, IterFlatMap, IterFlatMapIter, IterTryFlatMap};
pub use self::flow::{Flow, Flowing, Parted, PartedBy, Start};
pub use self::interleave::{
    Cycle, InterleaveState, IterInterleave, IterInterleaveIter, LaneState, interleave, interleave_from,
};
pub use self::lanes::{IterLanes, IterLanesIter, LaneMark, LanePosition, LanesState, lanes, lanes_from};
pub use self::limit::{CountFlow, IterCountIter, IterLimit, IterSkip};
pub use self::make_batch::{BatchFn, MakeBatch, Padding, Stacked, StackedPadded};
#[cfg(feature = "python")]
pub(crate) use self::map_with_index::ENUMERATE;
pub use self::map_with_index::{
    CounterState, IterEnumerate, IterMapWithIndex, IterTryMapWithIndex, Numbered, NumberedFn, TryNumberedFn,
};
pub use self::mix::{Effective, IterMix, IterMixIter, MixOrigin, MixProgress, MixState, WeightedTurns, mix};
pub use self::open_lane::{Lanes, MadeLanes, OpenLane};
pub use self::pass::{InPlace, NextStacked};
pub use self::rebatch::{IterRebatch, IterRebatchIter, RebatchFlow, RebatchState};
pub use self::repeat::{IterRepeat, IterRepeatIter, RepeatFlow, RepeatState};
pub use self::scan::{IterScan, IterScanIter, ScanFlow, ScanState};
pub use self::skip_bad::{IterSkipBad, IterSkipBadIter, SkipBadFlow, SkipBadState};
pub use self::stream::{Stream, StreamIter};
pub use self::stream_batch::{StreamBatch, StreamBatchIter};
pub use self::window_shuffle::{IterWindowShuffle, IterWindowShuffleIter, WindowFlow, WindowShuffleState};
pub use self::zip::{IterZip, IterZipAll, IterZipIter, ZipLength, ZipState, zip_all};
#[doc(hidden)]
pub use self::{combinators::IterDatasetExt, dataset::Elements, dataset::IterDataset, pass::DatasetIterator};
pub use crate::dataset::map::filter::{FilterState, IterFilter};
pub use crate::dataset::map::map::{IterMap, IterTryMap};
pub use crate::dataset::map::random_map::{IterRandomMap, IterTryRandomMap};
pub use crate::dataset::run::prefix::StreamState;
pub use crate::dataset::run::siblings::{Pair, Passes, Reads, Siblings};
pub use crate::dataset::run::skipping::BadRecords;
pub use crate::dataset::run::thresholds::{FilterThresholds, Watch};
pub use crate::element::Padded;

/// The entries of the stages of streams, in the order of the documentation.
#[cfg_attr(not(feature = "spec"), allow(dead_code, reason = "pipeline files read entries"))]
pub(crate) const STAGES: &[StageEntry] = &[
    super::map::batch::ENTRY,
    rebatch::ENTRY,
    skip_bad::ENTRY,
    limit::LIMIT,
    limit::TAKE,
    limit::SKIP,
    map_with_index::ENTRY,
    cache::ENTRY,
    repeat::ENTRY,
];
