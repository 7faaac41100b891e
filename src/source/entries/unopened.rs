//! Stand-in for a source while a pipeline file is checked, before anything is opened.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::prelude::*;
use crate::dataset::Blocks;
use crate::dataset::entry::chain::Context;
use crate::dataset::map::RandomAccess;
use crate::declare::values::AtLeast;
use crate::error::Error;
use crate::source::files::locate;
use crate::source::signs::{compression, may_be_zlib};
use crate::source::stdin::is_piped;

/// Files that exist, and are not opened.
struct Unopened;

impl RandomAccess for Unopened {
    type Record = Element;

    /// Returns a count above every index that may exist.
    fn len(&self) -> u64 {
        1 << 40
    }

    /// Returns a block, because files of most formats have blocks.
    fn blocks(&self) -> Option<Blocks> {
        Blocks::of([self.len()])
    }

    fn read(&self, _: u64) -> Result<Element> {
        Err(Error::config("a pipeline that is only checked has no records"))
    }
}

/// Makes a stand-in for files that are read by number.
pub(super) fn unopened_map() -> BoxMap<Element> {
    Source::new(Unopened).boxed()
}

fn unopened_iter() -> BoxIter<Element> {
    Chain::Map(unopened_map()).into_iter()
}

/// Makes a source that is not opened: a stream with these lanes if the files are `packed`.
pub(super) fn unopened(lanes: &Lanes, packed: bool) -> Result<Chain> {
    let lanes = lanes.as_ref().map(Given::get).transpose()?;
    Ok(match (packed, lanes) {
        (true, Some(AtLeast(count))) => {
            Chain::Lanes(vec![unopened_iter()], usize::try_from(count).unwrap_or(usize::MAX))
        }
        (true, None) => Chain::Iter(unopened_iter()),
        (false, _) => Chain::Map(unopened_map()),
    })
}

/// Returns true if a file is certainly a stream: standard input, or a local file with the extension and the first bytes of a codec. Files in
/// stores are not read.
pub(super) fn is_packed(files: &[Location]) -> bool {
    let is_named = |file: &&Location| {
        let ending = file.as_ref().extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| ["gz", "zst", "lz4", "zlib"].contains(&ending)) && !file.is_object()
    };
    files.iter().any(|file| is_piped(file.as_ref()))
        || files.iter().find(is_named).is_some_and(|file| has_magic(file.as_ref()))
}

/// Returns true if a file begins with the magic number of a codec.
fn has_magic(file: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && (compression(&head).is_some() || may_be_zlib(&head))
}

/// Returns the files of paths by [`locate`]. A check of a pipeline file sends no request to a store.
pub(super) fn found(paths: Paths, endings: &[&str], context: &Context) -> Result<Vec<Location>> {
    let is_unknown = context.is_draft && paths.all.iter().any(Location::is_object);
    if is_unknown { Ok(paths.all) } else { locate(paths, endings) }
}
