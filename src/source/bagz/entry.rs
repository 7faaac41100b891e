//! The source of pipeline files.

use std::path::PathBuf;

use super::{Bagz, expand};
use crate::declare::arguments::arguments;
use crate::declare::build::{Of, Site};
use crate::declare::chain::Chain;
use crate::declare::entry::SourceEntry;
use crate::declare::values::Given;
use crate::error::Result;
use crate::place::Location;
use crate::source::entries::{by_number, paths_by};
use crate::source::formats::bagz::FACTS;
use crate::source::record_args::RecordArgs;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[FACTS.entry(&Of(bagz))];

arguments! {
    struct BagzArgs(paths) with RecordArgs as content {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.bagz`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Whether the records were dealt out to the files in turn.
        interleaved: bool = false,
        /// Whether records are frames of zstd; by default, the name of the file decides.
        compressed: Option<bool>,
    }
}

fn bagz(args: BagzArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths_by(&args.paths, at, |file: Location| {
        expand(file.as_ref()).into_iter().map(|path| file.beside(|_| path)).collect()
    })?;
    let mut options = Bagz::options().interleaved(args.interleaved);
    if let Some(compressed) = args.compressed {
        options = options.compressed(compressed);
    }
    let content = args.content.records(at)?;
    by_number(at, || Ok(content.elements(options.open(&paths)?)))
}
