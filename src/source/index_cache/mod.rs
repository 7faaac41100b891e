//! A cache on disk of indices, which list the start of each record in a file. Each file is searched only once.
//!
//! A large file has a separate cache file. The small files of a folder share one.
//!
//! A cached index is used only if its hash is correct and the file's size, change times and sampled content match.
//! Otherwise the index is rebuilt in memory. An unwritable folder has that effect too.
//!
//! The hash detects damage, not tampering. A user with write access next to the data can hide records. That is no more
//! than write access to the data allows. A start that is not the start of a record is detected on reading.

mod entry;
mod folder;
mod single;

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use self::entry::Key;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(crate) use self::folder::FolderIndex;
use self::folder::Group;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(crate) use self::single::{decode, entry};
use super::abreast;
use super::content::{Content, Contents};
use super::files::{FileId, file_name};
use super::starts::Starts;
use crate::cores;
use crate::element::Buffer;
use crate::error::Result;
use crate::mmap::{Access, Mapping};
use crate::place::{self, Location};
use crate::startup::making;
use crate::temporary::{Readers, Temporary};

/// Location of the index cache for lines and records.
///
/// A cached index is used if it is intact and matches the file's size, change times and sampled content. Users with
/// write access to the cache folder can hide records. A copied file is searched again, because its change times differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexCache {
    /// Next to the data. A file of 8 MiB or more has a cache file `.NAME.gmi`. The smaller files of a folder share a
    /// cache file `.gmi` if together they reach 8 MiB. Objects are indexed in the folder that caches
    /// [blocks](crate::store) of objects, if there is one.
    #[default]
    Beside,
    /// In this folder, which is created if missing. Each file of 8 MiB or more has a cache file there. The smaller
    /// files of each folder share a cache file.
    Folder(PathBuf),
    /// No cache.
    Off,
}

impl IndexCache {
    /// Minimum total size of the files in an index, in bytes. Searching less data is faster than looking up and
    /// verifying a cache file.
    pub(crate) const MIN_BYTES: u64 = 8 << 20;

    /// Returns the path of a file's index, or `None` if it is not cached.
    pub(crate) fn path_for(&self, file: &Location) -> Option<PathBuf> {
        let name = file_name(file.as_ref());
        match (self, file) {
            (Self::Off, _) => None,
            // Nothing is written to an object store unless requested.
            (Self::Beside, Location::Object(_)) => Self::Folder(crate::store::index_folder()?).path_for(file),
            (Self::Beside, Location::Local(path)) => Some(path.with_file_name(format!(".{name}.gmi"))),
            (Self::Folder(folder), _) => {
                // The parent of a bare file name is the empty path.
                let text = if file.as_ref().as_os_str().is_empty() { Path::new(".") } else { file.as_ref() };
                let full = fs::canonicalize(text).unwrap_or_else(|_| place::shown(text).into_owned());
                let hash = xxh3_64(full.as_os_str().as_encoded_bytes());
                Some(folder.join(format!("{name}.{hash:016x}.gmi")))
            }
        }
    }

    /// Returns the path of the index shared by a folder's small files, or `None` if it is not cached.
    pub(crate) fn path_for_small(&self, folder: &Location) -> Option<PathBuf> {
        match (self, folder) {
            // No index of a single file has this name.
            (Self::Beside, Location::Local(folder)) => Some(folder.join(".gmi")),
            _ => self.path_for(folder),
        }
    }
}

/// Kind of the indexed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Records {
    /// Lines that are not blank.
    Lines,
    /// Every line.
    AllLines,
    /// Records of TFRecord.
    Frames,
    /// Samples of WebDataset.
    Samples,
    /// Items of a JSON array.
    Items,
    /// Records of CSV with this delimiter and quote.
    Fields(u8, Option<u8>),
}

impl Records {
    /// Encodes the kind for a cache file: a small number, or the bytes of a CSV dialect.
    fn number(self) -> u64 {
        match self {
            Self::Lines => 0,
            Self::AllLines => 1,
            Self::Frames => 2,
            Self::Samples => 3,
            Self::Items => 4,
            Self::Fields(delimiter, quote) => {
                u32::from_le_bytes([delimiter, quote.unwrap_or(0), u8::from(quote.is_some()), 1]).into()
            }
        }
    }

