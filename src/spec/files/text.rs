//! Text: lines and JSON Lines, compressed ones as streams.

use std::path::PathBuf;

use super::{index_cache, paths, refuse_lanes};
#[cfg(feature = "compress")]
use crate::dataset::IterDataset;
use crate::dataset::map::{RandomAccess, Source};
use crate::dataset::{BoxMap, MapDataset};
use crate::element::Element;
use crate::error::Result;
use crate::source::{Contents, Format, Jsonl, JsonlOptions, Lines, find, open_plain};
use crate::spec::chain::{Chain, Context};
use crate::spec::columns::NamedFn;
use crate::spec::decode::{Decode, Fields};
use crate::spec::node::Node;

/// `jsonl: {paths: [a.jsonl, "b-*.jsonl"], columns: [text], index_cache: beside}`.
pub(super) fn jsonl(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    let Some(contents) = plain(&paths, Format::Jsonl, Format::JsonlStream)? else {
        return jsonl_stream(fields, &paths);
    };
    refuse_lanes(fields)?;
    let cache = index_cache(fields, context)?;
    let options = || Jsonl::options().cache(cache.clone());
    let source = match fields.node("columns") {
        Some(node) => chosen(node, context, options, &contents)?,
        None => options().open_contents(contents)?,
    };
    Ok(Chain::Map(Source::new(source).boxed()))
}

/// The files, opened; or nothing: compressed text has no random access, it is read as a stream.
fn plain(paths: &[PathBuf], plain: Format, packed: Format) -> Result<Option<Contents>> {
    let endings = [packed.endings(), plain.endings()].concat();
    open_plain(&find(paths, &endings)?)
}

#[cfg(feature = "compress")]
fn jsonl_stream(fields: &Fields<'_>, paths: &[PathBuf]) -> Result<Chain> {
    let mut options = crate::source::StreamOptions::new();
    if let Some(columns) = fields.optional::<Vec<String>>("columns")? {
        options = options.columns(columns);
    }
    packed(fields, paths, |paths| Ok(options.clone().jsonl(paths)?.boxed()))
}

#[cfg(feature = "compress")]
fn line_stream(fields: &Fields<'_>, paths: &[PathBuf]) -> Result<Chain> {
    let column = fields.or("column", "text".to_owned())?;
    packed(fields, paths, |paths| {
        let lines = crate::source::StreamOptions::new().lines(paths)?;
        Ok(to_element(&column).after(lines).boxed())
    })
}

/// One stream of all files; or, with `lanes: 8`, eight of every eighth each.
#[cfg(feature = "compress")]
fn packed(
    fields: &Fields<'_>,
    paths: &[PathBuf],
    stream: impl Fn(&[PathBuf]) -> Result<crate::dataset::BoxIter<Element>>,
) -> Result<Chain> {
    let Some(count) = fields.at_least("lanes", 1)? else { return Ok(Chain::Iter(stream(paths)?)) };
    super::lanes_of(&crate::source::find(paths, &[".gz", ".zst", ".lz4"])?, count, stream)
}

#[cfg(not(feature = "compress"))]
fn jsonl_stream(_: &Fields<'_>, _: &[PathBuf]) -> Result<Chain> {
    Err(Format::JsonlStream.lacking())
}

#[cfg(not(feature = "compress"))]
fn line_stream(_: &Fields<'_>, _: &[PathBuf]) -> Result<Chain> {
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
    let paths = paths(fields.required_node("paths")?, context)?;
    let Some(contents) = plain(&paths, Format::Lines, Format::LineStream)? else {
        return line_stream(fields, &paths);
    };
    refuse_lanes(fields)?;
    let options = Lines::options().cache(index_cache(fields, context)?);
    let source = options.blank_lines(fields.or("blank_lines", false)?).open_contents(contents)?;
    Ok(Chain::Map(line_elements(source, &fields.or("column", "text".to_owned())?)))
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
