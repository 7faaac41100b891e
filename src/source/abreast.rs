//! Work with many files at a time. Files of stores have as many threads as requests may be in flight.
#![cfg_attr(not(feature = "formats"), allow(dead_code, reason = "what all formats share, no one format needs whole"))]

use super::content::{Content, Contents};
use crate::cores;
use crate::error::Result;
use crate::place::Location;

/// Returns the number of threads that read the beginnings and ends of files: the number of requests if a file lies in a store.
pub(crate) fn ends<'a>(files: impl IntoIterator<Item = &'a Location>) -> usize {
    if files.into_iter().any(Location::is_object) { requests_abreast(0) } else { 0 }
}

/// Returns the number of threads that read files whole: fewer if the largest files have no room in the memory for blocks.
pub(crate) fn whole(files: &Contents) -> usize {
    let far = files.iter().filter(|(file, _)| file.is_object());
    far.map(|(_, content)| content.len()).max().map_or(0, requests_abreast)
}

/// Does `work` with each of these open files, many at a time. The work reads the beginnings and ends of files.
pub(crate) fn try_each<R: Send>(
    contents: Contents,
    work: impl Fn((Location, Content)) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    cores::try_map_on(ends(contents.iter().map(|(file, _)| file)), contents, work)
}

#[cfg(feature = "store")]
fn requests_abreast(bytes: u64) -> usize {
    crate::store::abreast(bytes)
}

#[cfg(not(feature = "store"))]
fn requests_abreast(_: u64) -> usize {
    0
}
