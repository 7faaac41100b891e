//! The source of pipeline files.

use std::path::PathBuf;

use super::Safetensors;
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::declare::arguments::arguments;
use crate::declare::build::{Of, Site};
use crate::declare::chain::Chain;
use crate::declare::entry::SourceEntry;
use crate::declare::values::Given;
use crate::error::Result;
use crate::source::entries::{by_number, paths};
use crate::source::formats::safetensors::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[FACTS.entry(&Of(safetensors)).chooses("columns")];

arguments! {
    struct SafetensorsArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.safetensors`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// A record for each row, along the first dimension that all tensors of a file share.
        rows: bool = false,
        /// The tensors to read, all of them by default.
        columns: Option<Vec<String>>,
        /// Read tensors of 8-bit floats as their bytes (`uint8`).
        float8_as_u8: bool = false,
    }
}

fn safetensors(args: SafetensorsArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let mut options = Safetensors::options().rows(args.rows).float8_as_u8(args.float8_as_u8);
    if let Some(columns) = args.columns {
        options = options.columns(columns);
    }
    by_number(at, || Ok(Source::new(options.open(&paths)?).boxed()))
}
