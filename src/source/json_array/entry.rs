//! The source of pipeline files.

use super::JsonArray;
use crate::source::RepeatedNames;
use crate::source::entries::prelude::*;
use crate::source::formats::json_array::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(json)).chooses("columns")];

arguments! {
    struct JsonArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.json`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// The columns to read, all of them by default.
        columns: Option<Given<Vec<String>>>,
        /// What becomes of a record in which an object has a name twice, among the columns that are read: the last value stands, and
        /// the report counts such records, or it is a bad record.
        repeated_names: RepeatedNames = "last",
        /// Place of the positions of the records: `beside` the file, `off`, or a folder.
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
