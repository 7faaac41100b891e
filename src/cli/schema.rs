//! `gristmill schema`: the JSON Schema of pipeline files.

use crate::Result;
use crate::cli::{Outcome, output};

/// Prints the JSON Schema of pipeline files, by which editors complete names and underline what is wrong.
///
/// Write it into a file, `gristmill schema > pipeline.schema.json`, and point to that in the first line of a pipeline file:
/// `# yaml-language-server: $schema=pipeline.schema.json`.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_: &Args) -> Result<Outcome> {
    output::data(&crate::spec::schema());
    Ok(Outcome::Done)
}
