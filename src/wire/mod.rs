//! Elements in an extent, as a worker writes them and the parent views them.
//!
//! A chunk is written front to back, each byte once, and may end anywhere, so `used` fully determines its length. After
//! a header of 64 bytes, two kinds of data alternate:
//!
//! - **table blocks**, of 512 bytes at first, then up to 8 KiB. They form a stream of 64-bit words, and the last word of a
//!   block is the offset of the next block. The table describes each slot: dropped, an error, or an item. An element
//!   is described by the number of its structure, its dimensions, and offsets. A structure (names, kinds, dtypes,
//!   ranks) is written at its first use, so equal elements store their names only once.
//! - **payload**: the bytes of arrays and text. Arrays start at multiples of 64, because JAX and Arrow alias nothing less.
//!   Text may start at any offset. Values of up to 8 bytes are stored in the table.
//!
//! Consecutive elements of a kind are stored as [rows], with a single record for the run.
//!
//! All numbers are little-endian. Equal pipelines of the same build write and read a chunk, never a file, so the format needs
//! no compatibility. Every word is checked, because a faulty worker can write anything. Reading takes time and memory in
//! proportion to the bytes for any input: every value takes up at least one word.

mod cross;
mod crosses;
mod crossing;
mod element;
pub(crate) mod foreign;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod input;
mod lane;
mod output;
#[cfg(any(feature = "python", test, fuzzing))]
pub(crate) mod parcel;
#[cfg(any(test, fuzzing))]
mod parcel_fuzz;
mod read;
mod region;
mod rows;
#[cfg(any(test, fuzzing))]
mod samples;
mod stacked;
mod structure;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "python", test, fuzzing))]
pub(crate) mod tree;
mod write;

#[cfg(any(feature = "python", test, fuzzing))]
pub(crate) use cross::Cross;
pub use crosses::crosses;
pub(crate) use crossing::{Crossing, crossing, needed};
#[cfg(feature = "python")]
pub(crate) use crossing::{Entry, also};
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(crate) use fuzz::wire as fuzz_wire;
#[cfg(feature = "python")]
pub(crate) use input::In;
pub(crate) use lane::{LaneEnd, LaneSlots, read_lane};
#[cfg(feature = "python")]
pub(crate) use output::{Out, Stop};
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(crate) use parcel_fuzz::parcel as fuzz_parcel;
#[cfg(any(test, fuzzing))]
pub(crate) use read::read;
pub(crate) use read::read_parts;
pub(crate) use write::{ChunkWriter, Full};

/// The first word, which identifies the format.
const MAGIC: u64 = u64::from_le_bytes(*b"gmchunk\0");
/// The second word: the version of the layout.
const VERSION: u64 = 2;
/// Bytes of the header: magic, version, bytes used, slots, words in the table. The rest is unused.
const HEADER: usize = 64;
/// The alignment of arrays in bytes.
const ALIGN: usize = 64;
/// Maximum number of bytes that are stored in the table instead of an offset.
const INLINE: usize = 8;
/// Maximum nesting of lists and trees.
const MAX_DEPTH: usize = 128;

/// Kinds of slots, in the lower half of the first word. For items, the upper half is the [`Cross::KIND`]. A whole covers
/// the slots of several indices, and its second word is their number.
const DROPPED: u32 = 0;
const ERROR: u32 = 1;
const ITEM: u32 = 2;
const WHOLE: u32 = 3;
const WHOLE_ERROR: u32 = 4;
/// Kinds of lane slots: an item or error with the lane state after it, the end of the lane, and its failure.
const MARKED_ITEM: u32 = 5;
const MARKED_ERROR: u32 = 6;
const ENDED: u32 = 7;
const FAILED: u32 = 8;
/// A run of [rows]: several items of the same kind.
const ROWS: u32 = 9;

/// Returns the bytes of table block `index`.
fn block_bytes(index: u32) -> usize {
    512 << index.min(4)
}
