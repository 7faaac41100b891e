//! Recordings of runs: files written during a run and read after it, even if the run was killed.
//!
//! A file consists of lines of JSON: a [`Head`], then a [`Look`] for each look at the run. A look holds the records since the look
//! before, and the report at that time. With Zstandard, each line is a separate frame with a checksum (`zstdcat` shows the lines).
//! A killed run loses only the records after its last look.

mod frames;
mod read;
mod write;

use serde::{Deserialize, Serialize};

pub(crate) use self::write::RecordWriter;
use super::{Picture, Report};
use crate::cx::Update;

/// Number of the format; files of other formats are rejected.
const FORMAT: u32 = 1;

/// First line of a recording.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// Number of the format.
    gristmill_record: u32,
    version: String,
    pid: u32,
    /// Start of the recording, in seconds since 1970.
    began: u64,
}

/// A line after the first.
#[derive(Debug, Deserialize)]
struct Look {
    #[serde(flatten)]
    update: Update,
    report: Report,
    picture: Picture,
    /// Whether this look is the last: the run was not killed.
    end: bool,
}

/// A [`Look`] as it is written.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    update: &'a Update,
    report: &'a Report,
    picture: &'a Picture,
    end: bool,
}
