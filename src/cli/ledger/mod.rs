//! Commands that read a run log: `which`, `when`, `audit` and `replay`.

pub(super) mod audit;
pub(super) mod replay;
pub(super) mod when;
pub(super) mod which;

use std::path::PathBuf;
use std::sync::Arc;

use crate::dataset::Segment;
use crate::keys::{KeyFolder, KeySource};
use crate::ledger::RunLog;
use crate::spec::Pipeline;
use crate::{BoxIter, Element, Error, Result, place};

/// A run log, and the pipeline of its run.
#[derive(clap::Args)]
pub(super) struct Logged {
    /// Run log, which `run --ledger` writes
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Pipeline file of the run [default: its text in the run log]
    #[arg(long, value_name = "FILE")]
    pipeline: Option<PathBuf>,
    /// Folder of key files [default: that of the pipeline file, if it exists]
    ///
    /// Records without keys are evaluated, if rows depend on lengths or on dropped elements.
    #[arg(long, value_name = "PATH")]
    keys: Option<PathBuf>,
}

/// An open run log, with the pipeline of its run.
pub(super) struct Opened {
    pub(super) log: RunLog,
    pub(super) dataset: BoxIter<Element>,
    pub(super) keys: Option<Arc<dyn KeySource>>,
}

impl Logged {
    pub(super) fn open(&self) -> Result<Opened> {
        let log = RunLog::open(&self.log)?;
        let pipeline = match &self.pipeline {
            Some(file) => Pipeline::from_file(file)?,
            None => self.of_log(&log)?,
        };
        let beside = pipeline.keys().map(|(folder, _)| folder).filter(|folder| folder.is_dir());
        let keys = self.keys.clone().map(|folder| KeyFolder::new(folder).needed()).or(beside.map(KeyFolder::new));
        Ok(Opened { dataset: pipeline.build()?, keys: keys.map(|keys| Arc::new(keys) as _), log })
    }

    /// Reads the pipeline file from its text in the log.
    fn of_log(&self, log: &RunLog) -> Result<Pipeline> {
        let Some(file) = log.run().and_then(|run| run.file.clone()) else {
            let text = "the run log is of a program, whose pipeline the command cannot build";
            return Err(Error::config(text).path(&self.log).help(
                "call `which` or `audit` of the dataset in the program, or give the pipeline file by `--pipeline`",
            ));
        };
        let read = serde_json::from_value(file);
        read.map_err(|e| Error::data(format!("the pipeline file in the run log: {e}")).path(&self.log))
    }
}

/// Columns of a table of segments.
pub(super) const COLUMNS: [&str; 7] = ["row", "file", "record", "bytes", "epoch", "tokens", "cells"];
/// Columns with texts.
pub(super) const LEFT: [usize; 1] = [1];

/// Returns the cells of a segment in a table with [`COLUMNS`].
pub(super) fn cells(row: u64, segment: &Segment) -> Vec<String> {
    let range = |range: &Option<std::ops::Range<u64>>| {
        range.as_ref().map_or_else(|| "-".to_owned(), |range| format!("{}..{}", range.start, range.end))
    };
    let file = segment.file.as_deref().map(|file| place::shown(file).display().to_string());
    vec![
        row.to_string(),
        file.unwrap_or_else(|| segment.source.to_owned()),
        segment.record.to_string(),
        range(&segment.bytes),
        segment.epoch.to_string(),
        range(&segment.tokens),
        range(&segment.cells),
    ]
}

/// Parses a range of batches, `FIRST:END`.
pub(super) fn steps(text: &str) -> std::result::Result<(u64, u64), String> {
    let parsed = text.split_once(':').and_then(|(first, end)| Some((first.parse().ok()?, end.parse().ok()?)));
    parsed
        .filter(|(first, end)| first < end)
        .ok_or_else(|| "a range of batches is needed, such as 70000:70200".to_owned())
}
