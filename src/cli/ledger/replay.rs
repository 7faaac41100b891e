//! `gristmill replay`: writes batches of a run again, with their records.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Logged, Opened};
use crate::cli::convert::format;
use crate::cli::format::grouped;
use crate::cli::{Outcome, examples, output};
use crate::dataset::PlannedPass;
use crate::ledger::which;
use crate::sink::{Sink, SinkFormat};
use crate::{Error, Executor, Load, Result, store};

/// Writes batches of a logged run again, with their records
///
/// Writes the global batches to shards, a batch in each record, and their records to lineage.jsonl beside the shards, a batch in each line.
#[derive(clap::Args)]
#[command(after_long_help = examples!("gristmill replay run.ledger --steps 70000:70200 --out spike"))]
pub(crate) struct Args {
    #[command(flatten)]
    logged: Logged,
    /// Batches to write, `FIRST:END`, numbered from 0
    #[arg(long, value_name = "A:B", value_parser = super::steps)]
    steps: (u64, u64),
    /// Folder of the shards, which is made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Format of the shards
    #[arg(long, value_name = "FORMAT", value_parser = format(), default_value = "jsonl")]
    to: SinkFormat,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let Opened { log, dataset, keys } = args.logged.open()?;
    let (first, end) = args.steps;
    let unplanned = PlannedPass::start(&dataset, None, Arc::default()).err();
    let before = match &unplanned {
        None => which(&dataset, &log, first, keys)?.before,
        Some(error) => {
            output::warn(&format!(
                "{}: batches are made from the last logged position on, without lineage",
                error.message()
            ));
            log.before(first)?.checkpoint()
        }
    };
    let mut loader = dataset.loader().executor(Executor::Inline).edits(log.edits()).resume(before).build()?;
    let (mut sink, mut lineage) = (Sink::options(args.to).open(&args.out)?, String::new());
    while loader.delivered() < end {
        let step = loader.delivered();
        let Some(batch) = loader.next().transpose()? else {
            return Err(Error::config(format!("the stream ends before batch {step}")));
        };
        if step < first {
            continue;
        }
        sink.write(batch)?;
        let rows = if unplanned.is_none() { Some(loader.lineage()?) } else { None };
        lineage += &format!("{}\n", serde_json::json!({"step": step, "rows": rows}));
    }
    let report = sink.finish()?;
    let file = args.out.join("lineage.jsonl");
    store::replace(&file, lineage.as_bytes())?;
    if args.json {
        output::json(&serde_json::json!({"folder": args.out, "lineage": file, "report": report}));
    } else {
        output::say(&format!("{} batches in {}", grouped(end - first), args.out.display()));
    }
    Ok(Outcome::Done)
}
