//! The source of pipeline files.

use std::path::PathBuf;

use super::{Jsonl, JsonlOptions};
use crate::dataset::map::{RandomAccess, Source};
use crate::dataset::{BoxIter, IterDataset, MapDataset};
use crate::declare::arguments::{arguments, words};
use crate::declare::build::{Of, Site};
use crate::declare::chain::Chain;
use crate::declare::entry::SourceEntry;
use crate::declare::values::Given;
use crate::element::Element;
use crate::error::Result;
use crate::place::Location;
use crate::source::detect::open_plain;
use crate::source::entries::{CacheArg, Lanes, by_number_or_streams, files_of};
use crate::source::formats::jsonl::FACTS;
use crate::source::{Contents, RepeatedNames, StreamOptions};

pub(in crate::source) const SOURCES: &[SourceEntry] = &[FACTS.entry(&Of(jsonl)).chooses("columns")];

words!(RepeatedNames { "last" => RepeatedNames::Last, "error" => RepeatedNames::Error });

arguments! {
    struct JsonlArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.jsonl`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// What becomes of a record in which an object has a name twice, among the columns that are read: the last value stands, and
        /// the report counts such records, or it is a bad record.
        repeated_names: RepeatedNames = "last",
        /// Place of the positions of the records: `beside` the file, `off`, or a folder.
        index_cache: CacheArg = "beside",
        /// The columns to read, all of them by default.
        columns: Option<Given<Vec<String>>>,
        /// How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo `lanes`; it is part of
        /// the data's order. One stream by default.
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
            None => options().open_contents(contents)?,
        };
        Ok(Source::new(source).boxed())
    };
    by_number_or_streams(&files, &lanes, at, open_plain, plain, |files| {
        jsonl_stream(files, chosen_columns.as_deref(), names)
    })
}

fn jsonl_stream(files: &[Location], columns: Option<&[String]>, names: RepeatedNames) -> Result<BoxIter<Element>> {
    let mut options = StreamOptions::new().repeated_names(names);
    if let Some(columns) = columns {
        options = options.columns(columns);
    }
    Ok(options.jsonl(files)?.boxed())
}

/// Opens files to read only some columns. If the first record cannot be read that way, its columns are compared with the names.
fn chosen(
    given: &Given<Vec<String>>,
    at: &Site<'_>,
    options: impl Fn() -> JsonlOptions,
    contents: &Contents,
) -> Result<Jsonl> {
    let columns = given.get()?;
    let open = |options: JsonlOptions| options.open_contents(contents.clone());
    let source = open(options().columns(&columns)).map_err(|e| e.line(given.line as u64))?;
    if source.is_empty() || source.read(0).is_ok() {
        return Ok(source);
    }
    if let Ok(first) = open(options())?.read(0) {
        at.of_columns(first.iter().map(|(name, _)| name.to_owned()).collect()).columns_in(given)?;
    }
    Ok(source)
}
