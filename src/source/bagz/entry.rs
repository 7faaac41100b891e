//! The source of pipeline files.

use super::{Bagz, BagzOptions, expand};
use crate::source::entries::prelude::*;
use crate::source::formats::bagz::FACTS;
use crate::source::record_args::RecordArgs;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(bagz))];

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
    let options = Bagz::options().interleaved(args.interleaved);
    let options = args.compressed.into_iter().fold(options, BagzOptions::compressed);
    let content = args.content.records(at)?;
    by_number(at, || Ok(content.elements(options.open(&paths)?)))
}
