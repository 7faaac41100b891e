//! Helpers of the entries by which pipeline files name formats: paths, lanes, and stand-ins while a file is only checked.

pub(super) mod prelude;
mod unopened;
mod whole;

use std::path::Path;

use self::prelude::*;
use self::unopened::{found, is_packed, unopened, unopened_map};
pub(super) use self::whole::Whole;
use super::{Contents, Format, IndexCache, Patterns, Shards};
use crate::dataset::entry::chain::{Context, missing};
use crate::declare::values::{AtLeast, decode_as};

/// Number of lanes in which compressed files are read.
pub(super) type Lanes = Option<Given<AtLeast<1>>>;

/// Makes a source of random access, or a stand-in if the pipeline is only checked.
pub(super) fn by_number(at: &Site<'_>, open: impl FnOnce() -> Result<BoxMap<Element>>) -> Result<Chain> {
    Ok(Chain::Map(if at.is_draft { unopened_map() } else { open()? }))
}

/// Makes a source of random access from the contents that `open` returns for `files`. `open` returns `None` if files are compressed; the
/// source then consists of streams.
pub(super) fn by_number_or_streams(
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

/// Refuses lanes for files with random access, because lanes would only change the order.
fn refuse_lanes(lanes: &Lanes) -> Result<()> {
    if let Some(node) = lanes {
        Err(node.error("these files have random access, and lanes are for `.gz`, `.zst` and `.lz4`").help(
            "omit it, since any position of these files can be read; or name `lanes` as the source, with `parts`",
        ))
    } else {
        Ok(())
    }
}

/// Makes a single stream of all files. With `lanes: 8`, makes eight streams, each of every eighth file.
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

/// Resolves paths, globs, folders and URLs. A path that is not a glob must exist.
pub(super) fn paths(node: &Node, context: &Context) -> Result<Paths> {
    paths_by(node, context, |path| vec![path])
}

/// Finds the files of all formats that a source reads, compressed files included.
pub(super) fn files_of(source: &str, given: &Node, context: &Context) -> Result<Vec<Location>> {
    found(paths(given, context)?, &Format::endings_of(source), context)
}

/// Resolves paths like [`paths`]; `files` replaces each name by the files that it represents.
pub(super) fn paths_by(node: &Node, context: &Context, files: impl Fn(Location) -> Vec<Location>) -> Result<Paths> {
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

/// Paths, globs, folders and URLs of a source, and the shards that the source skips.
pub(super) struct Paths {
    pub(super) all: Vec<Location>,
    pub(super) shards: Shards,
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
pub(super) struct CacheArg(String);

decode_as!(CacheArg, Kind::Either(&[Kind::Words(&["beside", "off"]), Kind::Path]), |node| {
    String::decode(node).map(Self)
});

impl CacheArg {
    pub(super) fn of(self, context: &Context) -> IndexCache {
        match self.0.as_str() {
            "beside" => IndexCache::Beside,
            "off" => IndexCache::Off,
            folder => IndexCache::Folder(context.resolve(folder).into_path()),
        }
    }
}
