//! `gristmill doctor`: whether this machine and this build can do what pipelines ask for.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Result;
use crate::cli::format::plural;
use crate::cli::{Outcome, output, version};
use crate::spec::{Format, Pipeline};

/// Checks this machine and this build: cores, memory, open files, worker processes, the folder that data is cached in.
///
/// Exits with 1 if something does not work.
#[derive(clap::Args)]
#[command(after_help = crate::cli::EXIT_CODES)]
pub(crate) struct Args {
    /// A folder that is to be written to, such as that of checkpoints
    #[arg(long, value_name = "DIR")]
    folder: Vec<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The state of something.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Good,
    /// It works, and slower or less of it.
    Poor,
    Bad,
}

#[derive(Serialize)]
struct Check {
    what: String,
    health: Health,
    found: String,
    /// Advice on what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl Check {
    fn good(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), health: Health::Good, found: found.into(), help: None }
    }

    fn but_poor(self, help: impl Into<String>) -> Self {
        Self { health: Health::Poor, help: Some(help.into()), ..self }
    }

    fn line(&self) -> String {
        let sign = match self.health {
            Health::Good => '✓',
            Health::Poor => '!',
            Health::Bad => '✗',
        };
        let help = self.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
        output::wrapped(&format!("{sign} {:<12} {}{help}", self.what, self.found), 15)
    }
}

/// Open files below which folders of many shards do not open.
const FILES: u64 = 1024;

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let mut checks = vec![build(), cores()];
    checks.extend(memory());
    checks.extend(open_files());
    checks.push(evaluates("threads", "{threads: 2}"));
    #[cfg(all(feature = "workers", target_os = "linux"))]
    checks.push(evaluates("workers", "{workers: 1, ram_budget: 256MiB}"));
    checks.extend(args.folder.iter().map(|folder| writable(folder)));
    if args.json {
        output::json(&serde_json::json!({"checks": checks}));
    } else {
        output::data(&checks.iter().map(Check::line).collect::<String>());
    }
    let is_bad = checks.iter().any(|check| check.health == Health::Bad);
    Ok(if is_bad { Outcome::Found } else { Outcome::Done })
}

fn build() -> Check {
    Check::good("build", version::long().replace('\n', " · "))
}

fn cores() -> Check {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let check = Check::good("cores", plural(cores, "core"));
    if cores > 1 { check } else { check.but_poor("nothing computes beside the training loop") }
}

#[cfg(all(feature = "workers", target_os = "linux"))]
fn memory() -> Option<Check> {
    let free = crate::workers::available_bytes();
    let check = Check::good("memory", format!("{} available", crate::cli::format::bytes(free)));
    Some(if free >= 1 << 30 {
        check
    } else {
        check.but_poor("worker processes get a quarter of it, unless --ram says more")
    })
}

#[cfg(not(all(feature = "workers", target_os = "linux")))]
fn memory() -> Option<Check> {
    None
}

/// As the system says it; elsewhere than on Linux it is not asked.
fn open_files() -> Option<Check> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let limit = line.split_whitespace().next()?;
    let check = Check::good("open files", limit);
    let is_low = limit.parse::<u64>().is_ok_and(|limit| limit < FILES);
    Some(if is_low { check.but_poor("`ulimit -n 65536` lets folders of many shards open") } else { check })
}

/// Runs a small pipeline with an executor.
fn evaluates(what: &str, executor: &str) -> Check {
    let text = format!("source: {{range: 64}}\nstages: [to_iter, batch: 8]\nexecutor: {executor}\n");
    let run = || -> Result<u64> {
        let pipeline = Pipeline::from_text(text, Format::Yaml, ".")?;
        let how = crate::cli::how::How::default();
        let batches = how.loader(pipeline.build()?, &pipeline)?.build()?;
        batches.map(|batch| batch.map(|_| 1)).sum()
    };
    match run() {
        Ok(8) => Check::good(what, "a small pipeline ran"),
        Ok(n) => bad(what, format!("a small pipeline delivered {n} of 8 batches"), None),
        Err(error) => bad(what, error.to_string(), error.help_text()),
    }
}

fn writable(folder: &Path) -> Check {
    let what = folder.display().to_string();
    match crate::store::check_writable(&folder.join("doctor")) {
        Ok(()) => Check::good(what, "can be written to"),
        Err(error) => bad(&what, error.to_string(), error.help_text()),
    }
}

fn bad(what: &str, found: String, help: Option<&str>) -> Check {
    Check { what: what.to_owned(), health: Health::Bad, found, help: help.map(str::to_owned) }
}
