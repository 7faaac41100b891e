//! Sets of files: names, globs and directories, and the identity of a set.

use std::collections::HashSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::braces;
use super::globs;
use super::stdin::is_piped;
use crate::error::{Error, Result};
pub(crate) use crate::place::file_name;
use crate::place::{self, Location, is_skipped, none_in, of_endings};
use crate::store::listed;

/// Names of files: a path, a glob, a directory, or a list of these.
pub trait Patterns {
    /// Returns the paths, globs and directories, in order.
    fn patterns(&self) -> Vec<PathBuf>;

    /// Returns true if a file is excluded although a pattern names it: see [`skip_bad_shards`](super::skip_bad_shards).
    fn leaves_out(&self, _file: &Path) -> bool {
        false
    }
}

macro_rules! one_pattern {
    ($($type:ty),*) => {
        $(impl Patterns for $type {
            fn patterns(&self) -> Vec<PathBuf> {
                vec![PathBuf::from(self)]
            }
        })*
    };
}
one_pattern!(str, String, Path, PathBuf);

impl Patterns for Location {
    fn patterns(&self) -> Vec<PathBuf> {
        vec![self.as_ref().to_owned()]
    }
}

impl<P: Patterns> Patterns for [P] {
    fn patterns(&self) -> Vec<PathBuf> {
        self.iter().flat_map(Patterns::patterns).collect()
    }

    fn leaves_out(&self, file: &Path) -> bool {
        self.iter().any(|pattern| pattern.leaves_out(file))
    }
}

impl<P: Patterns> Patterns for Vec<P> {
    fn patterns(&self) -> Vec<PathBuf> {
        self.as_slice().patterns()
    }

    fn leaves_out(&self, file: &Path) -> bool {
        self.as_slice().leaves_out(file)
    }
}

impl<P: Patterns, const N: usize> Patterns for [P; N] {
    fn patterns(&self) -> Vec<PathBuf> {
        self.as_slice().patterns()
    }

    fn leaves_out(&self, file: &Path) -> bool {
        self.as_slice().leaves_out(file)
    }
}

impl<P: Patterns + ?Sized> Patterns for &P {
    fn patterns(&self) -> Vec<PathBuf> {
        (**self).patterns()
    }

    fn leaves_out(&self, file: &Path) -> bool {
        (**self).leaves_out(file)
    }
}

/// Replacement names, with the exclusions of the given names.
pub(crate) struct Renamed<P> {
    pub(crate) names: Vec<PathBuf>,
    pub(crate) given: P,
}

impl<P: Patterns> Patterns for Renamed<P> {
    fn patterns(&self) -> Vec<PathBuf> {
        self.names.clone()
    }

    fn leaves_out(&self, file: &Path) -> bool {
        self.given.leaves_out(file)
    }
}

/// Finds the files that `patterns` name, in a fixed order: patterns as given, and the files of each pattern sorted by
/// path.
///
/// The name of an existing file is taken literally, even if it looks like a glob. A directory yields its files that end
/// with one of `extensions`, or the files in its manifest if a [`sink`](crate::sink) wrote it. A directory with neither
/// yields the files in its subdirectories, except names that begin with `_` or `.`. Hidden files (`.name`) must be
/// named in full. Braces expand to ranges and lists of names: `train-{00000..00127}.tar`, `{a,b}.jsonl`. If a file is
/// named twice, its first place is kept. `-` is standard input, for streams of text.
///
/// URLs of [stores](crate::store) can replace paths. A missing single object is detected when it is opened.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) with the pattern if no file matches it; errors of the system during the
/// search. [`ErrorKind::Config`](crate::ErrorKind::Config) if there are no patterns, or if a pattern is invalid.
pub fn find(patterns: impl Patterns, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    Ok(locate(patterns, extensions)?.into_iter().map(Location::into_path).collect())
}

/// Finds files like [`find`], and returns parsed locations.
pub(crate) fn locate(patterns: impl Patterns, extensions: &[&str]) -> Result<Vec<Location>> {
    Ok(locate_below(patterns, extensions)?.into_iter().map(|(file, _)| file).collect())
}

/// Finds files like [`find`]. Returns each file with the number of folders between it and the given folder.
pub(crate) fn locate_below(patterns: impl Patterns, extensions: &[&str]) -> Result<Vec<(Location, usize)>> {
    let named = patterns.patterns();
    if named.is_empty() {
        return Err(Error::config("no files: the list of paths is empty"));
    }
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for pattern in &named {
        for location in &expanded(place::named(pattern))? {
            let found = find_one(location, extensions)?;
            files.extend(found.into_iter().filter(|(file, _)| seen.insert(file.clone())));
        }
    }
    files.retain(|(file, _)| !patterns.leaves_out(file.as_ref()));
    if files.is_empty() { Err(Error::data("no files: every shard is damaged")) } else { Ok(files) }
}

/// Expands the braces of a pattern, unless a file with this exact name exists.
fn expanded(pattern: &Path) -> Result<Vec<Location>> {
    match pattern.to_str().filter(|text| text.contains('{')) {
        Some(text) if !pattern.exists() => Ok(braces::expand(text)?.into_iter().map(Location::from).collect()),
        _ => Ok(vec![pattern.into()]),
    }
}

