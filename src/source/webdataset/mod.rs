//! WebDataset's shards: tar archives in which files of one key are a sample.
//!
//! Grouping is that of [webdataset](https://github.com/webdataset/webdataset); headers are those of POSIX and GNU tar.

#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(in crate::source) mod fuzz;
mod header;
mod input;
mod sample;
mod stream;
#[cfg(test)]
mod tests;
mod walk;
mod writer;

use std::ops::Range;

use self::input::{Part, Window};
use self::sample::{Samples, Wanted, split};
pub use self::stream::{WebDatasetIter, WebDatasetStream};
use self::walk::Walk;
pub use self::writer::WebDatasetWriter;
use super::columns::check_choice;
use super::content::{self, Content, Contents, check_plain};
use super::files::Patterns;
use super::formats::Format;
use super::index_cache::{IndexCache, Records};
use super::numbered::{File, Files, Numbered, named_source, source_options};
use super::starts::{Facts, Starts, StartsBuilder};
use crate::element::{Element, Name};
use crate::error::{Error, Result};
use crate::mmap::Access;

/// Samples of WebDataset shards that are not compressed, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of [`Element`]. Those of gzip, zstd and LZ4
/// are read in order, by [`WebDatasetStream`].
///
/// Consecutive files whose paths are equal up to the first dot of their last part are a sample. Its element has that path as
/// `__key__` (text), then a field for each file, in the order of the archive, by what follows the dot in lower case: `jpg`, `seg.png`.
/// As webdataset does, it passes over files without a dot or with one in front, those named `__meta__` and below folders of such
/// names, and whatever is no file. A name twice in one sample is an error.
///
/// Fields are bytes, views of the mapped files. With [`decode`](WebDatasetOptions::decode), by the last part of their name:
///
/// | extension | value |
/// |---|---|
/// | `txt`, `text`, `transcript` | text |
/// | `cls`, `cls2`, `class`, `count`, `index`, `inx`, `id` | scalar `i64` |
/// | `json`, `jsn` | as [`Jsonl`](super::Jsonl) has values |
/// | `npy` | array |
/// | `npz` | tree of arrays |
/// | `jpg`, `jpeg`, `png` | array `u8` (`u16` of PNG's deep colours) `[height, width, channels]`, with the feature `image`; else bytes |
/// | other; pickles, which can run code | bytes |
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the sample and the byte offset of the header: when opened for a damaged or cut archive, as
/// nothing says where the next header is; when a sample is read for one that cannot be decoded.
///
/// # Cost
/// Opening walks over all headers, or takes where samples begin from the [`IndexCache`]; 4 bytes a sample are held. Reading a sample parses
/// its headers. See [`Mapping`](super::Mapping) for what must not be done to the files meanwhile.
pub struct WebDataset(Files<Wanted>);

impl WebDataset {
    /// Opens files, globs or directories (of `.tar` files); fields are bytes.
    ///
    /// # Errors
    /// If nothing is found, a file is compressed, or damaged.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }
}

/// Options of opening WebDataset shards.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open` or `stream`"]
pub struct WebDatasetOptions {
    wanted: Wanted,
    cache: IndexCache,
    access: Access,
}

source_options!(WebDatasetOptions of WebDataset, access at access);

impl WebDatasetOptions {
    /// Whether fields are decoded by their extensions; at first they are bytes.
    pub fn decode(mut self, decode: bool) -> Self {
        self.wanted.decode = decode;
        self
    }

