//! `gristmill which`: the records of a batch of a run.

use std::io::{Read, Seek, SeekFrom};

use serde::Serialize;

use super::{COLUMNS, LEFT, Logged, Opened, cells};
use crate::cli::format::{cut, plural};
use crate::cli::{Outcome, examples, output};
use crate::dataset::{Lineage, Segment};
use crate::ledger::which;
use crate::{Error, Result, regular};

/// Shows the records of a batch of a logged run
///
/// Prints file, record, bytes and cells of every part of every row of the global batch. The batch is planned from the last logged position
/// before it; no record is read if key files exist. Batches are numbered from 0.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill which run.ledger --step 70211"
    "gristmill which run.ledger --step 70211 --row 17 --text"
))]
pub(crate) struct Args {
    #[command(flatten)]
    logged: Logged,
    /// Number of the batch, from 0
    #[arg(long, value_name = "N")]
    step: u64,
    /// Show a single row of the batch
    #[arg(long, value_name = "N")]
    row: Option<u64>,
    /// Show the start of each record, if its bytes in its file are known
    #[arg(long)]
    text: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Maximum number of bytes that are read of a record, and of characters that are shown.
const MOST_BYTES: u64 = 4096;
const MOST_SHOWN: usize = 60;

#[derive(Serialize)]
struct Found {
    step: u64,
    planned_from: u64,
    rows: Vec<Lineage>,
    /// Text of each segment, row by row.
    #[serde(skip_serializing_if = "Option::is_none")]
    texts: Option<Vec<Vec<Option<String>>>>,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let Opened { log, dataset, keys } = args.logged.open()?;
    let step = which(&dataset, &log, args.step, keys)?;
    let mut rows = step.rows;
    if let Some(row) = args.row {
        let count = rows.len();
        rows.retain(|lineage| lineage.row == row);
        if rows.is_empty() {
            return Err(Error::config(format!(
                "batch {} has {}, and no row {row}",
                args.step,
                plural(count as u64, "row")
            )));
        }
    }
    let texts = |row: &Lineage| row.segments.iter().map(text).collect::<Vec<_>>();
    let texts = args.text.then(|| rows.iter().map(texts).collect::<Vec<_>>());
    let found = Found { step: args.step, planned_from: step.planned_from, rows, texts };
    if args.json {
        output::json(&found);
    } else {
        output::data(&found.text());
        output::say(&format!("planned from the position of the run log at batch {}", found.planned_from));
    }
    Ok(Outcome::Done)
}

/// Reads the start of a record, if its bytes in a local file are known.
fn text(segment: &Segment) -> Option<String> {
    let (path, bytes) = (segment.file.as_ref()?, segment.bytes.as_ref()?);
    let (mut file, mut start) = (regular::open(path).ok()?, Vec::new());
    file.seek(SeekFrom::Start(bytes.start)).ok()?;
    file.take((bytes.end - bytes.start).min(MOST_BYTES)).read_to_end(&mut start).ok()?;
    Some(String::from_utf8_lossy(&start).trim_end().to_owned())
}

impl Found {
    fn text(&self) -> String {
        let mut table = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            for (number, segment) in row.segments.iter().enumerate() {
                let texts = self.texts.as_ref().map(|texts| texts[at][number].as_deref());
                let shown = texts.map(|text| cut(text.unwrap_or("-"), MOST_SHOWN));
                table.push(cells(row.row, segment).into_iter().chain(shown).collect());
            }
        }
        let head: Vec<&str> = COLUMNS.into_iter().chain(self.texts.is_some().then_some("text")).collect();
        output::table(&head, &table, &[&LEFT[..], &[COLUMNS.len()]].concat())
    }
}
