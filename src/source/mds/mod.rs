//! MDS: folders of shards, as MosaicML's [streaming](https://github.com/mosaicml/streaming) reads and writes them.

mod codec;
mod encode;
mod encoding;
mod hash;
mod images;
mod index;
mod layout;
mod ndarray;
mod shard;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use self::index::{INDEX, Index};
use self::shard::{Columns, Shard, Unpacked};
pub use self::writer::{MdsWriter, MdsWriterOptions};
pub(crate) use self::writer::{mds_encoding_is_known, mds_encoding_of, mds_index};
use super::columns::check_choice;
use super::content::{self, Content};
use super::decode::IMAGES;
use super::files::{self, FileId, Patterns};
use super::firsts::Firsts;
use super::mmap::Access;
use super::units::{Key, Units};
use crate::cores;
use crate::dataset::map::{Decoded, Many, RandomAccess, Shuffled};
use crate::dataset::{Blocks, Upcoming};
use crate::element::{Element, Name};
use crate::error::{Error, Result};

/// Samples of MDS folders, by number: a [`RandomAccess`] source of [`Element`].
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
pub struct Mds {
    shards: Vec<Shard>,
    /// Hashes that were checked, shard by shard.
    checked: Vec<AtomicBool>,
    firsts: Firsts,
    units: Units<Unpacked>,
    options: MdsOptions,
    identity: String,
}

/// How MDS folders are opened.
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
    /// Those of a compressed file are enough. Known are MD5, SHA-1, SHA-2 and xxHash; others are passed over.
    pub fn check_hashes(mut self, check: bool) -> Self {
        self.check_hashes = check;
        self
    }

    /// Bytes of decompressed shards that are kept; 512 MiB at first. The latest shard is kept whatever its size.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// How the files will be read.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Opens folders, or the `index.json` in them.
    ///
    /// # Errors
    /// As [`Mds::open`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if a column is not there, is named twice, or none is named.
    pub fn open(self, patterns: impl Patterns) -> Result<Mds> {
        self.columns.as_deref().map_or(Ok(()), check_choice)?;
        // Of a folder, the file of that name in it.
        let indices = content::open_all(patterns, &[INDEX], Access::Normal)?;
        self.open_indices(indices)
    }

    /// The same, of each `index.json`.
    fn open_indices(self, indices: Vec<(PathBuf, Content)>) -> Result<Mds> {
        let (mut shards, mut ids) = (Vec::new(), Vec::new());
        for (path, content) in &indices {
            ids.push(content.id(path)?);
            let index =
                content.description().and_then(|text| Index::parse(text.as_bytes())).map_err(|e| e.path(path))?;
            shards.extend(self.open_shards(path, &index)?);
        }
        self.of(ids, shards)
    }

    /// A data set of one shard, in memory.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_bytes(self, index: &[u8], shard: &[u8]) -> Result<Mds> {
        let index = Index::parse(index)?;
        let one = |info| {
            let columns = Arc::new(Columns::of(info, None)?);
            Shard::new(
                Shard::path(Path::new("x"), info),
                crate::element::Buffer::copy_from(shard).into(),
                info,
                columns,
            )
        };
        let shards = index.shards.iter().map(one).collect::<Result<_>>()?;
        self.of(Vec::new(), shards)
    }

    fn of(self, mut ids: Vec<FileId>, shards: Vec<Shard>) -> Result<Mds> {
        let own = shards.iter().map(|shard| shard.content.id(&shard.path)).collect::<Result<Vec<FileId>>>()?;
        ids.extend(own);
        let firsts = Firsts::of(shards.iter().map(|shard| shard.samples))?;
        let bytes = shards.iter().map(Shard::unpacked_bytes).fold(0, u64::saturating_add);
        let units = Units::new(self.cache_bytes, firsts.len(), bytes);
        let checked = shards.iter().map(|_| AtomicBool::new(false)).collect();
        let identity = files::identity(&ids) + &self.identity();
        Ok(Mds { shards, checked, firsts, units, options: self, identity })
    }

    fn open_shards(&self, path: &Path, index: &Index) -> Result<Vec<Shard>> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut columns: Vec<Arc<Columns>> = Vec::with_capacity(index.shards.len());
        for (at, info) in index.shards.iter().enumerate() {
            let own = Columns::of(info, self.columns.as_deref());
            let own = own.map_err(|e| named_shard(at, e).path(path).offset(0))?;
            // Shards of one data set have the same, as a rule.
            let known = columns.last().filter(|last| ***last == own).cloned();
            columns.push(known.unwrap_or_else(|| Arc::new(own)));
        }
        let paths: Vec<PathBuf> = index.shards.iter().map(|info| Shard::path(folder, info)).collect();
        let contents = content::open_each(&paths, self.access);
        let shards = index.shards.iter().zip(columns).zip(paths.into_iter().zip(contents));
        shards.map(|((info, columns), (path, content))| Shard::new(path, content?, info, columns)).collect()
    }

    /// What of it shapes the data, to follow the identity of the files.
    fn identity(&self) -> String {
        let columns =
            self.columns.as_ref().map_or(String::new(), |columns| format!(", columns=[{}]", columns.join(", ")));
        format!("{columns}, images={}", if self.images { IMAGES } else { "bytes" })
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

    /// The options, to change before opening.
    pub fn options() -> MdsOptions {
        MdsOptions::default()
    }

    /// Reads everything: hashes where there are some, the places of samples, and every value that the options ask for.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for the first damage that is found.
    ///
    /// # Cost
    /// All bytes of all shards, one shard a thread.
    pub fn verify(&self) -> Result<()> {
        let verify = |shard: &Shard| shard.verify(shard.has_hashes(), self.options.images);
        cores::on_all(|| self.shards.par_iter().try_for_each(verify))
    }

    fn is_packed(&self) -> bool {
        self.shards.iter().any(Shard::is_packed)
    }

    fn sample(&self, index: u64) -> Result<Element> {
        let (at, record) = self.firsts.find(index)?;
        if self.shards[at].is_packed() {
            let read = |unpacked: &Unpacked, place, index| self.read_unpacked(unpacked, place, index);
            return self.units.read_one(index, |index| self.key(index), |index| self.unpack(index), read);
        }
        self.read_plain(at, record).map_err(|e| self.fault(index, e))
    }

    /// The shard of a sample, and its place there.
    fn key(&self, index: u64) -> Result<(Key, usize)> {
        let (at, record) = self.firsts.find(index)?;
        Ok(((at, 0), record as usize))
    }

    /// The shard of a sample, decompressed.
    fn unpack(&self, index: u64) -> Result<Unpacked> {
        let (at, _) = self.firsts.find(index)?;
        self.shards[at].unpacked(self.options.check_hashes).map_err(|e| self.fault(index, e))
    }

    /// A sample of a decompressed shard, out of what is held of that.
    fn read_unpacked(&self, unpacked: &Unpacked, place: usize, index: u64) -> Result<Element> {
        let (at, _) = self.firsts.find(index)?;
        self.shards[at].read_unpacked(unpacked, place, self.options.images).map_err(|e| self.fault(index, e))
    }

    /// An error of a sample.
    #[cold]
    fn fault(&self, index: u64, error: Error) -> Error {
        let Ok((at, record)) = self.firsts.find(index) else { return error };
        error.path(&self.shards[at].path).record(record)
    }

    /// A sample of a shard that is not compressed.
    fn read_plain(&self, at: usize, record: u64) -> Result<Element> {
        let (shard, check) = (&self.shards[at], self.options.check_hashes);
        // Once is enough: the mapping stays what it is.
        if check && !self.checked[at].load(Ordering::Relaxed) {
            shard.unpack(true)?;
            self.checked[at].store(true, Ordering::Relaxed);
        }
        shard.read(record, self.options.images)
    }
}

