//! Recordings of runs: files that are written while a run goes on, and read back when it is over, however it ended.
//!
//! A file is lines of JSON: a [`Head`], and a [`Look`] for every look that was taken at the run, with the records that came since the one before
//! and the report as of then. Where there is Zstandard, each is a frame of its own with a checksum (`zstdcat` shows the lines), so a run that was
//! killed has lost what came after its last look, and nothing else.

mod frames;
mod read;
mod write;

use serde::{Deserialize, Serialize};

pub(crate) use self::write::RecordWriter;
use super::{Picture, Report};
use crate::cx::News;

/// Number of the format: files of another are refused.
const FORMAT: u32 = 1;

/// First line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// The number of the format.
    gristmill_record: u32,
    version: String,
    pid: u32,
    /// Seconds between the year 1970 and the start of the recording.
    began: u64,
}

/// Any other line.
#[derive(Debug, Deserialize)]
struct Look {
    #[serde(flatten)]
    news: News,
    report: Report,
    picture: Picture,
    /// Whether it is the last: the run has not been killed.
    end: bool,
}

/// The same, as it is written.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    news: &'a News,
    report: &'a Report,
    picture: &'a Picture,
    end: bool,
}
