//! One shared index for the small files of a folder.
//!
//! Searching a small file is faster than looking up a cache file for it. Searching a thousand small files is slower
//! than a single lookup.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::entry::{Entry, Key};
use super::{IndexCache, bytes_of, number, store};
use crate::cores;
use crate::element::Buffer;
use crate::place::{self, Location};
use crate::source::content::Contents;
use crate::source::files::file_name;
use crate::source::starts::Starts;

/// The small files of one folder in one open call, if together they are large enough for an index.
pub(super) struct Group {
    folder: Location,
    /// Path of the shared index.
    at: PathBuf,
    files: Vec<Member>,
}

struct Member {
    /// Position of the file in the list passed to [`Group::all`].
    file: usize,
    name: u64,
    key: Key,
}

impl Group {
    pub(super) fn all(files: &Contents, keys: &[Option<Key>], cache: &IndexCache) -> Vec<Self> {
        let mut folders: BTreeMap<Location, Vec<Member>> = BTreeMap::new();
        for (file, ((path, _), key)) in files.iter().zip(keys).enumerate() {
            if let Some(key) = key.filter(|key| !key.is_large()) {
                let member = Member { file, name: name(path.as_ref()), key };
                folders.entry(path.beside(place::folder_of)).or_default().push(member);
            }
        }
        let worth = folders.into_iter().filter(|(_, files)| are_worth(files));
        worth.filter_map(|(folder, files)| Some(Self { at: cache.path_for_small(&folder)?, folder, files })).collect()
    }

    /// Loads each file's valid entry from the shared index.
    pub(super) fn load(&self, kept: &mut [Option<Starts>]) {
        let Some(index) = FolderIndex::open(&self.at) else { return };
        let get = |file: &Member| index.get(file.name, &file.key);
        let found: Vec<_> = cores::map(&self.files, get);
        self.files.iter().zip(found).for_each(|(file, found)| kept[file.file] = found);
    }

    /// Writes the shared index if the files missing from `kept` are large enough together.
    pub(super) fn keep(&self, kept: &[Option<Starts>], starts: &[Starts]) {
        if are_worth(self.files.iter().filter(|file| kept[file.file].is_none())) {
            let row = |file: &Member| {
                let starts = &starts[file.file];
                let order = (file.name, file.key.records.number());
                (order, (Entry::of(&file.key, starts), starts.parts().1.clone()))
            };
            FolderIndex::store(&self.at, &self.folder, self.files.iter().map(row));
        }
    }
}

/// Returns true if the files together are at least [`IndexCache::MIN_BYTES`] in size.
fn are_worth<'a>(files: impl IntoIterator<Item = &'a Member>) -> bool {
    files.into_iter().map(|file| file.key.size).sum::<u64>() >= IndexCache::MIN_BYTES
}

/// Hashes the name of a file. A collision is harmless, because the key must match as well.
fn name(path: &Path) -> u64 {
    xxh3_64(file_name(path).as_bytes())
}

const MAGIC: &[u8; 8] = b"gmfiles1";
/// Magic, number of rows, hash of the rows. The sorted rows follow, then the starts of each file (`u32` each).
const HEADER: usize = MAGIC.len() + 16;
/// Hash of the file name, an entry, and the byte offset of the starts.
const ROW: usize = 8 + Entry::BYTES + 8;

/// The index of a folder, in the layout of its cache file.
pub(crate) struct FolderIndex {
    file: Buffer,
    rows_end: usize,
}

/// Sort key of a row: hash of the file name, then kind of records.
type Order = (u64, u64);

impl FolderIndex {
    fn open(at: &Path) -> Option<Self> {
        Self::decode(bytes_of(at)?)
    }

    /// Reads a cache file. Returns `None` if the magic or the hash of the rows is wrong.
    ///
    /// The starts are checked by [`get`](Self::get).
    pub(crate) fn decode(file: Buffer) -> Option<Self> {
        let header = file.as_bytes().get(..HEADER)?.strip_prefix(MAGIC)?;
        let rows_end = usize::try_from(number(header, 0)).ok()?.checked_mul(ROW)?.checked_add(HEADER)?;
        let hash = xxh3_64(file.as_bytes().get(HEADER..rows_end)?);
        (hash == number(header, 1)).then_some(Self { file, rows_end })
    }

    fn rows(&self) -> &[[u8; ROW]] {
        self.file.as_bytes()[HEADER..self.rows_end].as_chunks().0
    }

    /// Returns the starts of records in a file. Returns `None` if the index has no valid row for the file.
    pub(crate) fn get(&self, name: u64, key: &Key) -> Option<Starts> {
        let at = self.rows().binary_search_by_key(&(name, key.records.number()), order).ok()?;
        let (entry, lows) = self.row(&self.rows()[at])?;
        // A small file has one page, and an empty file has none.
        let pages = vec![0; usize::try_from(entry.pages).ok().filter(|&pages| pages < 2)?];
        (entry.key == *key).then(|| entry.starts(pages, lows))?
    }

    /// Returns the starts of all valid rows.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn all(&self) -> Vec<Starts> {
        self.rows().iter().filter_map(|row| self.get(order(row).0, &self.row(row)?.0.key)).collect()
    }

    fn row(&self, row: &[u8; ROW]) -> Option<(Entry, Buffer)> {
        let entry = Entry::from_bytes(&row[8..])?;
        let start = usize::try_from(number(row, ROW / 8 - 1)).ok().filter(|start| start.is_multiple_of(4))?;
        let end = usize::try_from(entry.len.checked_mul(4)?).ok()?.checked_add(start)?;
        Some((entry, self.file.slice(start..end)?))
    }

    /// Writes these rows, merged with the rows of an existing index for other files of the folder.
    ///
    /// Drops the rows of deleted files.
    fn store(at: &Path, folder: &Location, new: impl Iterator<Item = (Order, (Entry, Buffer))>) {
        let mut all: BTreeMap<Order, (Entry, Buffer)> = BTreeMap::new();
        if let Some(old) = Self::open(at) {
            let there = names(folder);
            let rows = old.rows().iter().map(|row| (order(row), row));
            let rows = rows.filter(|((name, _), _)| there.as_ref().is_none_or(|there| there.contains(name)));
            all.extend(rows.filter_map(|(order, row)| Some((order, old.row(row)?))));
        }
        all.extend(new);
        let mut start = HEADER + all.len() * ROW;
        let mut rows = Vec::with_capacity(all.len() * ROW);
        for ((name, _), (entry, lows)) in &all {
            rows.extend(name.to_le_bytes());
            rows.extend(entry.to_bytes());
            rows.extend((start as u64).to_le_bytes());
            start += lows.len();
        }
        store(at, |file| {
            file.write_all(MAGIC)?;
            file.write_all(&(all.len() as u64).to_le_bytes())?;
            file.write_all(&xxh3_64(&rows).to_le_bytes())?;
            file.write_all(&rows)?;
            all.values().try_for_each(|(_, lows)| file.write_all(lows.as_bytes()))
        });
    }
}

fn order(row: &[u8; ROW]) -> Order {
    (number(row, 0), number(row, 1))
}

/// Hashes the names of all files in a folder. Returns `None` for objects and unreadable folders.
fn names(folder: &Location) -> Option<HashSet<u64>> {
    let Location::Local(folder) = folder else { return None };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Some(fs::read_dir(folder).ok()?.flatten().map(|entry| name(&entry.path())).collect())
}