fn find_one(location: &Location, extensions: &[&str]) -> Result<Vec<(Location, usize)>> {
    let given = |files: Vec<Location>| files.into_iter().map(|file| (file, 0)).collect();
    let pattern = match location {
        Location::Local(pattern) => pattern,
        Location::Object(url) => return crate::store::find(url, extensions),
    };
    if pattern.is_dir() {
        return in_directory(pattern, extensions);
    }
    match pattern.metadata() {
        _ if is_piped(pattern) => Ok(given(vec![location.clone()])),
        Ok(_) => Ok(given(vec![location.clone()])),
        Err(error) if !globs::is_glob(pattern) => Err(Error::io(error, pattern)),
        Err(_) => match globs::matching(pattern)? {
            files if files.is_empty() => {
                let text = format!("no file matches the pattern {:?}", place::shown(pattern).display().to_string());
                Err(Error::new(crate::ErrorKind::Io, text))
            }
            files => Ok(given(files.into_iter().map(Location::Local).collect())),
        },
    }
}

fn in_directory(dir: &Path, extensions: &[&str]) -> Result<Vec<(Location, usize)>> {
    if let Some(files) = listed(&Location::Local(dir.to_owned()), extensions)? {
        return Ok(files.into_iter().map(|file| (file, 0)).collect());
    }
    let mut found = Vec::new();
    walk(dir, extensions, 0, &mut HashSet::new(), &mut found)?;
    if found.is_empty() {
        return Err(Error::new(crate::ErrorKind::Io, none_in("no file in this directory", extensions)).path(dir));
    }
    Ok(found)
}

/// Adds the files of a folder, or the files of its subfolders if the top folder contains none. `seen` holds the visited
/// folders, because links may form a cycle.
fn walk(
    dir: &Path,
    extensions: &[&str],
    depth: usize,
    seen: &mut HashSet<PathBuf>,
    found: &mut Vec<(Location, usize)>,
) -> Result<()> {
    if !seen.insert(dir.canonicalize().map_err(|e| Error::io(e, dir))?) {
        return Ok(());
    }
    if depth > 0
        && let Some(files) = listed(&Location::Local(dir.to_owned()), extensions)?
    {
        found.extend(files.into_iter().map(|file| (file, depth)));
        return Ok(());
    }
    let entries = std::fs::read_dir(dir).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|e| Error::io(e, dir))?;
    entries.sort_by_key(DirEntry::file_name);
    let name = |entry: &DirEntry| entry.file_name().to_string_lossy().into_owned();
    let named: Vec<_> = entries.iter().map(|entry| (name(entry), entry)).collect();
    let files = of_endings(named, extensions, |(name, _)| name);
    let files = files.iter().filter(|(name, entry)| is_file(entry) && (depth == 0 || !is_skipped(name)));
    found.extend(files.map(|(_, entry)| (Location::Local(entry.path()), depth)));
    if depth == 0 && !found.is_empty() {
        return Ok(());
    }
    let folders = entries.iter().filter(|entry| !is_skipped(&name(entry)) && entry.path().is_dir());
    folders.map(DirEntry::path).try_for_each(|folder| walk(&folder, extensions, depth + 1, seen, found))?;
    if depth == 0 {
        found.sort();
    }
    Ok(())
}

/// Returns true for a file and for a link to a file. The directory entry usually contains the type, without a lookup by
/// path.
fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_file()) || entry.path().is_file()
}

/// Contribution of a file to the identity of a source.
#[derive(Debug)]
pub(crate) struct FileId {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) hash: u64,
}

/// Returns the identity of a set of files, equal on every machine: names without folders, sizes, and a hash of all
/// [`FileId`]s.
pub(crate) fn identity(files: &[FileId]) -> String {
    let mut hasher = Xxh3::new();
    for file in files {
        hasher.update(&(file.name.len() as u64).to_le_bytes());
        hasher.update(file.name.as_bytes());
        hasher.update(&file.size.to_le_bytes());
        hasher.update(&file.hash.to_le_bytes());
    }
    let (bytes, hash) = (files.iter().map(|f| f.size).sum::<u64>(), hasher.digest());
    match files {
        [] => format!("no files, hash={hash:016x}"),
        [one] => format!("{}, bytes={bytes}, hash={hash:016x}", one.name),
        [first, .., last] => {
            format!("{} … {}, files={}, bytes={bytes}, hash={hash:016x}", first.name, last.name, files.len())
        }
    }
}

/// Returns the [`identity`] of each file separately.
pub(crate) fn identities(files: impl Iterator<Item = FileId>) -> Vec<String> {
    files.map(|file| identity(&[file])).collect()
}

const SAMPLES: usize = 16;
const SAMPLE_BYTES: usize = 4096;

/// Returns a hash of the bytes of a small file. For a file above 64 KiB, hashes the size and 16 pages of 4 KiB, evenly
/// spaced from the first byte to the last.
pub(crate) fn sample(bytes: &[u8]) -> u64 {
    if bytes.len() <= SAMPLES * SAMPLE_BYTES {
        return xxh3_64(bytes);
    }
    let mut hasher = Xxh3::new();
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    sampled(bytes.len()).for_each(|at| hasher.update(&bytes[at..at + SAMPLE_BYTES]));
    hasher.digest()
}

