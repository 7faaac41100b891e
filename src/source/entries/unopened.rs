//! Stand-in for a source while a pipeline file is checked, before anything is opened.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::prelude::*;
use crate::dataset::Blocks;
use crate::dataset::map::RandomAccess;
use crate::declare::chain::Context;
use crate::declare::values::AtLeast;
use crate::error::Error;
use crate::source::files::locate;
use crate::source::stdin::is_piped;

/// Files of which nothing is known but that they are there.
struct Unopened;

impl RandomAccess for Unopened {
    type Record = Element;

    /// Returns a count above every index that may exist.
    fn len(&self) -> u64 {
        1 << 40
    }

    /// Some, as files of most formats have.
    fn blocks(&self) -> Option<Blocks> {
        Blocks::of([self.len()])
    }

    fn read(&self, _: u64) -> Result<Element> {
        Err(Error::config("a pipeline that is only checked has no records"))
    }
}

/// Files that can be read by number, as far as it is known.
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

/// Whether a file is surely a stream: standard input is, and a file whose name and first bytes are those of a codec. Of files far away nothing is
/// read.
pub(super) fn is_packed(files: &[Location]) -> bool {
    let is_named = |file: &&Location| {
        let ending = file.as_ref().extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| ["gz", "zst", "lz4", "zlib"].contains(&ending)) && !file.is_object()
    };
    files.iter().any(|file| is_piped(file.as_ref()))
        || files.iter().find(is_named).is_some_and(|file| has_magic(file.as_ref()))
}

/// Whether a file begins as gzip, zlib, zstd or LZ4 do.
fn has_magic(file: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut head));
    let is_zlib = head[0] & 15 == 8 && u16::from_be_bytes([head[0], head[1]]).is_multiple_of(31);
    let magics = [&[0x1f, 0x8b][..], &[0x28, 0xb5, 0x2f, 0xfd], &[0x04, 0x22, 0x4d, 0x18]];
    read.is_ok() && (is_zlib || magics.iter().any(|magic| head.starts_with(magic)))
}

/// The files of paths, as of [`locate`]. A check of a pipeline file sends no request to a store.
pub(super) fn found(paths: Paths, endings: &[&str], context: &Context) -> Result<Vec<Location>> {
    let is_unknown = context.is_draft && paths.all.iter().any(Location::is_object);
    if is_unknown { Ok(paths.all) } else { locate(paths, endings) }
}
