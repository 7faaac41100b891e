//! `gristmill schema`: the JSON Schema of pipeline files.

use crate::Result;
use crate::cli::{Outcome, examples, output};

/// Prints the JSON Schema of pipeline files, for editors
///
/// Editors complete names and underline mistakes by it, if the first line of a pipeline file is
/// `# yaml-language-server: $schema=pipeline.schema.json`.
#[derive(clap::Args)]
#[command(after_long_help = examples!("gristmill schema > pipeline.schema.json"))]
pub(crate) struct Args {}

pub(crate) fn main(_: &Args) -> Result<Outcome> {
    output::data(&crate::spec::schema());
    Ok(Outcome::Done)
}
