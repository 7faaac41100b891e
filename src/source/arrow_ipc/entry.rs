//! The source of pipeline files.

use super::{Arrow, ArrowOptions};
use crate::declare::values::Amount;
use crate::source::entries::prelude::*;
use crate::source::formats::arrow_ipc::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(arrow)).chooses("columns")];

arguments! {
    struct ArrowArgs(paths) {
        /// Files, folders, globs or URLs; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Memory for decompressed batches that are kept.
        cache_bytes: Amount = "256MiB",
        /// The columns to read, all of them by default.
        columns: Option<Given<Vec<String>>>,
        /// Whether folders named `key=value` give columns, as Hive, Spark and DuckDB write them: by default the folders between a folder
        /// of `paths` and its files, if true all folders of a path, if false none.
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
