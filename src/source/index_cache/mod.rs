//! Where the records of files start, kept on disk, so that a large file is searched once.
//!
//! A cache file is used only if size, time of change and sampled content of the file are those it was made for and
//! its own hash is right. Anything else, unwritable folders included, means that the index is built again in memory.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::xxh3_64;

use super::files::{FileId, file_name};
use super::mmap::{Access, Mapping};
use super::starts::{Facts, Starts};
use crate::element::Buffer;
use crate::place;

/// Where the places of lines and records are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexCache {
    /// Beside the file, as `.NAME.gmi`; of an object in the folder where [blocks](crate::store) of objects are kept, if there is one.
    #[default]
    Beside,
    /// In this folder, which is made if it is not there.
    Folder(PathBuf),
    /// Nowhere.
    Off,
}

impl IndexCache {
    /// Where the index of a file lies, if it is kept.
    pub(crate) fn path_for(&self, text: &Path) -> Option<PathBuf> {
        let name = file_name(text);
        match self {
            Self::Off => None,
            // Nothing is written into stores unasked.
            Self::Beside if place::is_remote(text) => Self::Folder(crate::store::index_folder()?).path_for(text),
            Self::Beside => Some(text.with_file_name(format!(".{name}.gmi"))),
            Self::Folder(folder) => {
                let full = fs::canonicalize(text).unwrap_or_else(|_| place::shown(text).into_owned());
                let hash = xxh3_64(full.as_os_str().as_encoded_bytes());
                Some(folder.join(format!("{name}.{hash:016x}.gmi")))
            }
        }
    }
}

/// Smaller files are searched faster than a cache file is looked up and checked.
const MIN_BYTES: u64 = 8 << 20;

/// What starts at the places of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Records {
    /// Lines that are not blank.
    Lines,
    /// Every line.
    AllLines,
    /// Records of TFRecord.
    #[cfg_attr(not(feature = "tf_record"), allow(dead_code, reason = "for that format"))]
    Frames,
    /// Samples of WebDataset.
    #[cfg_attr(not(feature = "webdataset"), allow(dead_code, reason = "for that format"))]
    Samples,
    /// Records of CSV of this delimiter and quote.
    #[cfg_attr(not(feature = "csv"), allow(dead_code, reason = "for that format"))]
    Fields(u8, Option<u8>),
}

impl Records {
    /// As a cache file has it: a small number, or one whose bytes are those of the dialect.
    fn number(self) -> u64 {
        match self {
            Self::Lines => 0,
            Self::AllLines => 1,
            Self::Frames => 2,
            Self::Samples => 3,
            Self::Fields(delimiter, quote) => {
                u32::from_le_bytes([delimiter, quote.unwrap_or(0), u8::from(quote.is_some()), 1]).into()
            }
        }
    }

    /// What [`number`](Self::number) gives this one.
    fn of(number: u64) -> Option<Self> {
        match u32::try_from(number).ok()?.to_le_bytes() {
            [0, 0, 0, 0] => Some(Self::Lines),
            [1, 0, 0, 0] => Some(Self::AllLines),
            [2, 0, 0, 0] => Some(Self::Frames),
            [3, 0, 0, 0] => Some(Self::Samples),
            [delimiter, 0, 0, 1] => Some(Self::Fields(delimiter, None)),
            [delimiter, quote, 1, 1] => Some(Self::Fields(delimiter, Some(quote))),
            _ => None,
        }
    }
}

/// Where `records` start in the file at `path`, which `id` tells from others: from the cache, or found and then cached.
///
/// # Errors
/// What `find` reports.
pub(crate) fn load_or_find<E>(
    path: &Path,
    id: &FileId,
    records: Records,
    cache: &IndexCache,
    find: impl FnOnce() -> Result<Starts, E>,
) -> Result<Starts, E> {
    if id.size < MIN_BYTES {
        return find();
    }
    cached(path, id, records, cache, find)
}

fn cached<E>(
    path: &Path,
    id: &FileId,
    records: Records,
    cache: &IndexCache,
    find: impl FnOnce() -> Result<Starts, E>,
) -> Result<Starts, E> {
    let (Some(at), Some(key)) = (cache.path_for(path), Key::of(path, id, records)) else { return find() };
    let file = Mapping::open(&at, Access::Normal).ok().map(|file| Buffer::from_owner(Arc::new(file)));
    if let Some(starts) = file.and_then(|file| decode(&file, &key)) {
        return Ok(starts);
    }
    let starts = find()?;
    if let Err(error) = store(&at, &key, &starts) {
        tracing::debug!(path = %at.display(), %error, "the index is not cached");
    }
    Ok(starts)
}

/// What a cache file must have been made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    records: Records,
    size: u64,
    changed_ns: u64,
    sample: u64,
}

impl Key {
    fn of(path: &Path, id: &FileId, records: Records) -> Option<Self> {
        let (size, sample) = (id.size, id.hash);
        if place::is_remote(path) {
            // Its hash is of its version, which says when it changed.
            return Some(Self { records, size, changed_ns: 0, sample });
        }
        let changed = fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let changed_ns = u64::try_from(changed.as_nanos()).ok()?;
        Some(Self { records, size, changed_ns, sample })
    }
}

const MAGIC: &[u8; 8] = b"gmlines1";
/// Magic and 8 numbers, all little-endian `u64`: what starts there, size, changed_ns, sample, lines, pages, blanks, hash. Then the
/// pages (`u64` each) and the starts (`u32` each), to the end of the file.
const HEADER: usize = 72;

