//! MDS: folders of shards, as MosaicML's [streaming](https://github.com/mosaicml/streaming) reads and writes them.

mod codec;
mod encode;
mod encoding;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(in crate::source) mod fuzz;
mod hash;
mod images;
mod index;
mod layout;
mod ndarray;
mod shard;
#[cfg(test)]
mod tests;
mod writer;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use self::index::{INDEX, Index};
use self::shard::{Columns, Shard, Unpacked};
pub use self::writer::{MdsWriter, MdsWriterOptions};
pub(crate) use self::writer::{mds_encoding_is_known, mds_encoding_of, mds_index};
use super::abreast;
use super::columns::check_choice;
use super::content::{self, Content, Contents};
use super::decode::IMAGES;
use super::files::{FileId, Patterns};
use super::numbered::{File, Files, Grouped, GroupedFiles, Numbered, named_source, source_options};
use crate::cores;
#[cfg(any(test, fuzzing))]
use crate::element::Buffer;
use crate::element::{Element, Name};
use crate::error::{Error, Result};
use crate::mmap::Access;
use crate::place::Location;

/// Samples of MDS folders, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of [`Element`].
///
/// A folder has an `index.json` of version 2 and the shards that it names. Several folders (streaming's streams) follow each other.
///
/// | encoding | value |
/// |---|---|
/// | `bytes` | bytes |
/// | `str` | text |
/// | `int` | scalar `i64` |
/// | `uint8` … `float64` | scalar of the type |
/// | `str_int` | scalar `i64`; `u64` above its range, and no longer numbers |
/// | `str_float` | scalar `f64` |
/// | `str_decimal` | text, exact: `-12.50` |
/// | `json` | as [`Jsonl`](super::Jsonl) has values |
/// | `ndarray`, `ndarray:float32`, `ndarray:float32:3,4` | array |
/// | `jpeg`, `png` | array `u8` (`u16` of PNG's deep colours) `[height, width, channels]`, with the feature `image`; else, or if [told to](MdsOptions::images), bytes |
/// | `pil` | array `[height, width, channels]` of the type of Pillow's mode; palettes are not in the format |
/// | `list[jpeg]`, `list[png]`, `list[pil]`, `jpeg_array` | list of those |
///
/// `pkl` is [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) unless the column is left out: pickles can run code.
///
/// # Errors
/// Damage is [`ErrorKind::Data`](crate::ErrorKind::Data) with file, record and byte offset; the other samples are read. A shard that is missing, or not
/// as long as `index.json` says, is one when the folder is opened. Hashes are checked if it is [asked for](MdsOptions::check_hashes).
///
/// # Cost
/// Opening reads `index.json` and maps the shards. A sample of a shard that is not compressed is read by itself, and what is bytes is a view of the file. A
/// compressed shard is decompressed whole when a sample of it is read, and kept, up to [`cache_bytes`](MdsOptions::cache_bytes), for all threads: reading in order
/// decompresses each once. Shuffled reading of more than that keeps the samples that a pass asks for soon, as many as have room there, and decompresses a
/// shard once for all of those: the larger the part of the data that has room, the less often. Shuffle windows instead, or decompress the files: where
/// one lies beside its compressed copy, it is the one that is read. See [`Mapping`](super::Mapping) for what must not be done to the files meanwhile.
pub struct Mds(GroupedFiles<MdsOptions>);

/// Options with which MDS folders are opened.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct MdsOptions {
    columns: Option<Vec<Name>>,
    images: bool,
    check_hashes: bool,
    cache_bytes: usize,
    access: Access,
}

impl Default for MdsOptions {
    fn default() -> Self {
        Self { columns: None, images: true, check_hashes: false, cache_bytes: 512 << 20, access: Access::Normal }
    }
}

source_options!(MdsOptions of Mds, access at access);

