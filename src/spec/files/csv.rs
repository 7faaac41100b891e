//! CSV.

use std::path::PathBuf;

#[cfg(feature = "compress")]
use super::lanes_of;
use super::{found, index_cache, is_packed, paths, refuse_lanes, unopened};
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::error::Result;
use crate::source::{Csv, CsvOptions, CsvType, open_plain};
use crate::spec::chain::{Chain, Context};
use crate::spec::decode::{Decode, Fields};
use crate::spec::node::Node;

const ENDINGS: [&str; 8] = [".csv.gz", ".csv.zst", ".csv.lz4", ".tsv.gz", ".tsv.zst", ".tsv.lz4", ".csv", ".tsv"];

/// `csv: {paths: "a-*.csv", columns: [text], types: {id: int64}, delimiter: ";"}`; compressed files are a stream.
pub(super) fn csv(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let files = found(paths(fields.required_node("paths")?, context)?, &ENDINGS, context)?;
    let (options, cache) = (options(fields)?, index_cache(fields, context)?);
    if context.is_draft {
        return unopened(fields, is_packed(&files));
    }
    let Some(contents) = open_plain(&files)? else { return stream(fields, &options, &files) };
    refuse_lanes(fields)?;
    Ok(Chain::Map(Source::new(options.cache(cache).of(contents)?).boxed()))
}

#[cfg(feature = "compress")]
fn stream(fields: &Fields<'_>, options: &CsvOptions, files: &[PathBuf]) -> Result<Chain> {
    use crate::dataset::IterDataset;
    let open = |files: &[PathBuf]| Ok(options.clone().stream(files)?.boxed());
    match fields.at_least("lanes", 1)? {
        Some(count) => lanes_of(files, count, open),
        None => Ok(Chain::Iter(open(files)?)),
    }
}

#[cfg(not(feature = "compress"))]
fn stream(_: &Fields<'_>, _: &CsvOptions, _: &[PathBuf]) -> Result<Chain> {
    Err(crate::source::Format::CsvStream.lacking())
}

fn options(fields: &Fields<'_>) -> Result<CsvOptions> {
    let mut options = Csv::options();
    if let Some(delimiter) = fields.node("delimiter").map(byte).transpose()?.flatten() {
        options = options.delimiter(delimiter);
    }
    if let Some(quote) = fields.node("quote") {
        options = options.quote(byte(quote)?);
    }
    if let Some(header) = fields.optional("header")? {
        options = options.header(header);
    }
    if let Some(names) = fields.optional::<Vec<String>>("names")? {
        options = options.names(names);
    }
    if let Some(columns) = fields.optional::<Vec<String>>("columns")? {
        options = options.columns(columns);
    }
    if let Some(nulls) = fields.optional::<Vec<String>>("nulls")? {
        options = options.nulls(nulls);
    }
    if let Some(rows) = fields.optional("infer_rows")? {
        options = options.infer_rows(rows);
    }
    match fields.node("types") {
        Some(node) => Ok(options.types(types(node)?)),
        None => Ok(options),
    }
}

/// One byte; none where the text is empty.
fn byte(node: &Node) -> Result<Option<u8>> {
    match String::decode(node)?.as_bytes() {
        [] => Ok(None),
        [byte] => Ok(Some(*byte)),
        _ => Err(node.error("must be one byte")),
    }
}

/// `{id: int64, text: str}`.
fn types(node: &Node) -> Result<Vec<(String, CsvType)>> {
    let fields = Fields::new(node)?;
    let one = |field: &crate::spec::node::Field| {
        let name = String::decode(&field.value)?;
        let kind = CsvType::from_name(&name);
        let unknown =
            || field.value.error(format!("no type {name:?}")).help("types are `str`, `bool`, `int64`, `float32`, …");
        Ok((field.key.clone(), kind.ok_or_else(unknown)?))
    };
    fields.free_entries().iter().map(one).collect()
}
