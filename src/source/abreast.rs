//! Parallel work on many files. Files in object stores use a thread for each concurrent request.

use super::content::{Content, Contents};
use crate::cores;
use crate::error::Result;
use crate::place::Location;

/// Returns the number of threads for reading the beginnings and ends of files: the number of concurrent requests if a
/// file is in a store. Returns 0 if all files are local: a thread per core is enough.
pub(crate) fn ends<'a>(files: impl IntoIterator<Item = &'a Location>) -> usize {
    if files.into_iter().any(Location::is_object) { crate::store::abreast(0) } else { 0 }
}

/// Returns the number of threads for reading files whole. The number is lower if the largest objects would exceed the
/// memory for blocks.
pub(crate) fn whole(files: &Contents) -> usize {
    let far = files.iter().filter(|(file, _)| file.is_object());
    far.map(|(_, content)| content.len()).max().map_or(0, crate::store::abreast)
}

/// Runs `work` on each open file, in parallel. `work` reads beginnings and ends of files.
pub(crate) fn try_each<R: Send>(
    contents: Contents,
    work: impl Fn((Location, Content)) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    cores::try_map_on(ends(contents.iter().map(|(file, _)| file)), contents, work)
}