    /// Decodes a kind from its [`number`](Self::number).
    fn of(number: u64) -> Option<Self> {
        match u32::try_from(number).ok()?.to_le_bytes() {
            [0, 0, 0, 0] => Some(Self::Lines),
            [1, 0, 0, 0] => Some(Self::AllLines),
            [2, 0, 0, 0] => Some(Self::Frames),
            [3, 0, 0, 0] => Some(Self::Samples),
            [4, 0, 0, 0] => Some(Self::Items),
            [delimiter, 0, 0, 1] => Some(Self::Fields(delimiter, None)),
            [delimiter, quote, 1, 1] => Some(Self::Fields(delimiter, Some(quote))),
            _ => None,
        }
    }
}

/// Returns the starts of records and the identity of each file.
///
/// Loads valid starts from the cache. For other files, calls `find` with the position in `files` and caches the result.
///
/// # Errors
/// The errors of `find`, with the path of the file.
pub(crate) fn load_or_find(
    files: &Contents,
    records: Records,
    cache: &IndexCache,
    find: impl Fn(usize) -> Result<Starts> + Sync,
) -> Result<(Vec<Starts>, Vec<FileId>)> {
    let told = |(path, content): &(Location, Content)| {
        let id = content.id(path);
        // Without a cache, no key is computed.
        let key = if *cache == IndexCache::Off { None } else { Key::of(path, content, &id, records) };
        (id, key)
    };
    let (ids, keys): (Vec<FileId>, Vec<Option<Key>>) = cores::map(files, told).into_iter().unzip();

    let groups = Group::all(files, &keys, cache);
    let mut kept = vec![None; files.len()];
    making("an index read", || groups.iter().for_each(|group| group.load(&mut kept)));
    let search = |at: usize| {
        let path = &files[at].0;
        let find = || making("an index built", || find(at)).map_err(|e| e.path(path));
        match keys[at].filter(|key| key.is_large()) {
            Some(key) => single::load_or_find(cache.path_for(path), &key, find),
            None => find(),
        }
    };
    let starts = |(at, kept): (usize, &Option<Starts>)| kept.clone().map_or_else(|| search(at), Ok);
    let starts: Vec<Starts> = cores::try_map_on(abreast::whole(files), kept.iter().enumerate(), starts)?;
    groups.iter().for_each(|group| group.keep(&kept, &starts));

    let id = |(id, starts): (FileId, &Starts)| FileId { hash: id.hash ^ starts.hash.rotate_left(1), ..id };
    let ids = ids.into_iter().zip(&starts).map(id).collect();
    Ok((starts, ids))
}

/// Larger cache files are mapped instead of read, so that processes share the memory.
const MOST_READ: u64 = 256 << 20;

/// Returns the content of a cache file, or `None` if it cannot be read.
///
/// Files up to [`MOST_READ`] bytes are copied, so that later changes to the file have no effect.
fn bytes_of(at: &Path) -> Option<Buffer> {
    let mut file = fs::File::open(at).ok()?;
    let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
    if metadata.len() > MOST_READ {
        return Mapping::open(at, Access::Normal).ok().map(|file| Buffer::from_owner(Arc::new(file)));
    }
    let mut bytes = Vec::new();
    // Allocated as `u64`, so that the `u32` starts are aligned.
    bytes.try_reserve_exact((metadata.len() as usize).div_ceil(8)).ok()?;
    bytes.resize((metadata.len() as usize).div_ceil(8), 0u64);
    let room = &mut bytemuck::cast_slice_mut(&mut bytes)[..metadata.len() as usize];
    file.read_exact(room).ok()?;
    Buffer::from_vec(bytes).slice(0..metadata.len() as usize)
}

/// Writes a temporary file next to `at` and renames it, so that readers never see a partial file. Failures are logged,
/// and nothing is cached.
fn store(at: &Path, write: impl FnOnce(&mut BufWriter<fs::File>) -> io::Result<()>) {
    let create = || {
        at.parent().map_or(Ok(()), fs::create_dir_all)?;
        let (file, temporary) = Temporary::create(at, Readers::AsUsual)?;
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()?;
        temporary.publish(at)
    };
    if let Err(error) = create() {
        tracing::debug!(path = %at.display(), %error, "the index is not cached");
    }
}

/// Returns little-endian `u64` number `i` of `bytes`.
fn number(bytes: &[u8], i: usize) -> u64 {
    u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests;
