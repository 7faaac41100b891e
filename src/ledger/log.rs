//! The lines of a run log.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use crate::checkpoint::{Checkpoint, FORMAT as CHECKPOINT};
use crate::edits::{EditedMix, Edits};
use crate::error::{Error, Result};

/// Number of the format.
const FORMAT: u32 = 1;
/// Text before and after the checksum, at the start of each line.
const HEAD: &str = "{\"xxh3\":\"";
const MIDDLE: &str = "\",\"line\":";
/// Digits of a checksum.
const DIGITS: usize = 16;

/// The reason for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event {
    /// The run began at its first batch.
    Start,
    /// The run continued at a state, or moved to a state.
    Resume,
    /// 1,000 batches were delivered.
    Batches,
    /// The stream ended.
    End,
}

/// A line of a run log: a position of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Number of the format.
    pub gristmill_ledger: u32,
    /// The reason for the line.
    pub event: Event,
    /// Number of batches before the position.
    pub at_batch: u64,
    /// Time of the line, in seconds since 1970.
    pub wall: u64,
    /// Hash of the pipeline.
    pub fingerprint: String,
    /// Positions of all stages, as in a checkpoint.
    pub state: Json,
    /// Progress of the mix that edits change, as in a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_mix: Option<EditedMix>,
    /// Digest of the plans of all batches since the previous line, if rows were planned from keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The run, on lines of a start or resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

/// A run, from a start or resume on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// Version of the crate.
    pub version: String,
    /// Stages with their arguments and seeds, as in a checkpoint.
    pub pipeline: Vec<String>,
    /// The pipeline file: its text and its folder, if the run has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Json>,
    /// The part of each batch that the writer of the log delivers.
    pub part: String,
    /// Deal of rows among parts.
    pub deal: String,
    /// Stage ids of the sources, with name, size and hash of each file. Empty if an earlier line has an equal list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<(usize, Vec<String>)>,
    /// Hash of `sources`.
    pub sources_hash: String,
    /// Edits of the run: see [`LoaderBuilder::edits`](crate::LoaderBuilder::edits).
    #[serde(default, skip_serializing_if = "Edits::is_empty")]
    pub edits: Edits,
}

/// A line with the run that it belongs to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Line {
    /// The position.
    pub entry: Entry,
    /// The run, with its sources.
    pub run: Arc<Run>,
}

/// A run log: the positions of a run, across its resumes.
#[derive(Clone, Debug, Default)]
pub struct RunLog {
    lines: Vec<Line>,
    /// The number of valid bytes.
    pub(super) valid: u64,
}

impl RunLog {
    /// Reads a run log. A last line that was not written completely is ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read, [`ErrorKind::Data`](crate::ErrorKind::Data) if another line is
    /// damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::io(e, path))?;
        let log = Self::parse(&bytes).map_err(|e| e.path(path))?;
        if log.lines.is_empty() {
            return Err(Error::data("the run log has no complete line").path(path));
        }
        Ok(log)
    }

    /// Parses the lines of a log.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let (mut log, mut at) = (Self::default(), 0);
        for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            at += line.len();
            match entry_of(line) {
                Some(entry) if entry.gristmill_ledger == FORMAT => log.add(entry),
                Some(entry) => {
                    let text =
                        format!("format {} of run logs, but this gristmill reads {FORMAT}", entry.gristmill_ledger);
                    return Err(Error::data(text));
                }
                None if at == bytes.len() => break,
                None => return Err(Error::data(format!("line {number} of the run log is damaged"))),
            }
            log.valid = at as u64;
        }
        Ok(log)
    }

    /// Adds a line. A start or resume replaces later positions of earlier lines.
    fn add(&mut self, entry: Entry) {
        let run = match (&entry.run, self.lines.last()) {
            (Some(run), last) => {
                let earlier = last.filter(|last| run.sources.is_empty() && last.run.sources_hash == run.sources_hash);
                let sources = earlier.map_or_else(|| run.sources.clone(), |last| last.run.sources.clone());
                Arc::new(Run { sources, ..run.clone() })
            }
            (None, Some(last)) => last.run.clone(),
            (None, None) => Arc::default(),
        };
        if entry.run.is_some() {
            self.lines.retain(|line| line.entry.at_batch <= entry.at_batch);
        }
        self.lines.push(Line { entry, run });
    }

    /// Returns the positions, in order of batches.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the last position before batch number `batch`, from 0.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the log begins later.
    pub fn before(&self, batch: u64) -> Result<&Line> {
        let line = self.lines.iter().rev().find(|line| line.entry.at_batch <= batch);
        line.ok_or_else(|| {
            let first = self.lines.first().map_or(0, |line| line.entry.at_batch);
            Error::config(format!("the run log begins at batch {first}, after batch {batch}"))
        })
    }

    /// Returns the number of batches up to the last position.
    pub fn batches(&self) -> u64 {
        self.lines.last().map_or(0, |line| line.entry.at_batch)
    }

    /// Returns the last run.
    pub fn run(&self) -> Option<&Run> {
        self.lines.last().map(|line| &*line.run)
    }

    /// Returns the edits of the last run, which begin with the edits of all earlier runs that have had an effect.
    pub fn edits(&self) -> Edits {
        self.run().map(|run| run.edits.clone()).unwrap_or_default()
    }
}

