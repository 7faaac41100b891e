//! What a plan asks of elements, without the elements: how many a record yields, and how long each is.
//!
//! Stages that filter, pack, mix and shuffle decide by *keys*. A [`KeyFile`] holds those of one elementwise prefix: for each slot (an
//! index of the prefix) how many elements its record yields, or that it is bad, and for each element the lengths of some named arrays, its
//! columns. So a host of a training job plans the whole stream and evaluates its own elements alone. [`KeyWriter`] writes
//! such a file, [`KeyBlock`] holds keys in memory, [`KeyHead`] says whose they are.
//!
//! # Layout
//! A key file, `.gmk`, is a line of text, blocks of [`BLOCK`] slots one behind the other, and an index of them. Numbers are little-endian and lie at
//! any byte; hashes are XXH3 of 64 bits. Every byte of the file is under a hash, but for the last eight, which are known.
//!
//! | bytes | head |
//! |---|---|
//! | to the first line feed | JSON: `{"gristmill_keys":1,"fingerprint":"…","stages":[…],"sources":[…],"columns":[…],"len":…}` and the line feed |
//! | 8 | hash of that line: the *seed* of all other hashes |
//!
//! | bytes | block |
//! |---|---|
//! | 8 | hash, with the seed, of the rest of the block |
//! | 8 | number of the block |
//! | 8 | elements of the blocks in front of it |
//! | 4 | bytes of the block, from its hash to its last byte |
//! | 4 | slots: 65 536, in the last block what is left |
//! | 4 | elements |
//! | 8 for each group of 128 slots | 4: where the group begins, from the begin of the block; 4: elements of the block in front of the group |
//! | … | groups |
//! | 8 | zeros |
//!
//! | bytes | group of 128 slots, in the last group what is left |
//! |---|---|
//! | 5 | frame of the codes: 1: bits of each; 4: the least of them |
//! | 5 for each column | frame of its lengths |
//! | … | codes, packed |
//! | … for each column | lengths of the elements in this column, packed |
//!
//! A slot's code says what its record yields: 0 nothing, 1 one element, 2 that it is bad, and `n + 1` as many as `n` elements, from two on.
//! *Packed* numbers are written as their difference from the least of the frame, in so many bits as the frame says, the low bits first
//! and without gaps, and fill the last byte with zeros. So numbers that are all equal take nothing but their frame, and a large one
//! widens those of its group alone.
//!
//! Keys of a stage behind one that makes several elements of a record have a column more, in front of the others, named `\0of`, as no array is. It has for each
//! element the number of the one that it was made of, among those that the record yields in front of that stage. With 2^31 added it says that
//! the stage has failed there: the other lengths are 0 then. The elements that the record yields behind the stage are numbered as they stand, those that have failed among them.
//!
//! | bytes | index, behind the last block |
//! |---|---|
//! | 24 for each block | 8: where it begins in the file; 8: elements in front of it; 8: its hash |
//! | 8 | where the index begins in the file |
//! | 8 | elements of all blocks |
//! | 8 | hash, with the seed, of the index up to here: the [id](KeyFile::id) of the file |
//! | 8 | `gmkeyend` |
//!
//! A part file has head and blocks, and no index: whoever goes on with it follows the blocks by their lengths up to the first whose hash is another.

mod bits;
mod block;
mod encoded;
mod file;
mod find;
mod folder;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
mod fuzzing;
mod head;
mod index;
mod lanes;
mod recent;
mod recompute;
mod recorder;
mod sealed;
#[cfg(any(feature = "cli", feature = "python"))]
mod wanted;
mod writer;

pub use block::{Key, KeyBlock};
pub use file::KeyFile;
pub use find::{KeySource, Keyed, Keys};
pub use folder::{KeyFolder, RecordedKeys};
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(crate) use fuzzing::keys as fuzz_keys;
pub use head::{FORMAT, KeyHead};
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(crate) use lanes::fuzz_lanes;
pub(crate) use lanes::stale as stale_lanes;
pub use lanes::{LaneFile, LaneHead, MarkedLanes, NextMark, ReadMarks};
pub use recompute::Recompute;
pub use recorder::KeyRecorder;
#[cfg(any(feature = "cli", feature = "python"))]
pub(crate) use wanted::Wanted;
pub use writer::KeyWriter;

/// Slots of a block; the last block of a file has what is left.
pub const BLOCK: usize = 1 << 16;

/// The column that says of each element of which other one of its record it was made.
pub(crate) const OF: &str = "\0of";

/// The number from which on it says that what was made of it has failed.
pub(crate) const FAILED: u32 = 1 << 31;

/// Whether hashes must be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sums {
    Checked,
    /// What a fuzzer changes would not get behind them.
    #[cfg(any(test, fuzzing))]
    Ignored,
}

impl Sums {
    /// Whether a hash is wrong that must be right.
    fn differ(self, written: u64, computed: u64) -> bool {
        self == Self::Checked && written != computed
    }
}

/// Slots of block `number` of a file of `len` slots.
fn slots_of(number: u64, len: u64) -> usize {
    len.saturating_sub(number.saturating_mul(BLOCK as u64)).min(BLOCK as u64) as usize
}

#[cfg(test)]
mod tests;
