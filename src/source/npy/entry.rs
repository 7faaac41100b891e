//! The source of pipeline files.

use super::Npy;
use crate::source::entries::prelude::*;
use crate::source::formats::npy::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(npy))];

arguments! {
    struct NpyArgs(paths) {
        /// Path of a single file, instead of `paths`.
        path: Option<Given<PathBuf>>,
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.npy`) are expanded. All files need equal dtypes
        /// and row shapes.
        paths: Option<Given<Vec<PathBuf>>>,
        /// Name of the column.
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
