//! Keys: the number of elements that each record yields, and their lengths, without the elements.
//!
//! Stages that filter, pack, mix and shuffle decide by *keys*. A [`KeyFile`] holds the keys of an elementwise prefix of a pipeline.
//! Each slot (an index of the prefix) has a key: the number of elements that its record yields, or a mark for a bad record.
//! Each element has the lengths of some named arrays, the columns. With these keys, a host of a training job plans the whole stream
//! and evaluates only its own elements. [`KeyWriter`] writes a key file, [`KeyBlock`] holds keys in memory, and [`KeyHead`] identifies
//! the prefix.
//!
//! # Layout
//! A key file, `.gmk`, consists of a line of text, consecutive blocks of [`BLOCK`] slots, and an index of the blocks. Numbers are
//! little-endian and unaligned; hashes are 64-bit XXH3. A hash covers every byte of the file except the last eight, which are constant.
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
//! | 8 | elements in earlier blocks |
//! | 4 | bytes of the block, from its hash to its last byte |
//! | 4 | slots: 65 536, or fewer in the last block |
//! | 4 | elements |
//! | 8 for each group of 128 slots | 4: offset of the group in the block; 4: elements in earlier groups of the block |
//! | … | groups |
//! | 8 | zeros |
//!
//! | bytes | group of 128 slots, or fewer in the last group |
//! |---|---|
//! | 5 | frame of the codes: 1: bits per code; 4: the smallest code |
//! | 5 for each column | frame of its lengths |
//! | … | codes, packed |
//! | … for each column | lengths of the elements in this column, packed |
//!
//! A slot's code encodes the result of its record: 0 is no element, 1 is an element, 2 is a bad record. Code `n + 1` is `n` elements,
//! if `n` is two or more. *Packed* numbers are written as their difference from the smallest number of the frame. Each takes the number of
//! bits that the frame gives, low bits first and without gaps; zeros fill the last byte. A run of equal numbers therefore takes only its
//! frame, and a large number widens only its own group.
//!
//! A stage after a stage that makes several elements from a record has one more column in its keys. The column comes first and is named
//! `\0of`, a name that no array has. It holds, for each element, the number of its input element. Input elements are numbered within the
//! record, before the stage. An entry with 2^31 added marks an element on which the stage failed; its other lengths are 0. The output
//! elements of a record are numbered in order, including failed elements.
//!
//! | bytes | index, after the last block |
//! |---|---|
//! | 24 for each block | 8: offset of the block in the file; 8: elements in earlier blocks; 8: hash of the block |
//! | 8 | offset of the index in the file |
//! | 8 | elements of all blocks |
//! | 8 | hash, with the seed, of the index up to here: the [id](KeyFile::id) of the file |
//! | 8 | `gmkeyend` |
//!
//! A part file has a head and blocks, and no index. A resumed writer follows the blocks by their lengths up to the first wrong hash.

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
#[doc(hidden)]
pub use lanes::{LaneFile, LaneHead, MarkedLanes, NextMark, ReadMarks};
pub use recompute::Recompute;
pub use recorder::KeyRecorder;
#[cfg(any(feature = "cli", feature = "python"))]
pub(crate) use wanted::Wanted;
pub use writer::KeyWriter;

/// Slots per block; the last block of a file may have fewer.
pub const BLOCK: usize = 1 << 16;

/// Name of the column that holds, for each element, the number of its input element within the record.
pub(crate) const OF: &str = "\0of";

/// Flag in column [`OF`] for an element on which the stage failed.
pub(crate) const FAILED: u32 = 1 << 31;

/// Policy for wrong hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sums {
    Checked,
    /// Skips the check, so that a fuzzer reaches the code after it.
    #[cfg(any(test, fuzzing))]
    Ignored,
}

impl Sums {
    /// Returns true if hashes are checked and the two hashes differ.
    fn differ(self, written: u64, computed: u64) -> bool {
        self == Self::Checked && written != computed
    }
}

/// Returns the number of slots of block `number` in a file of `len` slots.
fn slots_of(number: u64, len: u64) -> usize {
    len.saturating_sub(number.saturating_mul(BLOCK as u64)).min(BLOCK as u64) as usize
}

#[cfg(test)]
mod tests;