    /// The fields to have, in this order; all of them at first. A sample that lacks one is an error.
    pub fn columns<S: AsRef<str>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.wanted.columns = Some(columns.into_iter().map(|c| Name::new(c.as_ref())).collect());
        self
    }

    /// Whether samples have the path of their shard as a field `__url__`, as webdataset gives it them; at first they do not: data
    /// would be other data wherever the files are moved.
    pub fn url(mut self, url: bool) -> Self {
        self.wanted.url = url;
        self
    }

    /// Sets where the places of the samples are kept; beside the file at first. Of no use to a stream.
    pub fn cache(mut self, cache: IndexCache) -> Self {
        self.cache = cache;
        self
    }

    /// Opens files, globs or directories (of `.tar` files).
    ///
    /// # Errors
    /// As [`WebDataset::open`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if a column is named twice or none is.
    pub fn open(self, patterns: impl Patterns) -> Result<WebDataset> {
        self.check()?;
        let contents = content::open_all(patterns, Format::WebDataset.endings(), self.access)?;
        self.open_contents(contents)
    }

    fn check(&self) -> Result<()> {
        self.wanted.columns.as_deref().map_or(Ok(()), check_choice)
    }

    /// The same of files that are open.
    pub(crate) fn open_contents(self, contents: Contents) -> Result<WebDataset> {
        Files::indexed(self.wanted, contents, Records::Samples, &self.cache, starts).map(WebDataset)
    }

    /// Opens files, globs or directories (of `.tar.gz`, `.tgz`, `.tar.zst`, `.tar.lz4` and `.tar` files), to be read front to back.
    ///
    /// # Errors
    /// If nothing is found, or a file cannot be mapped; those of the columns.
    pub fn stream(self, patterns: impl Patterns) -> Result<WebDatasetStream> {
        self.check()?;
        let contents = content::open_all(patterns, &Format::endings_of("webdataset"), Access::Sequential)?;
        WebDatasetStream::of(contents, self.wanted)
    }

    /// The same, of files that are in memory already.
    #[cfg(any(test, fuzzing))]
    pub(super) fn stream_contents(self, contents: Contents) -> Result<WebDatasetStream> {
        WebDatasetStream::of(contents, self.wanted)
    }
}

/// The bytes at which the samples of an archive begin.
fn starts(content: &Content) -> Result<Starts> {
    let head = content.read(0..content.len().min(4))?;
    check_plain(
        head.as_bytes(),
        "read it as a stream (`WebDatasetOptions::stream`; from Python `IterDataset.webdataset`), or decompress it",
    )?;
    let (mut starts, mut walk) = (StartsBuilder::default(), Walk::whole(Window::new(content)));
    let mut last: Option<String> = None;
    while let Some(member) = walk.next().map_err(|e| e.record(starts.len()))? {
        if let Some((key, _)) = split(&member.path)
            && last.as_deref() != Some(key)
        {
            starts.push(member.start);
            last = Some(key.to_owned());
        }
        walk.pass(&member).map_err(|e| e.record(starts.len().saturating_sub(1)))?;
    }
    Ok(starts.finish(Facts { size: content.len(), ..Facts::default() }))
}

impl Numbered for Wanted {
    type Record = Element;
    type Index = Starts;

    const NAME: &'static str = "webdataset";

    fn len(&self, file: &File<Starts>) -> u64 {
        file.index.len()
    }

    fn read(&self, file: &File<Starts>, record: u64) -> Result<Element> {
        let range = file.range(record).ok_or_else(|| Error::data("no such sample"))?;
        let start = range.start;
        let part = Part::new(file.content.read(range)?, start);
        let sample = Samples::new(Walk::part(part)).next()?;
        self.element(sample.ok_or_else(|| Error::data("no sample").offset(start))?, file.path.as_ref())
    }

    fn stored_bytes(&self, file: &File<Starts>, record: u64) -> Option<u64> {
        file.range(record).map(|range| range.end - range.start)
    }

    fn ranges(&self, file: &File<Starts>, record: u64) -> impl IntoIterator<Item = Range<u64>> {
        file.range(record)
    }

    fn params(&self) -> String {
        self.identity()
    }

    fn index_bytes(starts: &Starts) -> Option<u64> {
        Some(starts.memory_bytes())
    }
}

named_source!(WebDataset of Element);
