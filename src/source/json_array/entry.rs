//! The source of pipeline files.

use super::JsonArray;
use crate::source::RepeatedNames;
use crate::source::entries::prelude::*;
use crate::source::formats::json_array::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(json)).chooses("columns")];

arguments! {
    struct JsonArgs(paths) {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.json`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Columns to read. By default, all columns.
        columns: Option<Given<Vec<String>>>,
        /// Policy for records in which an object repeats a name: `last` keeps the last value and counts the record in the report, `error`
        /// makes it a bad record. Only the columns that are read are checked.
        repeated_names: RepeatedNames = "last",
        /// Cache for the index of record positions: `beside` the data files, `off`, or the path of a folder.
        index_cache: CacheArg = "beside",
    }
}

fn json(args: JsonArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let columns = args.columns.as_ref().map(Given::get).transpose()?;
    let options = JsonArray::options().repeated_names(args.repeated_names).cache(args.index_cache.of(at));
    let options = columns.iter().fold(options, |options, columns| options.columns(columns));
    by_number(at, || Ok(Source::new(options.open(paths)?).boxed()))
}