/// Returns the offsets of the hashed pages in a file of `len` bytes. `len` must exceed the size of all pages.
fn sampled(len: usize) -> impl Iterator<Item = usize> {
    let last = (len - SAMPLE_BYTES) as u128;
    (0..SAMPLES).map(move |i| (last * i as u128 / (SAMPLES as u128 - 1)) as usize)
}

/// Computes [`sample`] of an open file. Reading the pages takes a third of the time of mapping them. Returns `None` if
/// the file is small, or if the read fails.
#[cfg(unix)]
pub(crate) fn sample_file(file: &std::fs::File, len: usize) -> Option<u64> {
    use std::os::unix::fs::FileExt;
    if len <= SAMPLES * SAMPLE_BYTES {
        return None;
    }
    let (mut hasher, mut page) = (Xxh3::new(), [0; SAMPLE_BYTES]);
    hasher.update(&(len as u64).to_le_bytes());
    for at in sampled(len) {
        file.read_exact_at(&mut page, at as u64).ok()?;
        hasher.update(&page);
    }
    Some(hasher.digest())
}

#[cfg(not(unix))]
pub(crate) fn sample_file(_: &std::fs::File, _: usize) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Buffer;
    use crate::source::content::Content;

    fn names(files: &[PathBuf]) -> Vec<String> {
        files.iter().map(|f| file_name(f).into_owned()).collect()
    }

    #[test]
    fn globs_directories_and_names() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.jsonl", "a.jsonl", "c.txt", ".a.jsonl.gmi", ".h.jsonl", "x[1].jsonl"] {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        let path = |name: &str| dir.path().join(name);
        let found = |patterns: &[PathBuf]| find(patterns, &[".jsonl"]).map(|f| names(&f));
        assert_eq!(found(&[path("*.jsonl")]).unwrap(), ["a.jsonl", "b.jsonl", "x[1].jsonl"]);
        assert_eq!(found(&[path("")]).unwrap(), ["a.jsonl", "b.jsonl", "x[1].jsonl"]);
        assert_eq!(found(&[path("c.txt"), path("?.*")]).unwrap(), ["c.txt", "a.jsonl", "b.jsonl"]);
        assert_eq!(found(&[path("x[1].jsonl")]).unwrap(), ["x[1].jsonl"]);
        assert!(found(&[path("*.parquet")]).unwrap_err().message().contains("*.parquet"));
        assert!(found(&[path("none.jsonl")]).unwrap_err().to_string().contains("none.jsonl"));
        assert!(found(&[]).is_err());
        assert!(find(dir.path(), &[".npy"]).unwrap_err().message().contains(".npy"));
    }

    #[cfg(unix)]
    #[test]
    fn folders_without_files_are_walked() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["d=2/0.csv", "d=2/_1.csv", "d=1/p=b/0.csv", "d=1/_tmp/0.csv", ".h/0.csv", "_SUCCESS"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        // A link that forms a cycle, and a link to a folder that is visited anyway.
        std::os::unix::fs::symlink(dir.path(), dir.path().join("d=2").join("again")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("d=1"), dir.path().join("z")).unwrap();
        let found = locate_below(dir.path(), &[".csv"]).unwrap();
        let expected =
            [("d=1/p=b/0.csv", 2), ("d=2/0.csv", 1)].map(|(name, below)| (dir.path().join(name).into(), below));
        assert_eq!(found, expected);
        std::fs::write(dir.path().join("a.csv"), b"").unwrap();
        assert_eq!(names(&find(dir.path(), &[".csv"]).unwrap()), ["a.csv"], "files at the top stand for the folder");
        assert!(find(dir.path(), &[".npy"]).unwrap_err().message().contains(".npy"));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_sampled_as_its_bytes_are() {
        let dir = tempfile::tempdir().unwrap();
        for (len, read) in [(0, false), (1 << 16, false), ((1 << 16) + 1, true), (1 << 20, true)] {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let path = dir.path().join("a");
            std::fs::write(&path, &bytes).unwrap();
            let file = std::fs::File::open(&path).unwrap();
            assert_eq!(sample_file(&file, len), read.then(|| sample(&bytes)));
            // A page that lies past the end of a cut file cannot be read.
            assert_eq!(sample_file(&file, len + (1 << 17)), None);
        }
    }

    #[test]
    fn identity_has_no_folders_and_sees_the_content() {
        let mut bytes = vec![7u8; 1 << 20];
        let id = |bytes: &[u8]| identity(&[Content::from(Buffer::copy_from(bytes)).id("/data/secret/a.jsonl")]);
        let one = id(&bytes);
        assert!(one.starts_with("a.jsonl, bytes=1048576, hash="), "{one}");
        assert!(!one.contains("secret"));
        assert_eq!(one, id(&bytes));
        *bytes.last_mut().unwrap() = 8;
        assert_ne!(one, id(&bytes));
    }
}
