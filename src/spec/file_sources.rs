//! Sources that read files.

use std::path::{Path, PathBuf};

use super::chain::{Chain, Context, missing};
use super::columns::NamedFn;
use super::decode::{Decode, Fields};
use super::entry::SourceEntry;
use super::node::Node;
#[cfg(feature = "compress")]
use crate::dataset::IterDataset;
use crate::dataset::map::{RandomAccess, Source};
use crate::dataset::{BoxMap, MapDataset};
use crate::element::Element;
#[cfg(any(feature = "array_record", feature = "tf_record"))]
use crate::element::{Buffer, Value};
use crate::error::Result;
#[cfg(not(all(feature = "compress", feature = "parquet", feature = "array_record", feature = "tf_record")))]
use crate::source::Format;
use crate::source::{IndexCache, Jsonl, JsonlOptions, Lines, Npy, TokenLayout, Tokens};

pub(super) const SOURCES: &[SourceEntry] = &[
    SourceEntry { name: "jsonl", main: Some("paths"), build: jsonl },
    SourceEntry { name: "lines", main: Some("paths"), build: lines },
    SourceEntry { name: "npy", main: Some("path"), build: npy },
    SourceEntry { name: "parquet", main: Some("paths"), build: parquet },
    SourceEntry { name: "array_record", main: Some("paths"), build: array_record },
    SourceEntry { name: "tfrecord", main: Some("paths"), build: tfrecord },
    SourceEntry { name: "crops", main: Some("paths"), build: crops },
    SourceEntry { name: "random_crops", main: Some("paths"), build: random_crops },
];

/// `jsonl: {paths: [a.jsonl, "b-*.jsonl"], columns: [text], index_cache: beside}`.
fn jsonl(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    if paths.iter().any(|path| is_packed(path)) {
        return jsonl_stream(fields, &paths);
    }
    refuse_lanes(fields)?;
    let cache = index_cache(fields, context)?;
    let options = || Jsonl::options().cache(cache.clone());
    let source = match fields.node("columns") {
        Some(node) => chosen(node, context, options, &paths)?,
        None => options().open(&paths)?,
    };
    Ok(Chain::Map(Source::new(source).boxed()))
}

/// Where there is random access, lanes are nothing but another order.
fn refuse_lanes(fields: &Fields<'_>) -> Result<()> {
    match fields.node("lanes") {
        Some(node) => Err(node.error("these files have random access, and lanes are for `.gz` and `.zst`").help(
            "leave it out: whoever evaluates the pipeline reads anywhere in them; or name `lanes` as the source, with `parts`",
        )),
        None => Ok(()),
    }
}

/// Compressed text has no random access: it is read as a stream.
fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "gz" || ending == "zst")
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
    lanes_of(&crate::source::find(paths, &[".gz", ".zst"])?, count, stream)
}

