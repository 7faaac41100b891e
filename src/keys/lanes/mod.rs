//! Indices of lanes: the number of elements of each lane, and the places in it from which reading can start.
//!
//! With the index of all lanes, a host computes the lane of each row of the stream, and the state after the row. The host then reads
//! only the lanes of its rows. A [`LaneFile`] is stored in the folder of the key files.
//!
//! # Layout
//! A `.gml` file contains a line of text, blocks of marks, and a directory. Numbers are little-endian. Hashes are 64-bit XXH3.
//!
//! | bytes | head |
//! |---|---|
//! | to the first line feed | JSON: `{"gristmill_lanes":1,"fingerprint":"…","stages":[…],"files":[…],"lanes":…,"every":64}` and the line feed |
//! | 8 | hash of that line: the *seed* of all other hashes |
//!
//! The blocks follow the head. Each contains the texts of up to [`MARKS`] marks of a lane, separated by line feeds. Mark `k` of a lane
//! follows `k * every` elements; the start of a lane has no mark. Equal lanes give byte-identical files.
//!
//! | bytes | directory |
//! |---|---|
//! | 8 for each lane | number of its elements |
//! | 24 for each block, blocks of lane 0 first | 8: offset of the block in the file; 8: its bytes; 8: its hash, with the seed |
//! | 8 | offset of the directory in the file |
//! | 8 | hash, with the seed, of the directory up to here |
//! | 8 | `gmlnends` |

mod file;
#[cfg(test)]
mod tests;
mod writer;

#[cfg(any(feature = "cli", feature = "python"))]
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

pub use file::LaneFile;
#[cfg(any(test, fuzzing))]
pub(crate) use file::fuzz_lanes;
pub(super) use writer::write;

use super::Sums;
use super::sealed::{first_that_differs, seal, unseal};
use crate::error::{Error, Result};

/// Format version that this crate writes.
const FORMAT: u32 = 1;
/// First bytes of every file of lanes.
const BEGINNING: &[u8] = b"{\"gristmill_lanes\":";
/// Last bytes of every file of lanes.
const END: &[u8; 8] = b"gmlnends";
/// Number of marks per block.
const MARKS: u64 = 64;
/// Maximum number of lanes in a file; [`MOST_ELEMENTS`] limits the elements of a lane.
const MOST_LANES: u64 = 1 << 16;
const MOST_ELEMENTS: u64 = 1 << 48;

/// Lanes of a pipeline that can be indexed.
pub trait MarkedLanes: Send + Sync {
    /// Returns the head of the index.
    fn head(&self) -> &LaneHead;

    /// Opens a lane at its start.
    ///
    /// # Errors
    /// Errors of opening the lane.
    fn open(&self, lane: u64) -> Result<Box<dyn ReadMarks>>;
}

/// Reader of a lane that yields its marks.
pub trait ReadMarks: Send {
    /// Reads up to the next mark and returns its text. At the end of the lane, returns the number of elements.
    ///
    /// # Errors
    /// Errors of reading the lane, which make the index impossible.
    fn next_mark(&mut self) -> Result<NextMark>;
}

/// Next event in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextMark {
    /// A mark, [`every`](LaneHead::every) elements after the previous mark or the start.
    At(String),
    /// The end of the lane, with the number of its elements.
    End(u64),
}

/// Identity of the lanes in an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneHead {
    /// Hash of all other fields.
    pub fingerprint: String,
    /// Stages up to the lanes, with their parameters, in post-order.
    pub stages: Vec<String>,
    /// Names, sizes and hashes of the source files.
    pub files: Vec<String>,
    /// Number of lanes.
    pub lanes: u64,
    /// Number of elements between two marks.
    pub every: u64,
}

#[derive(Serialize)]
struct Written<'a> {
    gristmill_lanes: u32,
    #[serde(flatten)]
    head: &'a LaneHead,
}

impl LaneHead {
    /// Creates the head of an index of `lanes` lanes over `files`, with a mark after every `every` elements.
    pub fn new(stages: Vec<String>, files: Vec<String>, lanes: u64, every: u64) -> Self {
        let text = format!("{}\n\n{}\n\n{lanes} {every}", stages.join("\n"), files.join("\n"));
        let fingerprint = format!("{:016x}", xxh3_64(text.as_bytes()));
        Self { fingerprint, stages, files, lanes, every }
    }

    /// Checks that the indexed lanes are the `wanted` lanes.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) with the first stage or file that differs, or with the number of lanes and the mark interval.
    pub fn check(&self, wanted: &Self) -> Result<()> {
        if self == wanted {
            return Ok(());
        }
        let differs = |what: &str, theirs, ours| {
            let (at, theirs, ours) = first_that_differs(theirs, ours)?;
            Some(format!("{what} {at} was {theirs} and is {ours}"))
        };
        let what = differs("stage", &self.stages, &wanted.stages)
            .or_else(|| differs("file", &self.files, &wanted.files))
            .unwrap_or_else(|| {
                format!("{} lanes marked at every {} were {} at {}", wanted.lanes, wanted.every, self.lanes, self.every)
            });
        Err(stale(Error::state(format!("the index is of other lanes: {what}"))))
    }

    /// Returns the head as a line followed by its hash, and the hash.
    fn encode(&self) -> (Vec<u8>, u64) {
        seal(&Written { gristmill_lanes: FORMAT, head: self })
    }

    /// Reads the head at the start of `bytes`. Returns the head, its hash, and the offset of its end.
    fn decode(bytes: &[u8], sums: Sums) -> Result<(Self, u64, usize)> {
        #[derive(Deserialize)]
        struct Version {
            gristmill_lanes: u32,
        }
        let line = unseal(bytes, BEGINNING, "index of lanes", sums, stale)?;
        let damaged = |text: String| stale(Error::data(text).offset(0));
        let none = |e: serde_json::Error| damaged(format!("the head is invalid: {e}"));
        let Version { gristmill_lanes: version } = serde_json::from_slice(line.text).map_err(none)?;
        if version != FORMAT {
            let text = format!("an index of lanes of format {version}, but this gristmill reads format {FORMAT}");
            return Err(stale(Error::unsupported(text)));
        }
        let head: Self = serde_json::from_slice(line.text).map_err(none)?;
        if head.every == 0 || head.lanes > MOST_LANES {
            return Err(damaged(format!(
                "the head is invalid: {} lanes with marks at every {}",
                head.lanes, head.every
            )));
        }
        Ok((head, line.hash, line.end))
    }
}

/// Adds the remedy for an unusable index.
#[cold]
pub(crate) fn stale(error: Error) -> Error {
    error.help("make the index of lanes again: `gristmill index --keys PIPELINE.yaml`, or `make_keys`; remove the file that is there")
}

/// Returns an empty index, for lanes that are only being collected.
#[cfg(any(feature = "cli", feature = "python"))]
pub(super) fn nothing(lanes: &dyn MarkedLanes) -> Arc<LaneFile> {
    Arc::new(LaneFile::empty(lanes.head().clone()))
}
