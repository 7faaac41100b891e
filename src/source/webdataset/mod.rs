//! WebDataset's shards: tar archives in which files of one key are a sample.
//!
//! Grouping is that of [webdataset](https://github.com/webdataset/webdataset); headers are those of POSIX and GNU tar.

mod header;
mod input;
mod sample;
mod stream;
#[cfg(test)]
mod tests;
mod walk;
mod writer;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use self::input::{Part, Window};
use self::sample::{Samples, Wanted, split};
pub use self::stream::{WebDatasetIter, WebDatasetStream};
use self::walk::Walk;
pub use self::writer::WebDatasetWriter;
use super::columns::check_choice;
use super::content::{self, Content, check_plain};
use super::files::{self, Patterns};
use super::firsts::Firsts;
use super::format::Format;
use super::index_cache::{IndexCache, Records, load_or_find};
use super::mmap::Access;
use super::starts::{Facts, Starts, StartsBuilder};
use crate::dataset::Upcoming;
use crate::dataset::map::{Many, RandomAccess};
use crate::element::{Element, Name};
use crate::error::{Error, Result};

/// Samples of WebDataset shards that are not compressed, by number: a [`RandomAccess`] source of [`Element`]. Those of gzip, zstd and LZ4
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
pub struct WebDataset {
    files: Vec<Shard>,
    firsts: Firsts,
    /// Whether some come from far away.
    far: bool,
    wanted: Wanted,
    identity: String,
}

struct Shard {
    path: PathBuf,
    url: String,
    content: Content,
    starts: Starts,
}

impl WebDataset {
    /// Opens files, globs or directories (of `.tar` files); fields are bytes.
    ///
    /// # Errors
    /// If nothing is found, a file is compressed, or damaged.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }

    /// The options, to change before opening.
    pub fn options() -> WebDatasetOptions {
        WebDatasetOptions::default()
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

    /// Sets how the files will be read.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
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
    pub(crate) fn open_contents(self, contents: Vec<(PathBuf, Content)>) -> Result<WebDataset> {
        let wanted = self.wanted;
        let (starts, ids) = load_or_find(&contents, Records::Samples, &self.cache, |at| starts(&contents[at].1))?;
        let shard = |((path, content), starts): ((PathBuf, Content), Starts)| {
            let url = path.to_string_lossy().into_owned();
            Shard { path, url, content, starts }
        };
        let files: Vec<Shard> = contents.into_iter().zip(starts).map(shard).collect();
        let firsts = Firsts::of(files.iter().map(|file| file.starts.len()))?;
        let identity = files::identity(&ids) + &wanted.identity();
        let far = content::any_far(files.iter().map(|file| &file.content));
        Ok(WebDataset { files, firsts, far, wanted, identity })
    }

    /// Opens files, globs or directories (of `.tar.gz`, `.tgz`, `.tar.zst`, `.tar.lz4` and `.tar` files), to be read front to back.
    ///
    /// # Errors
    /// If nothing is found, or a file cannot be mapped; those of the columns.
    pub fn stream(self, patterns: impl Patterns) -> Result<WebDatasetStream> {
        self.check()?;
        let endings = [Format::WebDatasetStream.endings(), Format::WebDataset.endings()].concat();
        WebDatasetStream::of(content::open_all(patterns, &endings, Access::Sequential)?, self.wanted)
    }

    /// The same, of files that are in memory already.
    #[cfg(any(test, fuzzing))]
    pub(super) fn stream_contents(self, contents: Vec<(PathBuf, Content)>) -> Result<WebDatasetStream> {
        WebDatasetStream::of(contents, self.wanted)
    }
}

impl Shard {
    /// The bytes of a sample: to the next one, or to the end.
    fn place(&self, record: u64) -> Option<Range<u64>> {
        let start = self.starts.get(record)?;
        Some(start..self.starts.get(record + 1).unwrap_or(self.content.len()))
    }

    fn read(&self, record: u64, wanted: &Wanted) -> Result<Element> {
        let place = self.place(record).ok_or_else(|| Error::data("no such sample"))?;
        let start = place.start;
        let part = Part::new(self.content.read(place)?, start);
        let sample = Samples::new(Walk::part(part)).next()?;
        wanted.element(sample.ok_or_else(|| Error::data("no sample").offset(start))?, &self.url)
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

impl WebDataset {
    /// The files and ranges where these samples lie.
    fn parts(&self, indices: &[u64]) -> impl Iterator<Item = (usize, std::ops::Range<u64>)> {
        let places = indices.iter().filter_map(|&index| self.firsts.find(index).ok());
        places.filter_map(|(at, record)| Some((at, self.files[at].place(record)?)))
    }
}

impl RandomAccess for WebDataset {
    type Record = Element;

    fn len(&self) -> u64 {
        self.firsts.len()
    }

    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<Element> {
        let (at, record) = self.firsts.find(index)?;
        let file = &self.files[at];
        file.read(record, &self.wanted).map_err(|e| e.path(&file.path).record(record))
    }

    /// Samples that lie far away are fetched all at once, not one after the other.
    fn read_many(&self, indices: &[u64]) -> Many<Element> {
        if self.far {
            content::fetch_all(self.parts(indices), |at| &self.files[at].content);
        }
        Many::one_by_one(indices, |index| self.read(index).map(Some))
    }

    fn reads_together(&self) -> bool {
        self.far
    }

    fn reads_far(&self) -> bool {
        self.far
    }

    fn will_read(&self, next: Upcoming<'_>) {
        content::will_read(self.parts(next.indices()), next, |at| &self.files[at].content);
    }

    fn name(&self) -> &'static str {
        "webdataset"
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.files.iter().map(|file| file.starts.memory_bytes()).sum())
    }
}

impl fmt::Debug for WebDataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebDataset({} samples, {} files)", self.len(), self.files.len())
    }
}