/// So many streams, each of every so-manieth file.
#[cfg(feature = "compress")]
fn lanes_of(
    files: &[PathBuf],
    count: u64,
    stream: impl Fn(&[PathBuf]) -> Result<crate::dataset::BoxIter<Element>>,
) -> Result<Chain> {
    let lanes = (0..files.len()).take(usize::try_from(count).unwrap_or(usize::MAX));
    let lane = |first| stream(&files.iter().skip(first).step_by(count as usize).cloned().collect::<Vec<_>>());
    Ok(Chain::Lanes(lanes.map(lane).collect::<Result<_>>()?, count as usize))
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
fn chosen(node: &Node, context: &Context, options: impl Fn() -> JsonlOptions, paths: &[PathBuf]) -> Result<Jsonl> {
    let columns = Vec::<String>::decode(node)?;
    let source = options().columns(&columns).open(paths).map_err(|e| e.line(node.line as u64))?;
    if source.is_empty() || source.read(0).is_ok() {
        return Ok(source);
    }
    if let Ok(first) = options().open(paths)?.read(0) {
        let columns = Some(first.iter().map(|(name, _)| name.to_owned()).collect());
        Context { columns, ..Context::new(context.folder.clone()) }.columns_in(node)?;
    }
    Ok(source)
}

/// `lines: {paths: a.txt, column: text}`: a column of text, a line a record.
fn lines(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    if paths.iter().any(|path| is_packed(path)) {
        return line_stream(fields, &paths);
    }
    refuse_lanes(fields)?;
    let options = Lines::options().cache(index_cache(fields, context)?);
    let source = options.blank_lines(fields.or("blank_lines", false)?).open(&paths)?;
    Ok(Chain::Map(line_elements(source, &fields.or("column", "text".to_owned())?)))
}

/// Lines as elements of one column.
pub(super) fn line_elements(source: Lines, column: &str) -> BoxMap<Element> {
    to_element(column).after(Source::new(source)).boxed()
}

/// A line as an element of one column of text.
pub(super) fn to_element(column: &str) -> NamedFn<String> {
    let name = column.to_owned();
    NamedFn::map("to_element", name.clone(), move |line: String| Ok(Element::new().with(&name, line.as_str())))
}

/// `npy: {path: a.npy, field: data}`: rows along the first dimension.
fn npy(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let path = context.existing(fields.required_node("path")?)?;
    let source = Npy::open(&path)?.field(fields.or("field", "data".to_owned())?);
    Ok(Chain::Map(Source::new(source).boxed()))
}

/// `parquet: {paths: "data-*.parquet", columns: [text], cache_bytes: 268435456}`.
#[cfg(feature = "parquet")]
fn parquet(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    use crate::source::Parquet;
    let paths = paths(fields.required_node("paths")?, context)?;
    let mut options = Parquet::options();
    if let Some(bytes) = fields.optional("cache_bytes")? {
        options = options.cache_bytes(bytes);
    }
    if let Some(node) = fields.node("columns") {
        let columns = Parquet::open(&paths)?.columns().map(str::to_owned).collect();
        let known = Context { columns: Some(columns), ..Context::new(context.folder.clone()) };
        options = options.columns(known.columns_in(node)?);
    }
    Ok(Chain::Map(Source::new(options.open(&paths)?).boxed()))
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Fields<'_>, _: &Context) -> Result<Chain> {
    Err(Format::Parquet.lacking())
}

/// `array_record: {paths: "train-*.array_record", field: record}`: elements of one field of bytes.
#[cfg(feature = "array_record")]
fn array_record(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    let mut options = crate::source::ArrayRecord::options();
    if let Some(bytes) = fields.optional("cache_bytes")? {
        options = options.cache_bytes(bytes);
    }
    let source = options.open(&paths)?;
    Ok(Chain::Map(record_elements(source, &fields.or("field", RECORD.to_owned())?)))
}

#[cfg(not(feature = "array_record"))]
fn array_record(_: &Fields<'_>, _: &Context) -> Result<Chain> {
    Err(Format::ArrayRecord.lacking())
}

/// `tfrecord: {paths: "train-*.tfrecord", field: record}`: the same; compressed files are a stream.
#[cfg(feature = "tf_record")]
fn tfrecord(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    use crate::source::{TfRecord, find};
    let files = find(paths(fields.required_node("paths")?, context)?, &TF_RECORD)?;
    let field = fields.or("field", RECORD.to_owned())?;
    #[cfg(feature = "compress")]
    if files.iter().any(|file| is_compressed(file)) {
        let Some(count) = fields.at_least("lanes", 1)? else { return Ok(Chain::Iter(record_stream(&files, &field)?)) };
        return lanes_of(&files, count, |files| record_stream(files, &field));
    }
    refuse_lanes(fields)?;
    let source = TfRecord::options().cache(index_cache(fields, context)?).open(&files)?;
    Ok(Chain::Map(record_elements(source, &field)))
}

#[cfg(not(feature = "tf_record"))]
fn tfrecord(_: &Fields<'_>, _: &Context) -> Result<Chain> {
    Err(Format::TfRecord.lacking())
}

/// What a TFRecord file is compressed by is not always part of its name.
#[cfg(all(feature = "tf_record", feature = "compress"))]
pub(super) fn is_compressed(file: &Path) -> bool {
    matches!(crate::source::detect(file), Ok(crate::source::Format::TfRecordStream))
}

/// Endings of TFRecord files.
#[cfg(feature = "tf_record")]
const TF_RECORD: [&str; 4] = [".tfrecord.gz", ".tfrecords.gz", ".tfrecord", ".tfrecords"];

/// Records of compressed files as elements of one field.
#[cfg(all(feature = "tf_record", feature = "compress"))]
pub(super) fn record_stream(files: &[PathBuf], field: &str) -> Result<crate::dataset::BoxIter<Element>> {
    Ok(to_record(field).after(crate::source::TfRecordStream::open(files)?).boxed())
}

/// The field that holds a record of bytes, unless it is given another name.
#[cfg(any(feature = "array_record", feature = "tf_record"))]
pub(super) const RECORD: &str = "record";

/// Records of bytes as elements of one field.
#[cfg(any(feature = "array_record", feature = "tf_record"))]
pub(super) fn record_elements(source: impl RandomAccess<Record = Buffer> + 'static, field: &str) -> BoxMap<Element> {
    to_record(field).after(Source::new(source)).boxed()
}

/// Bytes as an element of one field.
#[cfg(any(feature = "array_record", feature = "tf_record"))]
fn to_record(field: &str) -> NamedFn<Buffer> {
    let name = field.to_owned();
    let element = move |record: Buffer| Ok(Element::with_capacity(1).with(&name, Value::Bytes(record)));
    NamedFn::map("to_element", field.to_owned(), element)
}

/// `crops: {paths: train.bin, seq_len: 1024, layout: u16}`: pre-tokenised ids, one crop after the other.
fn crops(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let crops = tokens(fields, context)?.crops(fields.required("seq_len")?);
    Ok(Chain::Map(crops.with_next(fields.or("with_next", false)?).boxed()))
}

/// `random_crops: {paths: train.bin, seq_len: 1024, seed: 1}`: crops that start anywhere, without end.
fn random_crops(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let crops = tokens(fields, context)?.random_crops(fields.required("seq_len")?, fields.required("seed")?);
    let crops = crops.with_next(fields.or("with_next", false)?);
    Ok(Chain::Map(match fields.optional("epoch")? {
        Some(count) => crops.epoch(count).boxed(),
        None => crops.boxed(),
    }))
}

fn tokens(fields: &Fields<'_>, context: &Context) -> Result<Tokens> {
    let paths = paths(fields.required_node("paths")?, context)?;
    let choice = fields.choice("layout", &TokenLayout::NAMES.map(|(name, _)| name))?;
    let layout = choice.map_or_else(TokenLayout::default, |at| TokenLayout::NAMES[at].1);
    Tokens::open(&paths, layout)
}

/// Paths, globs and folders, seen from here; one that is no glob must exist.
fn paths(node: &Node, context: &Context) -> Result<Vec<PathBuf>> {
    let one = |node: &Node| {
        let path = context.resolve(&String::decode(node)?);
        let is_glob = path.to_string_lossy().contains(['*', '?', '[']);
        if is_glob || path.exists() { Ok(path) } else { Err(missing(node, &path)) }
    };
    Vec::<Node>::decode(node)?.iter().map(one).collect()
}

/// `index_cache: beside`, `off`, or a folder.
fn index_cache(fields: &Fields<'_>, context: &Context) -> Result<IndexCache> {
    Ok(match fields.optional::<String>("index_cache")?.as_deref() {
        None | Some("beside") => IndexCache::Beside,
        Some("off") => IndexCache::Off,
        Some(folder) => IndexCache::Folder(context.resolve(folder)),
    })
}
