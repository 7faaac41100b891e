//! Policy for rows, records, samples and shards that cannot be read or used.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use crate::cli::format::plural;
use crate::cli::output;
use crate::dataset::iter::BadRecords;
use crate::{Error, ErrorKind, Result};

/// Help text that is added to data errors.
const REMEDY: &str = "or skip damaged records by `--on-bad-record skip`";

/// Options of the policy.
#[derive(clap::Args)]
pub(crate) struct OnBad {
    /// Policy for a row, record, sample or shard that cannot be read or used
    ///
    /// `error` ends the run. `skip` leaves the record out, counts it and names the first few. A shard that cannot be opened is left out
    /// as a whole.
    #[arg(long, value_name = "POLICY", value_parser = policy(), default_value = "error")]
    on_bad_record: BadRecords,
    /// Skip at most N records and at most N shards [default: no limit]
    #[arg(long, value_name = "N")]
    bad_record_limit: Option<u64>,
}

/// Makes a parser that accepts the names of the policies.
fn policy() -> impl TypedValueParser<Value = BadRecords> {
    PossibleValuesParser::new(["error", "skip"])
        .map(|name| if name == "skip" { BadRecords::skip() } else { BadRecords::Error })
}

impl OnBad {
    /// Returns the policy.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a limit is given without `--on-bad-record skip`.
    pub(crate) fn policy(&self) -> Result<BadRecords> {
        match (self.on_bad_record, self.bad_record_limit) {
            (BadRecords::Skip { .. }, limit) => Ok(BadRecords::Skip { limit, consecutive: None }),
            (BadRecords::Error, None) => Ok(BadRecords::Error),
            (BadRecords::Error, Some(_)) => Err(Error::config("--bad-record-limit belongs to --on-bad-record skip")),
        }
    }

    /// Adds the remedy to a data error if the policy is `error`.
    #[cold]
    pub(crate) fn told(&self, error: Error) -> Error {
        let is_mended = error.kind() == ErrorKind::Data && self.on_bad_record == BadRecords::Error;
        if is_mended { error.more_help(REMEDY) } else { error }
    }
}

/// Records and shards that a command has skipped.
#[derive(Default, Serialize)]
pub(crate) struct Skipped {
    /// Bad records skipped in this run.
    pub(crate) records: u64,
    /// Errors of the shards that cannot be opened.
    pub(crate) shards: Vec<String>,
}

/// Maximum number of shards that a report names.
const NAMED: usize = 5;

impl Skipped {
    /// Skips a shard that cannot be opened.
    ///
    /// # Errors
    /// The error of the shard if the policy does not allow skipping it.
    pub(crate) fn shard(&mut self, error: Error, on_bad: &OnBad) -> Result<()> {
        match on_bad.policy()? {
            BadRecords::Skip { limit, .. }
                if error.kind() == ErrorKind::Data && limit.is_none_or(|limit| (self.shards.len() as u64) < limit) =>
            {
                self.shards.push(error.to_string());
                Ok(())
            }
            _ => Err(on_bad.told(error)),
        }
    }

    /// Returns lines with the counts and the errors of the first shards; empty if nothing was skipped.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.records > 0 {
            text += &format!("skipped  {}\n", plural(self.records, "bad record"));
        }
        if !self.shards.is_empty() {
            text += &format!("skipped  {}\n", plural(self.shards.len() as u64, "shard"));
            self.shards.iter().take(NAMED).for_each(|error| text += &output::wrapped(&format!("  {error}"), 2));
        }
        text
    }
}
