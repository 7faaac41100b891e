//! `gristmill hash`: adds up the digests of parts, and compares the sum with another run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cli::format::grouped;
use crate::cli::{Outcome, examples, output};
use crate::element::Digest;
use crate::part::{RowDigest, RowNumbers};
use crate::{Element, Error, Part, Result};

/// Adds up row digests of several hosts or runs
///
/// Reads what `run --json` printed for each part, each host or each run after a resume. The sum is that of one run that delivered all of these
/// rows. With --same-as it is compared with another result.
/// Results of `bench` count as one run each: where it has swept `part`, as one run of every part.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill hash host-0.json host-1.json --same-as whole.json"
))]
pub(crate) struct Args {
    /// Files with the output of `gristmill run --json` or `gristmill bench --json`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// File of another run to compare with; exit code 1 if its rows differ
    #[arg(long, value_name = "FILE")]
    same_as: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Digest of the rows that a run delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rows {
    pub(crate) digest: RowDigest,
    /// Number of rows in the digest.
    pub(crate) count: u64,
}

impl Rows {
    /// Adds `rows` of the batch with the global number `number`, or all of its rows if `rows` is `None`.
    /// A batch without rows counts as a single row.
    pub(crate) fn take(&mut self, number: u64, batch: &Element, rows: Option<&RowNumbers>) {
        let whole = || batch.num_rows().ok().and_then(|rows| Part::whole().rows(rows).ok());
        if let Some(rows) = rows.cloned().or_else(whole) {
            self.digest.add_batch(number, &rows, batch);
            self.count += rows.len() as u64;
        } else {
            self.digest.add_row(number, 0, |hasher| batch.digest(hasher));
            self.count += 1;
        }
    }

    /// Adds other rows.
    pub(crate) fn add(&mut self, other: Self) {
        self.digest.add(other.digest);
        self.count += other.count;
    }
}

#[derive(Serialize)]
struct Summed {
    #[serde(flatten)]
    rows: Rows,
    /// Whether the rows equal the result of `--same-as`, if it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    same: Option<bool>,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let mut rows = Rows::default();
    for file in &args.files {
        rows.add(read(file)?);
    }
    let other = args.same_as.as_deref().map(read).transpose()?;
    let same = other.map(|other| other == rows);
    let text = || format!("row digest  {} · {} rows\n", rows.digest, grouped(rows.count));
    output::either(args.json, &Summed { rows, same }, text);
    let (Some(other), Some(false)) = (other, same) else { return Ok(Outcome::Done) };
    let why = match other.count {
        count if count == rows.count => "of equally many rows: at least one row or its position differs".to_owned(),
        count => format!("of {} rows", grouped(count)),
    };
    output::always(&format!("not the same: the other is {}, {why}", other.digest));
    Ok(Outcome::Found)
}

/// Result that a command printed.
#[derive(Deserialize)]
#[serde(untagged)]
enum Printed {
    /// Result of `run` or `demo`.
    Run { rows: Rows },
    /// Result of `bench`, with an entry for every measured point.
    Bench { rows: Vec<Point> },
}

/// Point of a sweep that `bench` has measured.
#[derive(Deserialize)]
struct Point {
    /// Settings that change the delivered data.
    data: BTreeMap<String, String>,
    figures: Option<Figures>,
}

#[derive(Deserialize)]
struct Figures {
    rows: Option<Rows>,
}

/// Reads the rows of a result: the whole file, or its last line.
fn read(path: &Path) -> Result<Rows> {
    let text = crate::regular::read_text(path)?;
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let printed = serde_json::from_str(&text).or_else(|_| serde_json::from_str(last)).map_err(|_| {
        Error::data("no result of a run, with the digest of its rows")
            .path(path)
            .help("a file with what `gristmill run --json` or `gristmill bench --json` printed is needed")
    })?;
    match printed {
        Printed::Run { rows } => Ok(rows),
        Printed::Bench { rows } => of_points(&rows).map_err(|error| error.path(path)),
    }
}

/// Adds up the rows of the points of a bench.
/// Points with equal data count once; other parts are added.
fn of_points(points: &[Point]) -> Result<Rows> {
    let measured = points.iter().filter_map(|point| Some((&point.data, point.figures.as_ref()?.rows?)));
    let of_data: BTreeMap<_, _> = measured.collect();
    let pipeline = |data: &BTreeMap<String, String>| {
        data.iter().filter(|(key, _)| *key != "part").map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    let pipelines: BTreeSet<_> = of_data.keys().map(|data| pipeline(data)).collect();
    match pipelines.len() {
        0 => Err(Error::data("a result without digests of rows").help("earlier versions have none: measure again")),
        1 => Ok(of_data.into_values().fold(Rows::default(), |mut sum, rows| {
            sum.add(rows);
            sum
        })),
        _ => {
            let names: Vec<_> = pipelines.iter().map(|data| data.join(" ")).collect();
            let text = format!("digests of several pipelines do not add up: {}", names.join("; "));
            Err(Error::data(text).help("sweep over executors and parts only: the pipeline is then equal"))
        }
    }
}
