//! Sources that read files.

mod arrays;
#[cfg(feature = "arrow")]
mod arrow;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(any(feature = "array_record", feature = "bagz", feature = "tf_record"))]
mod records;
#[cfg(any(feature = "mds", feature = "webdataset"))]
mod shards;
mod text;
mod tokens;
mod unopened;
mod whole;

use std::path::PathBuf;

use self::unopened::{found, is_packed, unopened, unopened_map};
use super::chain::{Chain, Context, missing};
use super::decode::{Decode, Fields};
use super::entry::SourceEntry;
use super::node::Node;
use crate::dataset::BoxIter;
use crate::element::Element;
use crate::error::Result;
use crate::place;
use crate::source::{IndexCache, TokenLayout};

pub(super) const SOURCES: &[SourceEntry] = &[
    SourceEntry::new("jsonl", Some("paths"), text::jsonl).chooses("columns"),
    SourceEntry::new("lines", Some("paths"), text::lines),
    #[cfg(feature = "csv")]
    SourceEntry::new("csv", Some("paths"), csv::csv).chooses("columns"),
    #[cfg(not(feature = "csv"))]
    SourceEntry::lacking("csv", crate::source::Format::Csv),
    #[cfg(feature = "parquet")]
    SourceEntry::new("parquet", Some("paths"), parquet::parquet).chooses("columns"),
    #[cfg(not(feature = "parquet"))]
    SourceEntry::lacking("parquet", crate::source::Format::Parquet),
    #[cfg(feature = "arrow")]
    SourceEntry::new("arrow", Some("paths"), arrow::arrow).chooses("columns"),
    #[cfg(not(feature = "arrow"))]
    SourceEntry::lacking("arrow", crate::source::Format::Arrow),
    #[cfg(feature = "array_record")]
    SourceEntry::new("array_record", Some("paths"), records::array_record),
    #[cfg(not(feature = "array_record"))]
    SourceEntry::lacking("array_record", crate::source::Format::ArrayRecord),
    #[cfg(feature = "tf_record")]
    SourceEntry::new("tfrecord", Some("paths"), records::tfrecord),
    #[cfg(not(feature = "tf_record"))]
    SourceEntry::lacking("tfrecord", crate::source::Format::TfRecord),
    #[cfg(feature = "bagz")]
    SourceEntry::new("bagz", Some("paths"), records::bagz),
    #[cfg(not(feature = "bagz"))]
    SourceEntry::lacking("bagz", crate::source::Format::Bagz),
    #[cfg(feature = "webdataset")]
    SourceEntry::new("webdataset", Some("paths"), shards::webdataset).chooses("columns"),
    #[cfg(not(feature = "webdataset"))]
    SourceEntry::lacking("webdataset", crate::source::Format::WebDataset),
    #[cfg(feature = "mds")]
    SourceEntry::new("mds", Some("paths"), shards::mds).chooses("columns"),
    #[cfg(not(feature = "mds"))]
    SourceEntry::lacking("mds", crate::source::Format::Mds),
    SourceEntry::new("npy", Some("paths"), arrays::npy),
    #[cfg(feature = "compress")]
    SourceEntry::new("npz", Some("paths"), arrays::npz),
    #[cfg(not(feature = "compress"))]
    SourceEntry::lacking("npz", crate::source::Format::Npz),
    #[cfg(feature = "safetensors")]
    SourceEntry::new("safetensors", Some("paths"), arrays::safetensors).chooses("columns"),
    #[cfg(not(feature = "safetensors"))]
    SourceEntry::lacking("safetensors", crate::source::Format::Safetensors),
    SourceEntry::new("megatron", Some("paths"), tokens::megatron),
    SourceEntry::new("tokens", Some("paths"), tokens::tokens),
    SourceEntry::new("crops", Some("paths"), tokens::crops),
    SourceEntry::new("random_crops", Some("paths"), tokens::random_crops),
];

/// Where there is random access, lanes are nothing but another order.
fn refuse_lanes(fields: &Fields<'_>) -> Result<()> {
    match fields.node("lanes") {
        Some(node) => Err(node.error("these files have random access, and lanes are for `.gz`, `.zst` and `.lz4`").help(
            "leave it out: whoever evaluates the pipeline reads anywhere in them; or name `lanes` as the source, with `parts`",
        )),
        None => Ok(()),
    }
}

/// So many streams, each of every so-manieth file.
#[cfg_attr(not(feature = "compress"), allow(dead_code, reason = "for what has no random access"))]
fn lanes_of(files: &[PathBuf], count: u64, stream: impl Fn(&[PathBuf]) -> Result<BoxIter<Element>>) -> Result<Chain> {
    let lanes = (0..files.len()).take(usize::try_from(count).unwrap_or(usize::MAX));
    let lane = |first| stream(&files.iter().skip(first).step_by(count as usize).cloned().collect::<Vec<_>>());
    Ok(Chain::Lanes(lanes.map(lane).collect::<Result<_>>()?, count as usize))
}

/// Paths, globs, folders and URLs, seen from here; a path that is no glob must exist.
fn paths(node: &Node, context: &Context) -> Result<Vec<PathBuf>> {
    paths_by(node, context, |path| vec![path])
}

/// The same, where a name may stand for other files.
fn paths_by(node: &Node, context: &Context, files: impl Fn(PathBuf) -> Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    let one = |node: &Node, path: PathBuf| {
        let is_pattern = place::is_remote(&path) || path.to_string_lossy().contains(['*', '?', '[', '{']);
        if is_pattern || path.exists() { Ok(path) } else { Err(missing(node, &path)) }
    };
    let mut all = Vec::new();
    for node in Vec::<Node>::decode(node)? {
        for path in files(context.resolve(&String::decode(&node)?)) {
            all.push(one(&node, path)?);
        }
    }
    Ok(all)
}

/// `index_cache: beside`, `off`, or a folder.
fn index_cache(fields: &Fields<'_>, context: &Context) -> Result<IndexCache> {
    Ok(match fields.optional::<String>("index_cache")?.as_deref() {
        None | Some("beside") => IndexCache::Beside,
        Some("off") => IndexCache::Off,
        Some(folder) => IndexCache::Folder(context.resolve(folder)),
    })
}

/// `layout: u16`: what files of bare token ids are.
fn layout(fields: &Fields<'_>) -> Result<TokenLayout> {
    let choice = fields.choice("layout", &TokenLayout::NAMES.map(|(name, _)| name))?;
    Ok(choice.map_or_else(TokenLayout::default, |at| TokenLayout::NAMES[at].1))
}
