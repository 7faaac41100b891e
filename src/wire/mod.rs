//! Elements in an extent: how they are written by a worker and viewed by the parent.
//!
//! A chunk is written front to back, each byte once, and may end anywhere, so `used` is all there is to know of its
//! length. Two things alternate in it behind a header of 64 bytes:
//!
//! - **table blocks**, of 512 bytes at first, then up to 8 KiB: one stream of 64-bit words that a block's last word
//!   continues at the next. Slot by slot it says what there is: dropped, an error, or an item, and of an element the
//!   number of its structure, dimensions, and offsets. A structure (names, kinds, dtypes, ranks) stands where its number
//!   comes up first, so that equal elements cost their names once.
//! - **payload**: the bytes of arrays, each at a multiple of 64, because JAX and Arrow alias nothing less, and of text,
//!   anywhere. Up to 8 bytes stand in the table itself.
//!
//! Elements of one kind that follow each other are [rows]: then one record stands for all of them.
//!
//! All numbers are little-endian. Two equal pipelines of one build write and read it, never a file: there is no
//! compatibility to keep, but every word is checked, because a worker can go mad in any way. Whatever the words say,
//! reading takes time and memory in proportion to the bytes: every value takes up a word at least.

mod cross;
mod crosses;
mod crossing;
mod element;
#[cfg_attr(not(feature = "python"), allow(dead_code, reason = "no other language has arrays of its own"))]
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

/// The first word: what the bytes are.
const MAGIC: u64 = u64::from_le_bytes(*b"gmchunk\0");
/// The second: the layout below.
const VERSION: u64 = 2;
/// Magic, version, bytes used, slots, words in the table; the rest is not used.
const HEADER: usize = 64;
/// The alignment of arrays in bytes.
const ALIGN: usize = 64;
/// Bytes that stand in the table instead of an offset.
const INLINE: usize = 8;
/// Lists and trees in each other.
const MAX_DEPTH: usize = 128;

/// The kind of a slot, in the lower half of its first word; in the upper half of an item's is its [`Cross::KIND`]. A whole stands
/// for the slots of several indices, whose number is the second word.
const DROPPED: u32 = 0;
const ERROR: u32 = 1;
const ITEM: u32 = 2;
const WHOLE: u32 = 3;
const WHOLE_ERROR: u32 = 4;
/// Of a lane: an item or an error with the lane's state behind it; that there are no more; that it cannot be read on.
const MARKED_ITEM: u32 = 5;
const MARKED_ERROR: u32 = 6;
const ENDED: u32 = 7;
const FAILED: u32 = 8;
/// Several items of one kind: a run of [rows].
const ROWS: u32 = 9;

/// Bytes of table block `index`.
fn block_bytes(index: u32) -> usize {
    512 << index.min(4)
}
