//! The source of pipeline files.

use super::{Arrow, ArrowOptions};
use crate::declare::values::Amount;
use crate::source::arrow::columns::all_names;
use crate::source::entries::prelude::*;
use crate::source::files::Patterns;
use crate::source::formats::arrow_ipc::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(arrow)).chooses("columns")];

arguments! {
    struct ArrowArgs(paths) {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.arrow`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Memory for the cache of decompressed record batches.
        cache_bytes: Amount = "256MiB",
        /// Columns to read. By default, all columns.
        columns: Option<Given<Vec<String>>>,
        /// Whether folders named `key=value` become columns, as in Hive, Spark and DuckDB. With `true`, all folders of a path become
        /// columns; with `false`, none. By default, only the folders between a folder of `paths` and its files become columns.
        hive_partitioning: Option<bool>,
    }
}

fn arrow(args: ArrowArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let options = Arrow::options().cache_bytes(args.cache_bytes.into());
    let options = args.hive_partitioning.into_iter().fold(options, ArrowOptions::hive_partitioning);
    args.columns.as_ref().map(Given::get).transpose()?;
    by_number(at, || {
        let opened = match args.columns {
            Some(given) => options.open_choosing(&paths, |columns| at.of_columns(columns).columns_in(&given)),
            None => options.open(&paths),
        };
        Ok(Source::new(opened?).boxed())
    })
}

impl ArrowOptions {
    /// Like `open`, but passes the names of all columns to `choose`, which returns the names to read.
    fn open_choosing(
        self,
        patterns: impl Patterns,
        choose: impl FnOnce(Vec<String>) -> Result<Vec<String>>,
    ) -> Result<Arrow> {
        let (read, partitions) = self.read(patterns)?;
        let names = all_names(read.iter().map(|(_, _, layout, _)| &*layout.schema), &partitions);
        self.columns(choose(names)?).open_read(read, partitions)
    }
}
