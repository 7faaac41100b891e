//! The source of pipeline files.

use super::{Bagz, BagzOptions, expand};
use crate::source::entries::prelude::*;
use crate::source::formats::bagz::FACTS;
use crate::source::record_args::RecordArgs;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(bagz))];

arguments! {
    struct BagzArgs(paths) with RecordArgs as content {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.bagz`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Whether records were distributed over the files in turn (round-robin). If false, the files follow one another.
        interleaved: bool = false,
        /// Whether each record is a zstd frame. By default, `.bagz` files are compressed and `.bag` files are not; for other names, the
        /// first record decides.
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