impl Line {
    /// Returns the position as a checkpoint.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            gristmill_checkpoint: CHECKPOINT,
            crate_version: self.run.version.clone(),
            fingerprint: self.entry.fingerprint.clone(),
            pipeline: self.run.pipeline.clone(),
            delivered: self.entry.at_batch,
            state: self.entry.state.clone(),
            accepted_changes: Vec::new(),
            edits: self.run.edits.effective(self.entry.at_batch),
            edited_mix: self.entry.edited_mix.clone(),
        }
    }
}

impl Entry {
    /// Creates a line without a plan and a run.
    pub(super) fn new(event: Event, at_batch: u64, wall: u64, fingerprint: &str, state: Json) -> Self {
        let fingerprint = fingerprint.to_owned();
        let (edited_mix, plan, run) = (None, None, None);
        Self { gristmill_ledger: FORMAT, event, at_batch, wall, fingerprint, state, edited_mix, plan, run }
    }

    /// Returns the line as text, with its checksum and line end.
    pub(super) fn text(&self) -> Result<String> {
        let line = serde_json::to_string(self).map_err(|e| Error::state(format!("a line of the run log: {e}")))?;
        Ok(format!("{HEAD}{:016x}{MIDDLE}{line}}}\n", xxh3_64(line.as_bytes())))
    }
}

/// Parses a line, if it is complete and its checksum is right.
fn entry_of(line: &[u8]) -> Option<Entry> {
    let rest = line.strip_prefix(HEAD.as_bytes())?.strip_suffix(b"}\n")?;
    let (hash, rest) = rest.split_at_checked(DIGITS)?;
    let json = rest.strip_prefix(MIDDLE.as_bytes())?;
    let hash = u64::from_str_radix(std::str::from_utf8(hash).ok()?, 16).ok()?;
    serde_json::from_slice(json).ok().filter(|_| xxh3_64(json) == hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(entries: &[Entry]) -> Vec<u8> {
        entries.iter().map(|entry| entry.text().unwrap()).collect::<String>().into_bytes()
    }

    fn entry(event: Event, at: u64) -> Entry {
        let run = matches!(event, Event::Start | Event::Resume)
            .then(|| Run { sources: vec![(0, vec![format!("a {at}")])], ..Run::default() });
        Entry { run, plan: Some("00ff".into()), ..Entry::new(event, at, 7, "abc", serde_json::json!({"next": at})) }
    }

    #[test]
    fn a_log_cut_at_any_byte_has_its_complete_lines() {
        let entries = [entry(Event::Start, 0), entry(Event::Batches, 1000), entry(Event::End, 1234)];
        let bytes = log(&entries);
        let ends: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] == b'\n').map(|at| at + 1).collect();
        for cut in 0..=bytes.len() {
            let read = RunLog::parse(&bytes[..cut]).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let found: Vec<_> = read.lines().iter().map(|line| line.entry.clone()).collect();
            assert_eq!(found, entries[..whole], "cut at {cut}");
            assert_eq!(read.valid as usize, whole.checked_sub(1).map_or(0, |last| ends[last]));
        }
    }

    #[test]
    fn a_changed_byte_before_the_last_line_is_an_error() {
        let bytes = log(&[entry(Event::Start, 0), entry(Event::Batches, 1000)]);
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            match RunLog::parse(&changed) {
                Err(error) => assert!(at < end && error.message().contains("is damaged"), "{at}: {error}"),
                // Without its line end, the first line is a part of the last line.
                Ok(log) => assert!(at >= end && log.lines().len() == usize::from(at > end), "{at}"),
            }
        }
    }

    #[test]
    fn a_resume_replaces_later_positions() {
        let mut again = entry(Event::Resume, 1500);
        again.run.as_mut().unwrap().sources.clear();
        let entries = [
            entry(Event::Start, 0),
            entry(Event::Batches, 1000),
            entry(Event::Batches, 2000),
            again,
            entry(Event::Batches, 3000),
        ];
        let log = RunLog::parse(&log(&entries)).unwrap();
        let found: Vec<u64> = log.lines().iter().map(|line| line.entry.at_batch).collect();
        assert_eq!((found, log.batches()), (vec![0, 1000, 1500, 3000], 3000));
        assert_eq!(log.before(1499).unwrap().entry.at_batch, 1000);
        assert_eq!(log.before(9999).unwrap().run.sources, [(0, vec!["a 0".to_owned()])]);
    }
}
