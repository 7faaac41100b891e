//! `gristmill convert`: writes data in another format.

use std::path::{Path, PathBuf};

use crate::dataset::iter::BadRecords;
use crate::sink::SinkFormat;
use crate::spec::{Data, Opening, Pipeline};
use crate::{Error, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use tracing::Level;

use crate::cli::bad::OnBad;
use crate::cli::layout::Layout;
use crate::cli::write::Shards;
use crate::cli::{OUTPUT, Outcome, examples, output};

/// Writes data in another format, in shards
///
/// Reads files of data, or the elements of a pipeline file. Shards appear whole, in order, and manifest.json lists them. The end of each shard follows from the data alone:
/// a run that was interrupted and resumed leaves the same bytes as one that was not.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill convert data/*.jsonl --to parquet --out shards"
    "gristmill convert pipeline.yaml --to tokens --out tokens --resume"
    "zcat corpus.jsonl.gz | gristmill convert - --to arrow --out shards"
))]
pub(crate) struct Args {
    /// Files, globs or folders; a pipeline file (.yaml, .yml or .toml); `-` is standard input
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    to: SinkFormat,
    /// Only these columns, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// The column to write, in formats of one column [default: `tokens` in formats of token ids]
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// Columns that are sequences, separated by commas
    ///
    /// Records of tfrecord and array_record become SequenceExamples.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    sequences: Vec<String>,
    #[command(flatten)]
    layout: Layout,
    #[command(flatten)]
    on_bad: OnBad,
    #[command(flatten)]
    shards: Shards,
    /// Print one JSON object instead of text
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
}

/// Makes a parser that accepts the names of the formats.
pub(crate) fn format() -> impl TypedValueParser<Value = SinkFormat> {
    let names = SinkFormat::ALL.iter().map(|format| format.as_str());
    PossibleValuesParser::new(names).try_map(|name| name.parse::<SinkFormat>())
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let mut options = args.shards.options(args.to).sequences(&args.sequences);
    if let Some(column) = &args.column {
        options = options.column(column);
    }
    let data = args.records()?;
    // A pipeline file contains its own policy.
    let told = |error| if args.pipeline().is_some() { error } else { args.on_bad.told(error) };
    let (types, changes) = data.types(&args.columns, args.to)?;
    changes.iter().for_each(|change| output::event(Level::INFO, change));
    let written = args.shards.write(options.more_columns(&types), data, told, false)?;
    Ok(args.shards.tell(&written, args.json))
}

impl Args {
    fn records(&self) -> Result<Data> {
        let bad = self.on_bad.policy()?;
        let data = match self.pipeline() {
            Some(file) if bad != BadRecords::Error => {
                return Err(Error::config("a pipeline file sets its own policy")
                    .path(file)
                    .help("write `to_iter: {on_bad_record: skip}` into it"));
            }
            Some(file) => Data::of_pipeline(&Pipeline::from_file(file)?)?,
            None => self.files(&self.data, bad).map_err(|e| self.on_bad.told(e))?,
        };
        let columns = json!({"columns": self.columns});
        let data = if self.columns.is_empty() { data } else { data.then("select_columns", &columns)? };
        Ok(data.on_bad_record(bad))
    }
}

impl Args {
    /// Returns the pipeline file, if the data is a pipeline file.
    fn pipeline(&self) -> Option<&Path> {
        match self.data.as_slice() {
            [file] if is_pipeline(file) => Some(file),
            _ => None,
        }
    }

    /// Opens the files. Opens only the selected columns if opening all columns fails.
    fn files(&self, files: &[PathBuf], bad: BadRecords) -> Result<Data> {
        let opening = Opening { layout: self.layout.of(files)?, bad, ..Opening::default() };
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        match Data::open_as(files, &[], opening) {
            Err(_) if !columns.is_empty() => Data::open_as(files, &columns, opening),
            opened => opened,
        }
    }
}

fn is_pipeline(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ["yaml", "yml", "toml"].iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn help_names_every_format_that_is_written() {
        let command = <Args as clap::Args>::augment_args(Command::new("convert"));
        let to = command.get_arguments().find(|argument| argument.get_id() == "to").unwrap();
        let named: Vec<String> = to.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        assert_eq!(named, SinkFormat::ALL.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
}
