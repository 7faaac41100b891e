//! Listings of objects.

use std::path::Path;
use std::time::Instant;

use futures_util::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::{ObjectMeta, ObjectStoreExt};

use super::bucket::{Address, LONGEST};
use super::known;
use super::retry::{given_up, patiently};
use super::runtime;
use super::service::listing;
use crate::error::{Error, ErrorKind, Result};
use crate::place::{self, Location, is_skipped, none_in, of_endings, unsharded};
use crate::store::folder::Entry;
use crate::store::listed::{MANIFEST, listed};

/// Lists the objects that a URL names: an object, the matches of a glob, or the files of a folder.
///
/// For a folder, returns the objects directly in it whose names end with one of `extensions`, sorted. If there are
/// none, returns the matching objects of all folders below. Each object comes with its depth: the number of folders
/// between it and the listed folder. A name without an extension may be a folder.
pub(crate) fn find(url: &Path, extensions: &[&str]) -> Result<Vec<(Location, usize)>> {
    let given = |files: Vec<Location>| files.into_iter().map(|file| (file, 0)).collect();
    let text = url.to_str().unwrap_or_default();
    let is_web = place::scheme(url).is_some_and(place::is_web);
    // A query contains a question mark, and may contain any other character.
    let is_glob = |text: &str| !(is_web && text.contains('?')) && text.contains(['*', '?', '[']);
    if is_glob(text) {
        return by_glob(url, text).map(given);
    }
    let name = text.rsplit('/').next().unwrap_or_default();
    let ends = |name: &str| extensions.iter().any(|ending| name.ends_with(ending));
    let may_be_folder = place::may_be_folder(url) && !ends(name) && !unsharded(name).is_some_and(ends);
    if name.is_empty() || place::is_dataset(url) {
        return in_folder(url, extensions);
    }
    match may_be_folder.then(|| in_folder(url, extensions)) {
        Some(Ok(files)) => Ok(files),
        _ => Ok(given(vec![Location::Object(url.to_owned())])),
    }
}

/// Lists the objects directly in a folder, or in the folders below if there are none. A manifest replaces the listing.
fn in_folder(url: &Path, extensions: &[&str]) -> Result<Vec<(Location, usize)>> {
    let folder = Address::parse(url)?;
    let (children, has_folders) = children_and_folders(&folder)?;
    if children.iter().any(|meta| meta.location.filename() == Some(MANIFEST))
        && let Some(files) = listed(&Location::Object(url.to_owned()), extensions)?
    {
        return Ok(files.into_iter().map(|file| (file, 0)).collect());
    }
    let name = |meta: &ObjectMeta| meta.location.filename().unwrap_or_default().to_owned();
    let named = |metas: Vec<ObjectMeta>| metas.into_iter().map(|meta| (name(&meta), meta)).collect::<Vec<_>>();
    let mut found = of_endings(named(children), extensions, |(name, _)| name);
    let top = folder.key.parts().count() + 1;
    if found.is_empty() && has_folders {
        let below = descendants(&folder)?.into_iter();
        let is_data = |meta: &ObjectMeta| !meta.location.parts().skip(top - 1).any(|part| is_skipped(part.as_ref()));
        found = of_endings(named(below.filter(is_data).collect()), extensions, |(name, _)| name);
    }
    let depth = |meta: &ObjectMeta| meta.location.parts().count().saturating_sub(top);
    let now = Instant::now();
    let mut files: Vec<_> = found.into_iter().map(|(_, meta)| (located(&folder, &meta, now), depth(&meta))).collect();
    files.sort_unstable();
    let text = || none_in("no object in this folder", extensions);
    if files.is_empty() { Err(Error::new(ErrorKind::Io, text()).path(url)) } else { Ok(files) }
}

fn by_glob(url: &Path, text: &str) -> Result<Vec<Location>> {
    let at = text.find(['*', '?', '[']).unwrap_or(text.len());
    let folder = text[..at].rfind('/').map_or(at, |slash| slash + 1);
    let folder = Address::parse(Path::new(&text[..folder]))?;
    // The part after the scheme and the host.
    let pattern = text.splitn(4, '/').nth(3).unwrap_or_default();
    let options =
        MatchOptions { require_literal_separator: true, require_literal_leading_dot: true, ..MatchOptions::new() };
    let glob = Pattern::new(pattern).map_err(|e| Error::config(format!("not a glob: {}", e.msg)).path(url))?;
    // A recursive listing is needed only if the pattern contains a slash.
    let below = text[at..].contains('/');
    let metas = if below { descendants(&folder)? } else { children(&folder)? };
    let found = metas.into_iter().filter(|meta| glob.matches_with(meta.location.as_ref(), options));
    paths(&folder, found).ok_or_else(|| Error::new(ErrorKind::Io, "no object matches the pattern").path(url))
}

