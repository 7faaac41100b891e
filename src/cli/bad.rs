//! Policy of commands for rows, records, samples and shards that cannot be used.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use crate::cli::format::plural;
use crate::cli::output;
use crate::dataset::iter::BadRecords;
use crate::{Error, ErrorKind, Result};

/// The remedy that errors name.
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

/// One of the names of policies.
fn policy() -> impl TypedValueParser<Value = BadRecords> {
    PossibleValuesParser::new(["error", "skip"])
        .map(|name| if name == "skip" { BadRecords::skip() } else { BadRecords::Error })
}

impl OnBad {
    /// The policy.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a limit without a policy that has one.
    pub(crate) fn policy(&self) -> Result<BadRecords> {
        match (self.on_bad_record, self.bad_record_limit) {
            (BadRecords::Skip { .. }, limit) => Ok(BadRecords::Skip { limit, consecutive: None }),
            (BadRecords::Error, None) => Ok(BadRecords::Error),
            (BadRecords::Error, Some(_)) => Err(Error::config("--bad-record-limit belongs to --on-bad-record skip")),
        }
    }

    /// Adds the remedy to an error in the data, unless the policy is in use.
    #[cold]
    pub(crate) fn told(&self, error: Error) -> Error {
        let is_mended = error.kind() == ErrorKind::Data && self.on_bad_record == BadRecords::Error;
        if is_mended { error.more_help(REMEDY) } else { error }
    }
}

/// Records and shards that a command has skipped.
#[derive(Default, Serialize)]
pub(crate) struct Skipped {
    /// Bad records, in this run.
    pub(crate) records: u64,
    /// The errors of shards that cannot be opened.
    pub(crate) shards: Vec<String>,
}

/// Shards that a report names.
const NAMED: usize = 5;

impl Skipped {
    /// Leaves out a shard that cannot be opened.
    ///
    /// # Errors
    /// The shard's own, if it may not be left out.
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

    /// Lines that count them and name the first shards; none if nothing was left out.
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
