//! MDS: folders of shards in the format of MosaicML's [streaming](https://github.com/mosaicml/streaming).

mod codec;
mod encode;
mod encoding;
#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
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
use super::columns::{check_choice, to_names};
use super::content::{self, Content, Contents};
use super::decode::IMAGES;
use super::files::{FileId, Patterns};
use super::numbered::{File, Files, Grouped, GroupedFiles, Numbered, named_source, reader, source_options};
use crate::cores;
#[cfg(any(test, fuzzing))]
use crate::element::Buffer;
use crate::element::{Element, Name};
use crate::error::{Error, Result};
use crate::mmap::Access;
use crate::place::Location;

/// Samples of MDS folders: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of [`Element`].
///
/// A folder has an `index.json` of version 2 and the shards it names. Several folders (streaming's streams) are
/// concatenated in order.
///
/// | encoding | value |
/// |---|---|
/// | `bytes` | bytes |
/// | `str` | text |
/// | `int` | scalar `i64` |
/// | `uint8` … `float64` | scalar of that type |
/// | `str_int` | scalar `i64`, or `u64` above its range; longer numbers are errors |
/// | `str_float` | scalar `f64` |
/// | `str_decimal` | text, exact: `-12.50` |
/// | `json` | as in [`Jsonl`](super::Jsonl) |
/// | `ndarray`, `ndarray:float32`, `ndarray:float32:3,4` | array |
/// | `jpeg`, `png` | array `[height, width, channels]` of `u8`, or `u16` for 16-bit PNG; see below |
/// | `pil` | array `[height, width, channels]` of the mode's type; the format omits palettes |
/// | `list[jpeg]`, `list[png]`, `list[pil]`, `jpeg_array` | list of images as above |
///
/// JPEG and PNG images stay bytes if [`images`](MdsOptions::images) is false, and in builds without the feature
/// `image`.
///
/// A column of pickles (`pkl`) is [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) unless it is excluded by
/// [`columns`](MdsOptions::columns), because pickles can run code.
///
/// # Errors
/// Damage is [`ErrorKind::Data`](crate::ErrorKind::Data) with file, record and byte offset. Other samples stay
/// readable. Opening fails if a shard is missing or its length differs from `index.json`. Hashes are checked if
/// [`check_hashes`](MdsOptions::check_hashes) is set.
///
/// # Cost
/// Opening reads `index.json` and maps the shards. A sample of an uncompressed shard is read separately, and values of
/// bytes are views of the file.
///
/// A compressed shard is decompressed whole when any of its samples is read. Decompressed shards are cached up to
/// [`cache_bytes`](MdsOptions::cache_bytes) and shared by all threads. Reading in order decompresses each shard once.
///
/// Shuffled reading of data larger than the cache keeps only the samples that are due soon, as many as fit. A shard is
/// decompressed once for all of its kept samples, so a larger cache means fewer decompressions. Shuffle windows
/// instead, or decompress the files: an uncompressed file next to its compressed copy takes precedence.
///
/// Do not change the files while they are read: see [`Mapping`](super::Mapping).
pub struct Mds(GroupedFiles<MdsOptions>);

/// Options for reading MDS folders.
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
    setters! {
        /// Sets the columns to read, in this order. Default: all columns.
        pub columns<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) => columns = Some(to_names(columns));

        /// Sets whether JPEG and PNG images are decoded to arrays. Default: true.
        ///
        /// Without the feature `image`, these images always stay bytes.
        pub images: bool;

        /// Sets whether to check the hashes in `index.json`. Default: false.
        ///
        /// The first read of a shard then reads and hashes all of it. For a compressed shard, hashes of the compressed
        /// file are sufficient. MD5, SHA-1, SHA-2 and xxHash are supported. Unknown hashes are ignored if at least one
        /// is known.
        pub check_hashes: bool;

        /// Sets the maximum memory for decompressed shards, in bytes. Default: 512 MiB. Always keeps the latest shard.
        pub cache_bytes: usize;
    }

    /// Opens folders, or the `index.json` files in them.
    ///
    /// # Errors
    /// If nothing is found, an `index.json` is damaged, or a shard is missing or has a different length than listed.
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the chosen columns are empty, repeated or missing in the
    /// data.
    pub fn open(self, patterns: impl Patterns) -> Result<Mds> {
        self.columns.as_deref().map_or(Ok(()), check_choice)?;
        // A folder stands for its `index.json`.
        let indices = content::open_all(&patterns, &[INDEX], Access::Normal)?;
        self.open_indices(indices, &patterns)
    }

    /// Opens the shards of each `index.json`.
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

    /// Opens shards in memory.
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
            let own = own.map_err(|e| e.of(&format!("shard {at}")).path(path).offset(0))?;
            // Shards of one dataset usually have equal columns.
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

impl Mds {
    /// Reads all shards. Checks the hashes, if any, and the positions of samples, and decodes all values as configured.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for the first damage found.
    ///
    /// # Cost
    /// Reads all bytes of all shards, one shard per thread.
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

reader! {
    /// Opens MDS folders, to read these columns: see [`Mds`](crate::source::Mds).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # use gristmill::{Array, Element, sink::{Sink, SinkFormat}};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-mds-{}", std::process::id()));
    /// # let mut sink = Sink::options(SinkFormat::Mds).open(&dir)?;
    /// # sink.write(Element::new().with("id", Array::scalar(7_i64)).with("text", "oat"))?;
    /// # sink.finish()?;
    /// assert_eq!(gristmill::mds(&dir, ["text"])?.collect()?[0].text("text")?, "oat");
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    mds: Mds by columns
}
