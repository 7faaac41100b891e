//! `gristmill audit`: the comparison of a run log with the plan of its run.

use super::{Logged, Opened};
use crate::Result;
use crate::cli::format::{grouped, plural};
use crate::cli::{Outcome, examples, output};
use crate::ledger::audit;

/// Plans a logged run again and compares it with its log
///
/// All positions are compared, and the digests of all rows if the run planned them from keys. A changed file is named. No record is read if
/// key files exist.
#[derive(clap::Args)]
#[command(after_long_help = examples!("gristmill audit run.ledger" "gristmill audit run.ledger --json"))]
pub(crate) struct Args {
    #[command(flatten)]
    logged: Logged,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let Opened { log, dataset, keys } = args.logged.open()?;
    let audited = audit(&dataset, &log, keys)?;
    if args.json {
        output::json(&audited);
    } else {
        let (batches, positions) = (grouped(audited.batches), plural(audited.positions, "position"));
        let digests = plural(audited.digests, "digest");
        output::data(&format!("{batches} batches: {positions} and {digests} agree with the plan\n"));
    }
    Ok(Outcome::Done)
}
