//! Indices of lanes: how many elements each lane has, and where in it reading can begin.
//!
//! A host that knows this of all lanes knows which row of the stream comes of which lane, and the state behind any of them, and
//! reads no more than the lanes that its own rows come of. A [`LaneFile`] lies beside key files, in the same folder.
//!
//! # Layout
//! A file of lanes, `.gml`, is a line of text, blocks of marks, and a directory. Numbers are little-endian; hashes are XXH3 of 64 bits.
//!
//! | bytes | head |
//! |---|---|
//! | to the first line feed | JSON: `{"gristmill_lanes":1,"fingerprint":"…","stages":[…],"files":[…],"lanes":…,"every":64}` and the line feed |
//! | 8 | hash of that line: the *seed* of all other hashes |
//!
//! Behind it come the blocks, each of the texts of up to [`MARKS`] marks of one lane with line feeds between them. Mark `k` of a lane stands behind
//! `k * every` elements; the start of a lane has none. The files of the same lanes are the same bytes.
//!
//! | bytes | directory |
//! |---|---|
//! | 8 for each lane | its elements |
//! | 24 for each block, those of lane 0 first | 8: where it begins in the file; 8: its bytes; 8: their hash, with the seed |
//! | 8 | where the directory begins in the file |
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

/// The version of the format that this crate writes.
const FORMAT: u32 = 1;
/// The text that every file of lanes begins with.
const BEGINNING: &[u8] = b"{\"gristmill_lanes\":";
/// The last bytes of every file of lanes.
const END: &[u8; 8] = b"gmlnends";
/// Marks of a block.
const MARKS: u64 = 64;
/// The most lanes of a file, and the most elements of a lane.
const MOST_LANES: u64 = 1 << 16;
const MOST_ELEMENTS: u64 = 1 << 48;

/// Lanes of a pipeline, of which an index can be made.
pub trait MarkedLanes: Send + Sync {
    /// The head of their index.
    fn head(&self) -> &LaneHead;

    /// Opens one at its start.
    ///
    /// # Errors
    /// The lane cannot be opened.
    fn open(&self, lane: u64) -> Result<Box<dyn ReadMarks>>;
}

/// A lane that is read for its marks.
pub trait ReadMarks: Send {
    /// Reads on to the next mark, and gives its text; at the end of the lane the number of its elements.
    ///
    /// # Errors
    /// Errors of reading the lane. No index can be made of it then.
    fn next_mark(&mut self) -> Result<NextMark>;
}

/// What comes next in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextMark {
    /// A mark, behind as many elements as lie between any two.
    At(String),
    /// The end, behind so many elements.
    End(u64),
}

/// Lanes whose index a file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneHead {
    /// The hash of all that is below.
    pub fingerprint: String,
    /// Every stage up to the lanes with its parameters, in post-order.
    pub stages: Vec<String>,
    /// Names, sizes and hashes of the files of its sources.
    pub files: Vec<String>,
    /// Number of lanes.
    pub lanes: u64,
    /// Elements between two marks.
    pub every: u64,
}

#[derive(Serialize)]
struct Written<'a> {
    gristmill_lanes: u32,
    #[serde(flatten)]
    head: &'a LaneHead,
}

impl LaneHead {
    /// The head of an index of `lanes` lanes of these stages over these files, with a mark at every so many elements.
    pub fn new(stages: Vec<String>, files: Vec<String>, lanes: u64, every: u64) -> Self {
        let text = format!("{}\n\n{}\n\n{lanes} {every}", stages.join("\n"), files.join("\n"));
        let fingerprint = format!("{:016x}", xxh3_64(text.as_bytes()));
        Self { fingerprint, stages, files, lanes, every }
    }

    /// Checks that this is the head of an index of the lanes that are `wanted`.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) with the first stage or file that differs.
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

    /// The line with the hash behind it, and that hash.
    fn encode(&self) -> (Vec<u8>, u64) {
        seal(&Written { gristmill_lanes: FORMAT, head: self })
    }

    /// The head at the beginning of these bytes, its hash, and where it ends.
    fn decode(bytes: &[u8], sums: Sums) -> Result<(Self, u64, usize)> {
        #[derive(Deserialize)]
        struct Version {
            gristmill_lanes: u32,
        }
        let line = unseal(bytes, BEGINNING, "index of lanes", sums, stale)?;
        let damaged = |text: String| stale(Error::data(text).offset(0));
        let none = |e: serde_json::Error| damaged(format!("the head is none: {e}"));
        let Version { gristmill_lanes: version } = serde_json::from_slice(line.text).map_err(none)?;
        if version != FORMAT {
            let text = format!("an index of lanes of format {version}, and this gristmill reads format {FORMAT}");
            return Err(stale(Error::unsupported(text)));
        }
        let head: Self = serde_json::from_slice(line.text).map_err(none)?;
        if head.every == 0 || head.lanes > MOST_LANES {
            return Err(damaged(format!(
                "the head cannot be: {} lanes with marks at every {}",
                head.lanes, head.every
            )));
        }
        Ok((head, line.hash, line.end))
    }
}

/// Adds what is to be done with an index that is of no use.
#[cold]
pub(crate) fn stale(error: Error) -> Error {
    error.help("make the index of lanes again: `gristmill index --keys PIPELINE.yaml`, or `make_keys`; remove the file that is there")
}

/// The index of lanes that were only looked for.
#[cfg(any(feature = "cli", feature = "python"))]
pub(super) fn nothing(lanes: &dyn MarkedLanes) -> Arc<LaneFile> {
    Arc::new(LaneFile::empty(lanes.head().clone()))
}
