//! WebDataset shards: tar archives in which files with a common key form a sample.
//!
//! Files are grouped as in [webdataset](https://github.com/webdataset/webdataset). Headers follow POSIX and GNU tar.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
mod header;
mod input;
mod sample;
mod stream;
#[cfg(test)]
mod tests;
mod walk;
mod writer;

use self::input::{Part, Window};
use self::sample::{Samples, Wanted, split};
pub use self::stream::{WebDatasetIter, WebDatasetStream};
use self::walk::Walk;
pub use self::writer::WebDatasetWriter;
use super::columns::{check_choice, to_names};
use super::content::{self, Content, Contents, check_plain};
use super::files::Patterns;
use super::formats::Format;
use super::index_cache::{IndexCache, Records};
use super::numbered::{File, Files, Numbered, by_starts, named_source, reader, source_options};
use super::starts::{Facts, Starts, StartsBuilder};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::mmap::Access;

/// Samples of uncompressed WebDataset shards, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source
/// of [`Element`]. Shards in gzip, zstd and LZ4 are read in order, by [`WebDatasetStream`].
///
/// A sample consists of consecutive files whose paths are equal up to the first dot of their last part. Its element has
/// this path as `__key__` (text), then a field for each file, in the order of the archive. The name of a field is the
/// part after the dot, in lower case: `jpg`, `seg.png`. Like webdataset, the source skips files without a dot or with a
/// leading dot, paths whose first part is a name like `__meta__`, and members that are not files. A repeated name in a
/// sample is an error.
///
/// Fields are bytes, as views of the mapped files. [`decode`](WebDatasetOptions::decode) converts them by the last part
/// of their name:
///
/// | extension | value |
/// |---|---|
/// | `txt`, `text`, `transcript` | text |
/// | `cls`, `cls2`, `class`, `count`, `index`, `inx`, `id` | scalar `i64` |
/// | `json`, `jsn` | value with the types of [`Jsonl`](super::Jsonl) |
/// | `npy` | array |
/// | `npz` | tree of arrays |
/// | `jpg`, `jpeg`, `png`, with feature `image` | array `u8` (`u16` for 16-bit PNG) `[height, width, channels]` |
/// | others, and pickles, which can run code | bytes |
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the sample and the byte offset of its header. Opening fails if an
/// archive is damaged or cut, because the place of the next header is then unknown. Reading fails if a sample cannot be
/// decoded.
///
/// # Cost
/// Opening scans all headers, or loads the starts of the samples from the [`IndexCache`]. Holds 4 bytes per sample.
/// Reading a sample parses its headers. See [`Mapping`](super::Mapping) for the rules on changing mapped files.
pub struct WebDataset(Files<Wanted>);

/// Options for opening WebDataset shards.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open` or `stream`"]
pub struct WebDatasetOptions {
    wanted: Wanted,
    cache: IndexCache,
    access: Access,
}

source_options!(WebDatasetOptions of WebDataset, access at access);

impl WebDatasetOptions {
    setters! {
        /// Sets whether fields are decoded by their extensions. Default: `false`, fields are bytes.
        pub decode(decode: bool) => wanted.decode = decode;

        /// Sets the fields to read, in this order. Default: all fields. A sample that lacks a field is an error.
        pub columns<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) => wanted.columns = Some(to_names(columns));

        /// Sets whether samples have the path of their shard as a field `__url__`, as in webdataset. Default: `false`,
        /// because the data would change if the files were moved.
        pub url(url: bool) => wanted.url = url;

        /// Sets the place of the index of samples. Default: beside the file. Has no effect on a stream.
        pub cache: IndexCache;
    }

    /// Opens files, globs or directories (of `.tar` files).
    ///
    /// # Errors
    /// An error if no file is found, or if a file is compressed or damaged;
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the list of columns is empty or repeats a column.
    pub fn open(self, patterns: impl Patterns) -> Result<WebDataset> {
        self.check()?;
        let contents = content::open_all(patterns, Format::WebDataset.endings(), self.access)?;
        self.open_contents(contents)
    }

    fn check(&self) -> Result<()> {
        self.wanted.columns.as_deref().map_or(Ok(()), check_choice)
    }

    /// Creates the source from open files.
    pub(crate) fn open_contents(self, contents: Contents) -> Result<WebDataset> {
        Files::indexed(self.wanted, contents, Records::Samples, &self.cache, starts).map(WebDataset)
    }

    /// Opens files, globs or directories (of `.tar.gz`, `.tgz`, `.tar.zst`, `.tar.lz4` and `.tar` files), for
    /// sequential reads.
    ///
    /// # Errors
    /// An error if no file is found, or if a file cannot be mapped; [`ErrorKind::Config`](crate::ErrorKind::Config) if
    /// the list of columns is empty or repeats a column.
    pub fn stream(self, patterns: impl Patterns) -> Result<WebDatasetStream> {
        self.check()?;
        let contents = content::open_all(patterns, &Format::endings_of("webdataset"), Access::Sequential)?;
        WebDatasetStream::of(contents, self.wanted)
    }

    /// Creates the stream from open files.
    #[cfg(any(test, fuzzing))]
    pub(super) fn stream_contents(self, contents: Contents) -> Result<WebDatasetStream> {
        WebDatasetStream::of(contents, self.wanted)
    }
}

/// Finds the starts of the samples in an archive.
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

    by_starts!(Starts, range);

    fn read(&self, file: &File<Starts>, record: u64) -> Result<Element> {
        let range = file.range(record).ok_or_else(|| Error::data("no such sample"))?;
        let start = range.start;
        let part = Part { bytes: file.content.read(range)?, at: 0, start };
        let sample = Samples::new(Walk::part(part)).next()?;
        self.element(sample.ok_or_else(|| Error::data("no sample").offset(start))?, file.path.as_ref())
    }

    fn params(&self) -> String {
        self.identity()
    }
}

named_source!(WebDataset of Element);

reader! {
    /// Opens WebDataset shards, to read these fields as bytes: see [`WebDataset`](crate::source::WebDataset).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # use gristmill::{Array, Element, sink::{Sink, SinkFormat}};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-webdataset-{}", std::process::id()));
    /// # let mut sink = Sink::options(SinkFormat::WebDataset).open(&dir)?;
    /// # sink.write(Element::new().with("txt", "oat"))?;
    /// # sink.finish()?;
    /// let samples = gristmill::webdataset(&dir, ["txt"])?.collect()?;
    /// assert_eq!(samples[0].get("txt").unwrap().nbytes(), 3);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    webdataset: WebDataset by columns
}
