//! The source of pipeline files.

use super::{Csv, CsvOptions, CsvType};
use crate::declare::decode::Fields;
use crate::declare::values::Map;
use crate::source::entries::prelude::*;
use crate::source::formats::csv::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(csv)).chooses("columns")];

arguments! {
    struct CsvArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.csv`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// One character; found in the first records if it is not given.
        delimiter: Option<Byte>,
        /// The character around fields that hold delimiters, `"` by default; empty text for none.
        quote: Option<Byte>,
        /// Whether the first record of each file names the columns; so it does by default, unless `names` are given.
        header: Option<bool>,
        /// The names of the columns, if the files do not have them.
        names: Option<Vec<String>>,
        /// The columns to read, all of them by default.
        columns: Option<Vec<String>>,
        /// Fields that are read as null.
        nulls: Option<Vec<String>>,
        /// Records by which the types of columns are inferred.
        infer_rows: usize = 1000,
        /// Types of columns: `str`, `bool`, `int64`, `float32` and so on. The types of other columns are inferred.
        types: Option<Given<Map<String>>>,
        /// Place of the positions of the records: `beside` the file, `off`, or a folder.
        index_cache: CacheArg = "beside",
        /// How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo `lanes`; it is part of
        /// the data's order. One stream by default.
        lanes: Lanes,
    }
}

fn csv(args: CsvArgs, at: &Site<'_>) -> Result<Chain> {
    let files = files_of("csv", &args.paths, at)?;
    let options = options(&args)?;
    let plain = |contents| Ok(Source::new(options.clone().cache(args.index_cache.of(at)).of(contents)?).boxed());
    by_number_or_streams(&files, &args.lanes, at, open_plain, plain, |files| stream(&options, files))
}

#[cfg(feature = "compress")]
fn stream(options: &CsvOptions, files: &[Location]) -> Result<BoxIter<Element>> {
    use crate::dataset::IterDataset;
    Ok(options.clone().stream(files)?.boxed())
}

#[cfg(not(feature = "compress"))]
fn stream(_: &CsvOptions, _: &[Location]) -> Result<BoxIter<Element>> {
    Err(crate::source::Format::CsvStream.lacking())
}

fn options(args: &CsvArgs) -> Result<CsvOptions> {
    let options = Csv::options().infer_rows(args.infer_rows);
    let options = args.delimiter.and_then(|byte| byte.0).into_iter().fold(options, CsvOptions::delimiter);
    let options = args.quote.map(|byte| byte.0).into_iter().fold(options, CsvOptions::quote);
    let options = args.header.into_iter().fold(options, CsvOptions::header);
    let options = args.names.iter().fold(options, CsvOptions::names);
    let options = args.columns.iter().fold(options, CsvOptions::columns);
    let options = args.nulls.iter().fold(options, CsvOptions::nulls);
    match &args.types {
        Some(given) => Ok(options.types(types(given)?)),
        None => Ok(options),
    }
}

/// A byte, or none if the text is empty.
#[derive(Clone, Copy)]
struct Byte(Option<u8>);

impl Decode for Byte {
    const KIND: Kind = Kind::Byte;

    fn decode(node: &Node) -> Result<Self> {
        match String::decode(node)?.as_bytes() {
            [] => Ok(Self(None)),
            [byte] => Ok(Self(Some(*byte))),
            _ => Err(node.error("must be one byte")),
        }
    }
}

/// `{id: int64, text: str}`.
fn types(node: &Node) -> Result<Vec<(String, CsvType)>> {
    let fields = Fields::new(node)?;
    let one = |field: &crate::declare::node::Field| {
        let name = String::decode(&field.value)?;
        let kind = CsvType::from_name(&name);
        let unknown =
            || field.value.error(format!("no type {name:?}")).help("types are `str`, `bool`, `int64`, `float32`, …");
        Ok((field.key.clone(), kind.ok_or_else(unknown)?))
    };
    fields.free_entries().iter().map(one).collect()
}