impl MdsOptions {
    /// The columns to read, in this order; all of them at first.
    pub fn columns<S: AsRef<str>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(columns.into_iter().map(|c| Name::new(c.as_ref())).collect());
        self
    }

    /// Whether images of JPEG and PNG become arrays, as they do at first; else they stay bytes. Builds without the feature `image` know bytes alone.
    pub fn images(mut self, images: bool) -> Self {
        self.images = images;
        self
    }

    /// Whether the hashes in `index.json` are checked when a shard is first read, which reads all of it; at first they are not.
    /// Hashes of a compressed file are enough. Known are MD5, SHA-1, SHA-2 and xxHash; others are passed over.
    pub fn check_hashes(mut self, check: bool) -> Self {
        self.check_hashes = check;
        self
    }

    /// Bytes of decompressed shards that are kept; 512 MiB at first. The latest shard is kept whatever its size.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Opens folders, or the `index.json` in them.
    ///
    /// # Errors
    /// As [`Mds::open`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if a column is not there, is named twice, or none is named.
    pub fn open(self, patterns: impl Patterns) -> Result<Mds> {
        self.columns.as_deref().map_or(Ok(()), check_choice)?;
        // Of a folder, the file of that name in it.
        let indices = content::open_all(&patterns, &[INDEX], Access::Normal)?;
        self.open_indices(indices, &patterns)
    }

    /// The same, of each `index.json`.
    fn open_indices(self, indices: Contents, patterns: &impl Patterns) -> Result<Mds> {
        let ids = indices.iter().map(|(path, content)| content.id(path)).collect();
        let parsed = abreast::try_each(indices, |(path, content)| {
            let index = content.description().and_then(|text| Index::parse(text.as_bytes()));
            index.map_err(|e| e.path(&path)).map(|index| (path, index))
        })?;
        let mut files = Vec::new();
        for (path, index) in &parsed {
            files.extend(self.open_shards(path, index, patterns)?);
        }
        if files.is_empty() && parsed.iter().any(|(_, index)| !index.shards.is_empty()) {
            return Err(Error::data("no files: every shard is damaged"));
        }
        self.of(ids, files)
    }

    /// A data set of one shard, in memory.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_bytes(self, index: &[u8], shard: &[u8]) -> Result<Mds> {
        let index = Index::parse(index)?;
        let one = |info| {
            let (path, content) = (Shard::path(Path::new("x"), info).into(), Buffer::copy_from(shard).into());
            Shard::open(path, content, info, Arc::new(Columns::of(info, None)?))
        };
        let files = index.shards.iter().map(one).collect::<Result<_>>()?;
        self.of(Vec::new(), files)
    }

    fn of(self, mut ids: Vec<FileId>, files: Vec<File<Shard>>) -> Result<Mds> {
        ids.extend(files.iter().map(|file| file.content.id(&file.path)));
        let cache_bytes = self.cache_bytes;
        Ok(Mds(GroupedFiles::new(Files::of(self, files, &ids)?, cache_bytes)))
    }

    fn open_shards(&self, path: &Location, index: &Index, patterns: &impl Patterns) -> Result<Vec<File<Shard>>> {
        let mut columns: Vec<Arc<Columns>> = Vec::with_capacity(index.shards.len());
        for (at, info) in index.shards.iter().enumerate() {
            let own = Columns::of(info, self.columns.as_deref());
            let own = own.map_err(|e| named_shard(at, e).path(path).offset(0))?;
            // Shards of one data set have the same, as a rule.
            let known = columns.last().filter(|last| ***last == own).cloned();
            columns.push(known.unwrap_or_else(|| Arc::new(own)));
        }
        let file = |info| path.beside(|path| Shard::path(path.parent().unwrap_or(Path::new("")), info));
        let files: Vec<Location> = index.shards.iter().map(file).collect();
        let threads = abreast::ends(&files);
        let shards = index.shards.iter().zip(columns).zip(files);
        let shards: Vec<_> = shards.filter(|(_, file)| !patterns.leaves_out(file.as_ref())).collect();
        cores::try_map_on(threads, shards, |((info, columns), path)| {
            let content = Content::open(&path, self.access)?;
            Shard::open(path, content, info, columns)
        })
    }
}

fn named_shard(at: usize, error: Error) -> Error {
    let outer = Error::new(error.kind(), format!("shard {at}: {}", error.message()));
    match error.help_text() {
        Some(help) => outer.help(help),
        None => outer,
    }
}

impl Mds {
    /// Opens folders, or the `index.json` in them, all columns.
    ///
    /// # Errors
    /// If nothing is found, an `index.json` is damaged, or a shard is missing or not of the length that is said there.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }

    /// Reads everything: hashes where there are some, the places of samples, and every value that the options ask for.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for the first damage that is found.
    ///
    /// # Cost
    /// All bytes of all shards, one shard a thread.
    pub fn verify(&self) -> Result<()> {
        let verify = |file: &File<Shard>| file.verify(self.0.format().images);
        cores::try_map(self.0.files(), verify).map(drop)
    }
}

impl Numbered for MdsOptions {
    type Record = Element;
    type Index = Shard;

    const NAME: &'static str = "mds";

    fn len(&self, file: &File<Shard>) -> u64 {
        file.index.samples
    }

    fn read(&self, file: &File<Shard>, record: u64) -> Result<Element> {
        if self.check_hashes {
            file.check_once()?;
        }
        file.read(record, self.images)
    }

    fn ranges(&self, file: &File<Shard>, record: u64) -> impl IntoIterator<Item = Range<u64>> {
        file.range(record)
    }

    fn next_ranges(&self, file: &File<Shard>, record: u64) -> impl IntoIterator<Item = Range<u64>> {
        file.next_range(record)
    }

    fn params(&self) -> String {
        let columns = self.columns.as_ref().map(|columns| format!(", columns=[{}]", columns.join(", ")));
        let images = if self.images { IMAGES } else { "bytes" };
        columns.unwrap_or_default() + &format!(", images={images}")
    }
}

impl Grouped for MdsOptions {
    type Unit = Unpacked;

    const ALWAYS_IN_BLOCKS: bool = true;

    fn is_grouped(&self, file: &File<Shard>) -> bool {
        file.index.is_packed()
    }

    fn decoded_bytes(&self, file: &File<Shard>) -> u64 {
        file.index.unpacked_bytes()
    }

    fn units(&self, file: &File<Shard>) -> impl Iterator<Item = u64> {
        std::iter::once(file.index.samples)
    }

    fn unit(&self, file: &File<Shard>, record: u64) -> Option<(u64, usize)> {
        file.index.is_packed().then_some((0, record as usize))
    }

    fn decode(&self, file: &File<Shard>, _: u64) -> Result<Unpacked> {
        file.unpacked(self.check_hashes)
    }

    fn take(&self, file: &File<Shard>, unpacked: &Unpacked, place: usize, _: u64) -> Result<Element> {
        file.index.read_unpacked(unpacked, place, self.images)
    }
}

named_source!(Mds of Element);