impl Mds {
    /// The shards that lie far away, and ranges where these samples lie in them.
    fn parts(&self, indices: &[u64]) -> impl Iterator<Item = (usize, std::ops::Range<u64>)> {
        let places = indices.iter().filter_map(|&index| self.firsts.find(index).ok());
        places.filter_map(|(at, record)| Some((at, self.shards[at].far(record)?)))
    }

    /// The same, without a wait for anything.
    fn next_parts(&self, indices: &[u64]) -> impl Iterator<Item = (usize, std::ops::Range<u64>)> {
        let places = indices.iter().filter_map(|&index| self.firsts.find(index).ok());
        places.filter_map(|(at, record)| Some((at, self.shards[at].next(record)?)))
    }
}

impl RandomAccess for Mds {
    type Record = Element;

    fn len(&self) -> u64 {
        self.firsts.len()
    }

    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<Element> {
        self.sample(index)
    }

    /// Shard by shard, so that each is decompressed once.
    fn read_many(&self, indices: &[u64]) -> Many<Element> {
        content::fetch_all(self.parts(indices), |at| &self.shards[at].content);
        if !self.shards.iter().all(Shard::is_packed) {
            return Many::one_by_one(indices, |index| self.sample(index).map(Some));
        }
        let read = |unpacked: &Unpacked, place, index| self.read_unpacked(unpacked, place, index);
        self.units.read_many(indices, |index| self.key(index), |index| self.unpack(index), read)
    }

    fn reads_together(&self) -> bool {
        self.is_packed() || self.reads_far()
    }

    fn reads_far(&self) -> bool {
        content::any_far(self.shards.iter().map(|shard| &shard.content))
    }

    /// Where samples of a shard lie is known once one of them was read: before that the shard's table is what will be.
    fn looks_ahead(&self) -> Option<u64> {
        self.reads_together().then(|| self.units.looks_ahead(self.reads_far()))
    }

    fn will_read(&self, next: Upcoming<'_>) {
        let is_packed = |&((at, _), _): &(Key, usize)| self.shards[at].is_packed();
        self.units.tell(next, |index| self.key(index).ok().filter(is_packed));
        content::will_read(self.next_parts(next.indices()), next, |at| &self.shards[at].content);
    }

    fn take_decoded(&self) -> Option<Decoded> {
        self.units.take_decoded()
    }

    fn blocks(&self) -> Option<Blocks> {
        self.units.blocks((0..self.shards.len()).map(|at| self.firsts.count(at)))
    }

    fn if_shuffled(&self) -> Option<Shuffled> {
        self.units.if_shuffled(self.shards.len() as u64)
    }

    fn name(&self) -> &'static str {
        "mds"
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(if self.is_packed() { self.units.budget() as u64 } else { 0 })
    }
}

impl fmt::Debug for Mds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mds({} samples, {} shards)", self.len(), self.shards.len())
    }
}
