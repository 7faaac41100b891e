//! Indices of files: where their records start, kept on disk, so that files are searched once: a large file has a cache file of its own, the
//! small files of a folder have one together.
//!
//! The index that a cache file has of a file is used only if size, times of change and sampled content of that are those it was made for and
//! its own hash is right. Anything else, unwritable folders included, means that the index is built again in memory.
//!
//! The hash finds damage, not malice: whoever may write beside the data may also leave records out. That is no more than writing the
//! data allows, and less than a line that is none: where a record begins is looked at again when it is read.

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

/// The place of indices of lines and records.
///
/// An index is believed if it is whole and was made for a file of this size, these times of change and this content, as far as that is
/// sampled: a folder that others may write to is one where they may hide records. A copy of a file is searched once more, as its
/// times are its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexCache {
    /// Beside the file, as `.NAME.gmi`, and of files under 8 MiB together as `.gmi` in their folder, once they are 8 MiB; of objects
    /// in the folder where [blocks](crate::store) of objects are kept, if there is one.
    #[default]
    Beside,
    /// In this folder, which is made if it is not there: of each large file, and of the small files of each folder.
    Folder(PathBuf),
    /// Nowhere.
    Off,
}

impl IndexCache {
    /// Fewer bytes, in one file or in several, are searched faster than a cache file is looked up and checked.
    pub(crate) const MIN_BYTES: u64 = 8 << 20;

    /// The path of a file's index, if it is kept.
    pub(crate) fn path_for(&self, file: &Location) -> Option<PathBuf> {
        let name = file_name(file.as_ref());
        match (self, file) {
            (Self::Off, _) => None,
            // Nothing is written into stores unasked.
            (Self::Beside, Location::Object(_)) => Self::Folder(crate::store::index_folder()?).path_for(file),
            (Self::Beside, Location::Local(path)) => Some(path.with_file_name(format!(".{name}.gmi"))),
            (Self::Folder(folder), _) => {
                // The folder of a bare name.
                let text = if file.as_ref().as_os_str().is_empty() { Path::new(".") } else { file.as_ref() };
                let full = fs::canonicalize(text).unwrap_or_else(|_| place::shown(text).into_owned());
                let hash = xxh3_64(full.as_os_str().as_encoded_bytes());
                Some(folder.join(format!("{name}.{hash:016x}.gmi")))
            }
        }
    }

    /// The path of the index of a folder's small files, if it is kept.
    pub(crate) fn path_for_small(&self, folder: &Location) -> Option<PathBuf> {
        match (self, folder) {
            // A name that no index of one file has.
            (Self::Beside, Location::Local(folder)) => Some(folder.join(".gmi")),
            _ => self.path_for(folder),
        }
    }
}

/// The kind of records that start at the places of an index.
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

    /// The kind to which [`number`](Self::number) gives this one.
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

/// Finds where records start in each of these files, and what tells the files from others: from the cache, or by `find`, which is given the
/// number of a file, and then cached.
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
        // What is kept nowhere is looked for nowhere.
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

    let id = |(id, starts): (FileId, &Starts)| FileId { hash: id.hash ^ starts.hash().rotate_left(1), ..id };
    let ids = ids.into_iter().zip(&starts).map(id).collect();
    Ok((starts, ids))
}

/// Larger cache files are mapped, not read: many processes then share the memory of one.
const MOST_READ: u64 = 256 << 20;

/// The bytes of a cache file, if it is there: of any but a very large one a copy, so that no change to the file is felt.
fn bytes_of(at: &Path) -> Option<Buffer> {
    let mut file = fs::File::open(at).ok()?;
    let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
    if metadata.len() > MOST_READ {
        return Mapping::open(at, Access::Normal).ok().map(|file| Buffer::from_owner(Arc::new(file)));
    }
    let mut bytes = Vec::new();
    // Of words, so that the starts of records, which are numbers, lie at places for such.
    bytes.try_reserve_exact((metadata.len() as usize).div_ceil(8)).ok()?;
    bytes.resize((metadata.len() as usize).div_ceil(8), 0u64);
    let room = &mut bytemuck::cast_slice_mut(&mut bytes)[..metadata.len() as usize];
    file.read_exact(room).ok()?;
    Buffer::from_vec(bytes).slice(0..metadata.len() as usize)
}

/// Writes a temporary file beside `at` and renames it, so that no reader ever sees a part. Where that cannot be done, nothing is cached.
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

/// Number `i` of those that stand there, which are little-endian.
fn number(bytes: &[u8], i: usize) -> u64 {
    u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests;
