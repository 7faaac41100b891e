//! The source of pipeline files.

use super::{Csv, CsvOptions, CsvType};
use crate::declare::decode::Fields;
use crate::declare::values::{Map, decode_as};
use crate::source::entries::prelude::*;
use crate::source::formats::csv::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(csv)).chooses("columns")];

arguments! {
    struct CsvArgs(paths) {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.csv`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Character between fields. By default, it is detected from the first records.
        delimiter: Option<Byte>,
        /// Character around fields that contain delimiters or line ends; empty text for files without quotes. By default, `"`.
        quote: Option<Byte>,
        /// Whether the first record of each file contains the column names. By default, true unless `names` is given.
        header: Option<bool>,
        /// Names of all columns, instead of a header.
        names: Option<Vec<String>>,
        /// Columns to read. By default, all columns.
        columns: Option<Vec<String>>,
        /// Field values that are read as null. By default, empty fields are null, except in columns of text.
        nulls: Option<Vec<String>>,
        /// Number of records from which column types are inferred.
        infer_rows: usize = 1000,
        /// Types of columns by name: `str`, `bool`, `int64`, `float32` and so on. The types of other columns are inferred.
        types: Option<Given<Map<String>>>,
        /// Cache for the index of record positions: `beside` the data files, `off`, or the path of a folder.
        index_cache: CacheArg = "beside",
        /// Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from the lanes in turn, so the
        /// number determines the order of records. By default, all files form a single stream.
        lanes: Lanes,
    }
}

fn csv(args: CsvArgs, at: &Site<'_>) -> Result<Chain> {
    let files = files_of("csv", &args.paths, at)?;
    let options = options(&args)?;
    let plain = |contents| Ok(Source::new(options.clone().cache(args.index_cache.of(at)).of(contents)?).boxed());
    by_number_or_streams(&files, &args.lanes, at, open_plain, plain, |files| stream(&options, files))
}

fn stream(options: &CsvOptions, files: &[Location]) -> Result<BoxIter<Element>> {
    use crate::dataset::IterDatasetExt;
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
    if let Some(given) = &args.types { Ok(options.types(types(given)?)) } else { Ok(options) }
}

/// A byte, or none if the text is empty.
#[derive(Clone, Copy)]
struct Byte(Option<u8>);

decode_as!(Byte, Kind::Byte, |node| {
    match String::decode(node)?.as_bytes() {
        [] => Ok(Self(None)),
        [byte] => Ok(Self(Some(*byte))),
        _ => Err(node.error("must be one byte")),
    }
});

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
