//! Datasets: random access and streams, and the [`Stage`] trait of both.
//!
//! A [`MapDataset`] is random access: pure, indexed, readable in any order. An [`IterDataset`] is a stream: ordered,
//! stateful, checkpointable. [`to_iter`](crate::MapDatasetExt::to_iter) converts the first to the second.

mod at_end;
mod blocks;
mod boxed;
#[cfg_attr(not(feature = "spec"), allow(dead_code, reason = "pipeline files use functions of columns"))]
pub(crate) mod columns;
#[cfg_attr(not(feature = "spec"), allow(dead_code, unused_imports, reason = "pipeline files read entries"))]
pub(crate) mod entry;
mod estimate;
mod excluded;
mod facts;
pub mod iter;
mod lineage;
pub mod map;
mod memory;
#[cfg_attr(not(feature = "spec"), allow(dead_code, reason = "pipeline files mix sources"))]
pub(crate) mod mixing;
mod node;
pub mod plan;
mod records;
pub(crate) mod remainder;
mod routes;
pub(crate) mod run;
mod sample;
mod seeds;
mod sources;
mod stage;
mod walk;
mod weights;

pub use at_end::AtEnd;
pub use blocks::Blocks;
pub use boxed::{AnyState, BoxIter, BoxIterator, BoxMap};
pub use estimate::{StageMemory, estimate};
pub use facts::Facts;
#[doc(hidden)]
pub use iter::{DatasetIterator, IterDataset, IterDatasetExt};
pub use lineage::{Lineage, Segment};
pub(crate) use lineage::{RecordSet, Tracer};
#[doc(hidden)]
pub use map::{MapDataset, MapDatasetExt};
pub use memory::{Held, Memory, Sample};
#[doc(hidden)]
pub use node::{Comes, Period};
pub use node::{Describe, Indices, Moves, Node, Reads, Records, Sampled, Work};
pub(crate) use plan::{PlannedBatch, PlannedPass, RunContents};
pub(crate) use records::suspect_in;
pub use records::{index_of, record_in, record_of};
pub use remainder::Remainder;
pub(crate) use run::upcoming::bring;
pub use run::upcoming::{Record, Upcoming};
pub use seeds::{StageSeed, default_seed};
pub(crate) use sources::SourceOfRun;
pub(crate) use stage::same_stage;
pub use stage::{Role, Stage, chain, label, stage_after};

/// The length of an infinite dataset: Grain's `sys.maxsize`.
pub const INFINITE: u64 = i64::MAX as u64;
