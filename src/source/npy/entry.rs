//! The source of pipeline files.

use super::Npy;
use crate::source::entries::prelude::*;
use crate::source::formats::npy::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(npy))];

arguments! {
    struct NpyArgs(paths) {
        /// A single file, in place of `paths`.
        path: Option<Given<PathBuf>>,
        /// Files, folders, globs, ranges of shards (`train-{000..127}.npy`) or URLs of any of these; one or a list. All have one type
        /// and one shape of a row.
        paths: Option<Given<Vec<PathBuf>>>,
        /// The name of the column.
        field: String = "data",
    }
}

fn npy(NpyArgs { path, paths: given, field }: NpyArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = match (path, given) {
        (Some(path), None) => Paths { all: vec![at.existing(&path)?], shards: at.shards.clone() },
        (_, Some(given)) => paths(&given, at)?,
        (None, None) => return Err(at.missing("paths")),
    };
    by_number(at, || Ok(Source::new(Npy::open(&paths)?.field(field)).boxed()))
}
