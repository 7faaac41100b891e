//! `gristmill when`: the batches of a run in which records were.

use std::collections::HashSet;
use std::path::PathBuf;

use super::{COLUMNS, LEFT, Logged, Opened, cells};
use crate::cli::format::{grouped, plural};
use crate::cli::{Outcome, examples, output};
use crate::dataset::Tracer;
use crate::edits::records_in;
use crate::ledger::{Search, search};
use crate::{Error, Result};

/// Shows every batch of a logged run that has a record
///
/// Prints step, row and cells of each place of the record, in all epochs. Plans the batches that can have the record: about 1,000 for each
/// read of it, or the whole run if a stage moves elements to unknown places. No record is read if key files exist.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill when run.ledger --file c4/part-0041.jsonl --record 1183"
    "gristmill which run.ledger --step 70211 > spike.txt"
    "gristmill when run.ledger --ids spike.txt"
))]
pub(crate) struct Args {
    #[command(flatten)]
    logged: Logged,
    /// File of the record, as `which` prints it, or the end of its path; the name of a source without files
    #[arg(long, value_name = "FILE", requires = "record")]
    file: Option<PathBuf>,
    /// Number of the record in the file, from 0
    #[arg(long, value_name = "N", requires = "file")]
    record: Option<u64>,
    /// File with records: the output of `which`, or in each line a file, a space or tab, and a number
    #[arg(long, value_name = "FILE", required_unless_present = "file")]
    ids: Option<PathBuf>,
    /// Batches to search, `FIRST:END` [default: all batches of the run log]
    #[arg(long, value_name = "A:B", value_parser = super::steps)]
    steps: Option<(u64, u64)>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let Opened { log, dataset, keys } = args.logged.open()?;
    let tracer = Tracer::new(&dataset);
    let mut records = HashSet::new();
    for (file, record) in args.records()? {
        let found = tracer.record_at(&file, record).ok_or_else(|| {
            let text = format!("no source of the pipeline has record {record} of {}", file.display());
            Error::config(text).help("`gristmill which` prints the names of files")
        })?;
        records.insert(found);
    }
    let first = log.lines().first().map_or(0, |line| line.entry.at_batch);
    let (from, to) = args.steps.unwrap_or((first, log.batches()));
    let Search { seen, batches, why_all } = search(&dataset, &log, &records, from..to, keys)?;
    if args.json {
        output::json(&serde_json::json!({"steps": [from, to], "planned": batches, "seen": seen}));
        return Ok(Outcome::Done);
    }
    let row = |seen: &crate::ledger::Seen| {
        std::iter::once(seen.step.to_string()).chain(cells(seen.row, &seen.segment)).collect()
    };
    let head: Vec<&str> = std::iter::once("step").chain(COLUMNS).collect();
    output::data(&output::table(&head, &seen.iter().map(row).collect::<Vec<_>>(), &LEFT.map(|column| column + 1)));
    let all = why_all.map_or_else(String::new, |why| format!(", because {why}"));
    let (places, planned) = (plural(seen.len() as u64, "place"), grouped(batches));
    output::say(&format!("{places} in batches {from} to {to}; batches planned: {planned}{all}"));
    Ok(Outcome::Done)
}

impl Args {
    /// Returns the requested records.
    fn records(&self) -> Result<Vec<(PathBuf, u64)>> {
        let mut records: Vec<_> = self.file.clone().zip(self.record).into_iter().collect();
        if let Some(path) = &self.ids {
            let text = std::fs::read_to_string(path).map_err(|e| Error::io(e, path))?;
            records.extend(records_in(&text).map_err(|e| e.path(path))?);
        }
        Ok(records)
    }
}