/// Returns the location of an object listed at `now`, and caches its facts for the next opening.
fn located(folder: &Address, meta: &ObjectMeta, now: Instant) -> Location {
    let path = folder.at(meta.location.clone()).path();
    known::list(&path, meta, now);
    Location::Object(path)
}

/// Returns the sorted locations of the objects. Returns `None` if there are no objects.
fn paths(folder: &Address, metas: impl Iterator<Item = ObjectMeta>) -> Option<Vec<Location>> {
    let now = Instant::now();
    let mut paths: Vec<_> = metas.map(|meta| located(folder, &meta, now)).collect();
    paths.sort_unstable();
    (!paths.is_empty()).then_some(paths)
}

/// Lists the objects directly in a folder, with their sizes.
pub(in crate::store) fn entries(folder: &Address) -> Result<Vec<Entry>> {
    let entry = |meta: ObjectMeta| {
        let name = meta.location.filename()?.to_owned();
        Some(Entry { name, bytes: meta.size })
    };
    Ok(children(folder)?.into_iter().filter_map(entry).collect())
}

fn children(folder: &Address) -> Result<Vec<ObjectMeta>> {
    Ok(children_and_folders(folder)?.0)
}

/// Lists the objects directly in a folder. Also returns whether the folder contains folders.
fn children_and_folders(folder: &Address) -> Result<(Vec<ObjectMeta>, bool)> {
    let (client, key) = (folder.bucket.patient.clone(), folder.key.clone());
    let listed = runtime::wait(listing(async move { client.list_with_delimiter(Some(&key)).await }))?;
    let has_folders = listed.as_ref().is_ok_and(|listed| !listed.common_prefixes.is_empty());
    Ok((checked(folder, listed.map(|listed| listed.objects))?, has_folders))
}

fn descendants(folder: &Address) -> Result<Vec<ObjectMeta>> {
    let (client, key) = (folder.bucket.patient.clone(), folder.key.clone());
    let listed = runtime::wait(listing(async move { client.list(Some(&key)).try_collect().await }))?;
    checked(folder, listed)
}

/// Returns the listed objects, if all names are short enough for a request.
fn checked(folder: &Address, listed: object_store::Result<Vec<ObjectMeta>>) -> Result<Vec<ObjectMeta>> {
    let metas = listed.map_err(|e| given_up(&e).path(folder.path()))?;
    if let Some(len) = metas.iter().map(|meta| meta.location.as_ref().len()).find(|&len| len > LONGEST) {
        let text = format!("the store lists a name of {len} bytes, limit {LONGEST}");
        Err(Error::data(text).path(folder.path()))
    } else {
        Ok(metas)
    }
}

/// Deletes an object. Returns false if the store reports that the object does not exist. Many stores report success
/// instead.
pub(in crate::store) fn delete(at: &Address) -> Result<bool> {
    let (client, key) = (at.bucket.patient.clone(), at.key.clone());
    match patiently(async move { client.delete(&key).await })? {
        Ok(()) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(given_up(&error).path(at.path())),
    }
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn names_that_no_client_can_send_are_refused_as_they_are_listed() {
        let folder = Address::parse(Path::new("http://127.0.0.1:1/in/")).unwrap();
        let meta = |len: usize| ObjectMeta {
            location: "a".repeat(len).into(),
            last_modified: SystemTime::UNIX_EPOCH.into(),
            size: 1,
            e_tag: None,
            version: None,
        };
        assert_eq!(checked(&folder, Ok(vec![meta(1), meta(LONGEST)])).unwrap().len(), 2);
        let error = checked(&folder, Ok(vec![meta(1), meta(LONGEST + 1)])).unwrap_err();
        assert_eq!(error.message(), "the store lists a name of 16385 bytes, limit 16384");
    }
}