fn header(key: &Key, starts: &Starts) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    let (records, pages) = (starts.len(), starts.parts().0.len() as u64);
    let found = [records, pages, starts.facts().blanks, starts.hash()];
    let numbers = [[key.records.number(), key.size, key.changed_ns, key.sample], found].concat();
    numbers.iter().for_each(|n| header.extend_from_slice(&n.to_le_bytes()));
    header
}

/// Writes a temporary file beside `at` and renames it, so that no reader ever sees a part.
fn store(at: &Path, key: &Key, starts: &Starts) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = at.parent() {
        fs::create_dir_all(folder)?;
    }
    let unique = format!("{}.{}.{}.tmp", file_name(at), std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let temporary = at.with_file_name(unique);
    let write = || {
        let mut file = fs::File::create(&temporary)?;
        let (pages, lows) = starts.parts();
        file.write_all(&header(key, starts))?;
        file.write_all(bytemuck::cast_slice(pages))?;
        file.write_all(lows.as_bytes())?;
        fs::rename(&temporary, at)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// What a cache file was made for, by its header.
pub(crate) fn stored_key(bytes: &[u8]) -> Option<Key> {
    let numbers = bytes.get(..HEADER)?.strip_prefix(MAGIC)?;
    let number = |i: usize| u64::from_le_bytes(numbers[i * 8..i * 8 + 8].try_into().expect("8 bytes"));
    let records = Records::of(number(0))?;
    Some(Key { records, size: number(1), changed_ns: number(2), sample: number(3) })
}

/// The index in a cache file, or `None` if it is not exactly one made for `key`.
pub(crate) fn decode(file: &Buffer, key: &Key) -> Option<Starts> {
    let bytes = file.as_bytes();
    if stored_key(bytes)? != *key {
        return None;
    }
    let number = |i: usize| u64::from_le_bytes(bytes[(i + 1) * 8..(i + 2) * 8].try_into().expect("8 bytes"));
    let (lines, pages, blanks, hash) = (number(4), number(5), number(6), number(7));
    let pages_end = usize::try_from(pages.checked_mul(8)?.checked_add(HEADER as u64)?).ok()?;
    let end = usize::try_from(lines.checked_mul(4)?).ok()?.checked_add(pages_end)?;
    if end != bytes.len() {
        return None;
    }
    let pages = bytes[HEADER..pages_end].chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().expect("8 bytes")));
    let pages = pages.collect();
    let facts = Facts { size: key.size, keep_blank: key.records == Records::AllLines, blanks };
    let starts = Starts::new(pages, file.slice(pages_end..end)?, facts);
    (starts.hash() == hash).then_some(starts)
}

#[cfg(test)]
mod tests {
    use super::super::index::LineIndex;
    use super::*;

    fn text(dir: &Path) -> (PathBuf, Vec<u8>) {
        let path = dir.join("t.jsonl");
        fs::write(&path, "one\n\ntwo\nthree").unwrap();
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    }

    fn is_right(starts: Starts, bytes: &[u8]) -> bool {
        let index = LineIndex(starts);
        index == LineIndex::build(bytes, index.0.facts().keep_blank) && index.line(2, bytes).unwrap().1 == b"three"
    }

    fn lines(path: &Path, bytes: &[u8], cache: &IndexCache) -> Starts {
        cached(path, &FileId::new(path, bytes), Records::Lines, cache, || Ok::<_, ()>(LineIndex::build(bytes, false).0))
            .unwrap()
    }

    #[test]
    fn a_cached_index_equals_a_fresh_one_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes) = text(dir.path());
        let beside = dir.path().join(".t.jsonl.gmi");
        let key = Key::of(&path, &FileId::new(&path, &bytes), Records::Lines).unwrap();
        assert!(is_right(lines(&path, &bytes, &IndexCache::Beside), &bytes));
        let open = |key: &Key| decode(&Buffer::copy_from(&fs::read(&beside).unwrap()), key);
        assert!(is_right(open(&key).unwrap(), &bytes));
        assert!(is_right(lines(&path, &bytes, &IndexCache::Beside), &bytes));
        for other in [
            Key { records: Records::AllLines, ..key },
            Key { records: Records::Frames, ..key },
            Key { records: Records::Fields(b',', None), ..key },
            Key { size: 1, ..key },
            Key { changed_ns: 1, ..key },
            Key { sample: 1, ..key },
        ] {
            assert!(open(&other).is_none());
        }
    }

    #[test]
    fn a_damaged_cache_file_is_ignored_and_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes) = text(dir.path());
        let cache = IndexCache::Folder(dir.path().join("new/folder"));
        lines(&path, &bytes, &cache);
        let at = cache.path_for(&path).unwrap();
        let good = fs::read(&at).unwrap();
        let key = Key::of(&path, &FileId::new(&path, &bytes), Records::Lines).unwrap();
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 0x40;
            assert!(decode(&Buffer::copy_from(&bad), &key).is_none(), "byte {i}");
            assert!(decode(&Buffer::copy_from(&good[..i]), &key).is_none(), "cut at {i}");
        }
        fs::write(&at, &good[..good.len() - 1]).unwrap();
        assert!(is_right(lines(&path, &bytes, &cache), &bytes));
        assert_eq!(fs::read(&at).unwrap(), good);
        assert_eq!(fs::read_dir(dir.path().join("new/folder")).unwrap().count(), 1);
    }

    #[test]
    fn an_unwritable_place_means_no_cache() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes) = text(dir.path());
        let cache = IndexCache::Folder(path.join("below a file"));
        assert!(is_right(lines(&path, &bytes, &cache), &bytes));
    }
}
