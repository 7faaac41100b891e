//! The source of pipeline files.

use super::{Jsonl, JsonlOptions};
use crate::dataset::map::RandomAccess;
use crate::source::entries::prelude::*;
use crate::source::formats::jsonl::FACTS;
use crate::source::{Contents, RepeatedNames, StreamOptions};

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(jsonl)).chooses("columns")];

words!(RepeatedNames { "last" => RepeatedNames::Last, "error" => RepeatedNames::Error });

arguments! {
    struct JsonlArgs(paths) {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.jsonl`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Policy for records in which an object repeats a name: `last` keeps the last value and counts the record in the report, `error`
        /// makes it a bad record. Only the columns that are read are checked.
        repeated_names: RepeatedNames = "last",
        /// Cache for the index of record positions: `beside` the data files, `off`, or the path of a folder.
        index_cache: CacheArg = "beside",
        /// Columns to read. By default, all columns.
        columns: Option<Given<Vec<String>>>,
        /// Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from the lanes in turn, so the
        /// number determines the order of records. By default, all files form a single stream.
        lanes: Lanes,
    }
}

fn jsonl(args: JsonlArgs, at: &Site<'_>) -> Result<Chain> {
    let JsonlArgs { paths, repeated_names: names, index_cache, columns, lanes } = args;
    let files = files_of("jsonl", &paths, at)?;
    let chosen_columns = columns.as_ref().map(Given::get).transpose()?;
    let plain = |contents| {
        let cache = index_cache.of(at);
        let options = || Jsonl::options().cache(cache.clone()).repeated_names(names);
        let source = match &columns {
            Some(given) => chosen(given, at, options, &contents)?,
            None => options().open_by(|| Ok(contents))?,
        };
        Ok(Source::new(source).boxed())
    };
    by_number_or_streams(&files, &lanes, at, open_plain, plain, |files| {
        let options = StreamOptions::new().repeated_names(names);
        Ok(chosen_columns.iter().fold(options, StreamOptions::columns).jsonl(files)?.boxed())
    })
}

/// Opens files to read only some columns. If the first record cannot be read that way, its columns are compared with the names.
fn chosen(
    given: &Given<Vec<String>>,
    at: &Site<'_>,
    options: impl Fn() -> JsonlOptions,
    contents: &Contents,
) -> Result<Jsonl> {
    let columns = given.get()?;
    let open = |options: JsonlOptions| options.open_by(|| Ok(contents.clone()));
    let source = open(options().columns(&columns)).map_err(|e| e.line(given.line as u64))?;
    if source.is_empty() || source.read(0).is_ok() {
        return Ok(source);
    }
    if let Ok(first) = open(options())?.read(0) {
        at.of_columns(first.iter().map(|(name, _)| name.to_owned()).collect()).columns_in(given)?;
    }
    Ok(source)
}
