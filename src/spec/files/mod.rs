//! Sources that read files.

mod arrays;
#[cfg(feature = "arrow")]
mod arrow;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "compress")]
mod npz;
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

use std::path::{Path, PathBuf};

use self::unopened::{found, is_packed, unopened, unopened_map};
use super::arguments::Kind;
use super::build::{Of, Site};
use super::chain::{Chain, Context, missing};
use super::entry::SourceEntry;
use super::node::Node;
use super::values::{AtLeast, Decode, Given};
use crate::dataset::{BoxIter, BoxMap};
use crate::element::Element;
use crate::error::Result;
use crate::place::Location;
use crate::source::{Contents, Format, IndexCache, Patterns, Shards};

/// Makes an entry of each line, with the missing feature if this build lacks the format.
macro_rules! sources {
    ($($doc:literal $name:literal $(if $feature:literal)? = $build:path $(, chooses $columns:literal)?;)*) => {
        pub(super) const SOURCES: &[SourceEntry] = &[$(
            $(#[cfg(feature = $feature)])?
            SourceEntry::of_files($name, $doc, &Of($build))$(.chooses($columns))?,
            $(#[cfg(not(feature = $feature))] SourceEntry::lacking($name, $doc, $feature),)?
        )*];
    };
}

sources! {
    "Reads the records of JSON Lines files. Compressed files (`.gz`, `.zst`, `.lz4`) are a stream."
    "jsonl" = text::jsonl, chooses "columns";
    "Reads the lines of text files, without line ends. Compressed files (`.gz`, `.zst`, `.lz4`) are a stream."
    "lines" = text::lines;
    "Reads the records of CSV files. Compressed files (`.gz`, `.zst`, `.lz4`) are a stream."
    "csv" if "csv" = csv::csv, chooses "columns";
    "Reads the rows of Parquet files."
    "parquet" if "parquet" = parquet::parquet, chooses "columns";
    "Reads the rows of files of Arrow IPC (Feather) and its streams, and of folders that `datasets.save_to_disk` wrote."
    "arrow" if "arrow" = arrow::arrow, chooses "columns";
    "Reads the records of ArrayRecord files."
    "array_record" if "array_record" = records::array_record;
    "Reads the records of TFRecord files. Compressed files (`.gz`, `.zlib`) are a stream."
    "tfrecord" if "tf_record" = records::tfrecord;
    "Reads the records of Bagz files; `x@4.bagz` names four files."
    "bagz" if "bagz" = records::bagz;
    "Reads the samples of WebDataset's tar shards: `__key__` and a column for each extension. Compressed shards are a stream."
    "webdataset" if "webdataset" = shards::webdataset, chooses "columns";
    "Reads the samples of MDS folders, as MosaicML's streaming has them."
    "mds" if "mds" = shards::mds, chooses "columns";
    "Reads the rows of `.npy` files along their first dimension."
    "npy" = arrays::npy;
    "Reads the arrays of `.npz` archives: a record for each archive, or for each row of its arrays."
    "npz" if "compress" = npz::npz;
    "Reads the tensors of safetensors files: a record for each file, or for each row of its tensors."
    "safetensors" if "safetensors" = arrays::safetensors, chooses "columns";
    "Reads the token ids of Megatron's indexed datasets."
    "megatron" = tokens::megatron;
    "Reads files of token ids: a record for each file, all of its ids."
    "tokens" = tokens::tokens;
    "Reads files of token ids, one crop after the other."
    "crops" = tokens::crops;
    "Reads files of token ids, crops that start anywhere."
    "random_crops" = tokens::random_crops;
}

/// Lanes that compressed files are read as.
type Lanes = Option<Given<AtLeast<1>>>;

/// Makes a source of random access; while a pipeline is only checked, a stand-in for it.
fn by_number(at: &Site<'_>, open: impl FnOnce() -> Result<BoxMap<Element>>) -> Result<Chain> {
    Ok(Chain::Map(if at.is_draft { unopened_map() } else { open()? }))
}

/// Makes a source of random access of the contents that `open` has of `files`; where it has none, as files are compressed, streams of them.
fn by_number_or_streams(
    files: &[Location],
    lanes: &Lanes,
    at: &Site<'_>,
    open: impl FnOnce(&[Location]) -> Result<Option<Contents>>,
    by_number: impl FnOnce(Contents) -> Result<BoxMap<Element>>,
    stream: impl Fn(&[Location]) -> Result<BoxIter<Element>>,
) -> Result<Chain> {
    if at.is_draft {
        return unopened(lanes, is_packed(files));
    }
    let Some(contents) = open(files)? else { return streams(files, lanes, stream) };
    refuse_lanes(lanes)?;
    by_number(contents).map(Chain::Map)
}

/// Refuses lanes of files with random access, which would only change the order.
fn refuse_lanes(lanes: &Lanes) -> Result<()> {
    match lanes {
        Some(node) => {
            Err(node.error("these files have random access, and lanes are for `.gz`, `.zst` and `.lz4`").help(
                "omit it, since any position of these files can be read; or name `lanes` as the source, with `parts`",
            ))
        }
        None => Ok(()),
    }
}

/// Makes one stream of all files; or, with `lanes: 8`, eight of every eighth each.
fn streams(
    files: &[Location],
    lanes: &Lanes,
    stream: impl Fn(&[Location]) -> Result<BoxIter<Element>>,
) -> Result<Chain> {
    let Some(lanes) = lanes else { return Ok(Chain::Iter(stream(files)?)) };
    let AtLeast(count) = lanes.get()?;
    let lane = |first| stream(&files.iter().skip(first).step_by(count as usize).cloned().collect::<Vec<_>>());
    let firsts = (0..files.len()).take(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(Chain::Lanes(firsts.map(lane).collect::<Result<_>>()?, count as usize))
}

/// Paths, globs, folders and URLs, seen from here; a path that is no glob must exist.
fn paths(node: &Node, context: &Context) -> Result<Paths> {
    paths_by(node, context, |path| vec![path])
}

/// Files of the formats that a source reads, compressed files included.
fn files_of(source: &str, given: &Node, context: &Context) -> Result<Vec<Location>> {
    found(paths(given, context)?, &Format::endings_of(source), context)
}

/// Paths as of [`paths`], in which a name may represent other files.
fn paths_by(node: &Node, context: &Context, files: impl Fn(Location) -> Vec<Location>) -> Result<Paths> {
    let one = |node: &Node, file: Location| {
        let is_pattern = file.as_ref().to_string_lossy().contains(['*', '?', '[', '{']);
        if is_pattern || file.may_exist() { Ok(file) } else { Err(missing(node, file.as_ref())) }
    };
    let mut all = Vec::new();
    for node in Vec::<Node>::decode(node)? {
        for file in files(context.resolve(&String::decode(&node)?)) {
            all.push(one(&node, file)?);
        }
    }
    Ok(Paths { all, shards: context.shards.clone() })
}

/// Paths, globs, folders and URLs of a source, and the shards that it leaves out.
struct Paths {
    all: Vec<Location>,
    shards: Shards,
}

impl Patterns for Paths {
    fn patterns(&self) -> Vec<PathBuf> {
        self.all.patterns()
    }

    fn leaves_out(&self, file: &Path) -> bool {
        self.shards.leaves_out(file)
    }
}

/// Place of the positions of records: `beside` the file, `off`, or a folder.
struct CacheArg(String);

impl Decode for CacheArg {
    const KIND: Kind = Kind::Either(&[Kind::Words(&["beside", "off"]), Kind::Path]);

    fn decode(node: &Node) -> Result<Self> {
        String::decode(node).map(Self)
    }
}

impl CacheArg {
    fn of(self, context: &Context) -> IndexCache {
        match self.0.as_str() {
            "beside" => IndexCache::Beside,
            "off" => IndexCache::Off,
            folder => IndexCache::Folder(context.resolve(folder).into_path()),
        }
    }
}
