//! Text: lines and JSON Lines, compressed ones as streams.

use std::path::PathBuf;

use super::{index_cache, is_packed, paths, refuse_lanes, unopened};
#[cfg(feature = "compress")]
use crate::dataset::IterDataset;
use crate::dataset::map::{RandomAccess, Source};
use crate::dataset::{BoxMap, MapDataset};
use crate::element::Element;
use crate::error::Result;
use crate::source::{Contents, Format, Jsonl, JsonlOptions, Lines, RepeatedNames, open_plain};
use crate::spec::chain::{Chain, Context};
use crate::spec::columns::NamedFn;
use crate::spec::decode::{Decode, Fields};
use crate::spec::node::Node;

/// `jsonl: {paths: [a.jsonl, "b-*.jsonl"], columns: [text], repeated_names: last, index_cache: beside}`.
pub(super) fn jsonl(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let files = files(fields, context, Format::Jsonl, Format::JsonlStream)?;
    let (names, cache) = (repeated_names(fields)?, index_cache(fields, context)?);
    let columns: Option<Vec<String>> = fields.optional("columns")?;
    if context.is_draft {
        return unopened(fields, is_packed(&files));
    }
    let Some(contents) = open_plain(&files)? else {
        return jsonl_stream(fields, &files, columns, names);
    };
    refuse_lanes(fields)?;
    let options = || Jsonl::options().cache(cache.clone()).repeated_names(names);
    let source = match fields.node("columns") {
        Some(node) => chosen(node, context, options, &contents)?,
        None => options().open_contents(contents)?,
    };
    Ok(Chain::Map(Source::new(source).boxed()))
}

/// The files of text, compressed or not: compressed ones have no random access, they are read as streams.
fn files(fields: &Fields<'_>, context: &Context, plain: Format, packed: Format) -> Result<Vec<PathBuf>> {
    let endings = [packed.endings(), plain.endings()].concat();
    super::found(paths(fields.required_node("paths")?, context)?, &endings, context)
}

/// `repeated_names: last` or `error`: what becomes of a record in which an object has a name twice.
fn repeated_names(fields: &Fields<'_>) -> Result<RepeatedNames> {
    let choice = fields.choice("repeated_names", &["last", "error"])?;
    Ok(if choice == Some(1) { RepeatedNames::Error } else { RepeatedNames::Last })
}

#[cfg(feature = "compress")]
fn jsonl_stream(
    fields: &Fields<'_>,
    files: &[PathBuf],
    columns: Option<Vec<String>>,
    names: RepeatedNames,
) -> Result<Chain> {
    let mut options = crate::source::StreamOptions::new().repeated_names(names);
    if let Some(columns) = columns {
        options = options.columns(columns);
    }
    packed(fields, files, |files| Ok(options.clone().jsonl(files)?.boxed()))
}

#[cfg(feature = "compress")]
fn line_stream(fields: &Fields<'_>, files: &[PathBuf], column: &str) -> Result<Chain> {
    packed(fields, files, |files| {
        let lines = crate::source::StreamOptions::new().lines(files)?;
        Ok(to_element(column).after(lines).boxed())
    })
}

/// One stream of all files; or, with `lanes: 8`, eight of every eighth each.
#[cfg(feature = "compress")]
fn packed(
    fields: &Fields<'_>,
    files: &[PathBuf],
    stream: impl Fn(&[PathBuf]) -> Result<crate::dataset::BoxIter<Element>>,
) -> Result<Chain> {
    let Some(count) = fields.at_least("lanes", 1)? else { return Ok(Chain::Iter(stream(files)?)) };
    super::lanes_of(files, count, stream)
}

#[cfg(not(feature = "compress"))]
fn jsonl_stream(_: &Fields<'_>, _: &[PathBuf], _: Option<Vec<String>>, _: RepeatedNames) -> Result<Chain> {
    Err(Format::JsonlStream.lacking())
}

#[cfg(not(feature = "compress"))]
fn line_stream(_: &Fields<'_>, _: &[PathBuf], _: &str) -> Result<Chain> {
    Err(Format::LineStream.lacking())
}

/// Only some columns. If the first record cannot be read that way, its own columns say whether a name is wrong.
fn chosen(node: &Node, context: &Context, options: impl Fn() -> JsonlOptions, contents: &Contents) -> Result<Jsonl> {
    let columns = Vec::<String>::decode(node)?;
    let open = |options: JsonlOptions| options.open_contents(contents.clone());
    let source = open(options().columns(&columns)).map_err(|e| e.line(node.line as u64))?;
    if source.is_empty() || source.read(0).is_ok() {
        return Ok(source);
    }
    if let Ok(first) = open(options())?.read(0) {
        let columns = Some(first.iter().map(|(name, _)| name.to_owned()).collect());
        Context { columns, ..Context::new(context.folder.clone()) }.columns_in(node)?;
    }
    Ok(source)
}

/// `lines: {paths: a.txt, column: text}`: a column of text, a line a record.
pub(super) fn lines(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let files = files(fields, context, Format::Lines, Format::LineStream)?;
    let column = fields.or("column", "text".to_owned())?;
    let blank_lines = fields.or("blank_lines", false)?;
    let options = Lines::options().cache(index_cache(fields, context)?).blank_lines(blank_lines);
    if context.is_draft {
        return unopened(fields, is_packed(&files));
    }
    let Some(contents) = open_plain(&files)? else {
        if blank_lines {
            return Err(fields.error("`blank_lines` is for files that are not compressed: a stream leaves them out"));
        }
        return line_stream(fields, &files, &column);
    };
    refuse_lanes(fields)?;
    Ok(Chain::Map(line_elements(options.open_contents(contents)?, &column)))
}

/// Lines as elements of one column.
fn line_elements(source: Lines, column: &str) -> BoxMap<Element> {
    to_element(column).after(Source::new(source)).boxed()
}

/// A line as an element of one column of text.
fn to_element(column: &str) -> NamedFn<String> {
    let name = column.to_owned();
    NamedFn::map("to_element", name.clone(), move |line: String| Ok(Element::new().with(&name, line.as_str())))
}
