//! Text files, a record per line.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;

use std::ops::Range;
use std::path::Path;

use super::content::{self, Content, Contents, check_plain};
use super::files::Patterns;
use super::formats::Format;
use super::index::LineIndex;
use super::index_cache::{IndexCache, Records};
use super::index_stream;
use super::numbered::{File, Files, Numbered, by_starts, named_source, reader, source_options};
use super::signs::no_text;
use super::starts::Starts;
use super::utf8;
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::mmap::Access;

/// Options for opening text files, shared by [`Lines`] and [`Jsonl`](super::Jsonl).
#[derive(Clone, Debug, Default)]
pub(crate) struct LineOptions {
    pub(crate) cache: IndexCache,
    pub(crate) access: Access,
    pub(crate) keep_blank: bool,
}

impl LineOptions {
    /// Opens text files. `format` converts each line into a record.
    pub(crate) fn open<F: Numbered<Index = LineIndex>>(&self, format: F, contents: Contents) -> Result<Files<F>> {
        let records = if self.keep_blank { Records::AllLines } else { Records::Lines };
        Files::indexed(format, contents, records, &self.cache, |file| starts(file, self.keep_blank))
    }
}

from_as!(Starts => LineIndex, |starts| Self(starts));

/// A line and its place.
pub(crate) struct Line<'a> {
    file: &'a File<LineIndex>,
    record: u64,
    start: usize,
    bytes: Bytes<'a>,
}

enum Bytes<'a> {
    Here(&'a [u8]),
    /// The line, followed by its line end and skipped lines.
    Read(Buffer),
}

impl File<LineIndex> {
    #[inline]
    pub(crate) fn line(&self, record: u64) -> Result<Line<'_>> {
        let other = || other_file(self.path.as_ref(), record);
        if let Some(all) = self.content.here() {
            let (start, bytes) = self.index.line(record, all).ok_or_else(other)?;
            return Ok(Line { file: self, record, start, bytes: Bytes::Here(bytes) });
        }
        let place = self.line_range(record).ok_or_else(other)?;
        let start = place.start as usize;
        let bytes = self.content.read(place).map_err(|e| e.path(&self.path).record(record))?;
        Ok(Line { file: self, record, start, bytes: Bytes::Read(bytes) })
    }

    /// Describes the place of a line. Names the line number if it is known without reading all previous lines.
    pub(super) fn line_in_words(&self, record: u64) -> String {
        match self.index.has_gaps() {
            true => format!("record {record} of {}", self.path.as_ref().display()),
            false => format!("{}:{}", self.path.as_ref().display(), record + 1),
        }
    }

    /// Returns the byte range of a line, including its line end and skipped lines that follow.
    pub(crate) fn line_range(&self, record: u64) -> Option<Range<u64>> {
        self.index.place(record, self.content.len())
    }
}

/// Returns the error for an index that belongs to another file.
#[cold]
pub(super) fn other_file(path: &Path, record: u64) -> Error {
    let error = Error::data("the index is of another file, or the file was changed").path(path).record(record);
    error.help("open it again; where that does not help, delete the index, `.gmi` or `.NAME.gmi` beside it")
}

/// Finds the starts of the lines in a file.
fn starts(file: &Content, keep_blank: bool) -> Result<Starts> {
    check_text(file, "read it as a stream (`JsonlStream`, `LineStream`), or decompress it")?;
    let index = match file.here() {
        Some(all) => LineIndex::build(all, keep_blank),
        None => index_stream::build(file.stream(), keep_blank).map_err(content::untold)?,
    };
    Ok(index.0)
}

/// Refuses a file whose magic number is not of text. `help` is the remedy for a compressed file.
pub(super) fn check_text(file: &Content, help: &'static str) -> Result<()> {
    let head = file.read(0..file.len().min(8))?;
    check_plain(head.as_bytes(), help)?;
    match no_text(head.as_bytes()) {
        Some((what, help)) => Err(Error::data(format!("is {what}, and holds no text")).help(help)),
        None => Ok(()),
    }
}

impl Line<'_> {
    /// Returns the line as text.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) at the first byte that is not UTF-8.
    #[inline]
    pub(crate) fn text(&self) -> Result<&str> {
        let bytes = match &self.bytes {
            Bytes::Here(bytes) => bytes,
            Bytes::Read(bytes) => self.file.index.cut(bytes.as_bytes()),
        };
        utf8::text(bytes).map_err(|(at, message)| self.fault(at, message))
    }

    /// Returns an error at byte `at` of this line.
    #[cold]
    pub(crate) fn fault(&self, at: usize, message: impl Into<String>) -> Error {
        let (index, record) = (&self.file.index, self.record);
        let error = Error::data(message).path(&self.file.path);
        let error = match self.file.content.here() {
            Some(all) => error.line(index.line_number(record, all)),
            // Counting the previous lines would read all of them.
            None if index.has_gaps() => error.record(record),
            None => error.line(record + 1),
        };
        error.offset((self.start + at) as u64)
    }
}

/// Lines of text files, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of `String`.
///
/// Lines end with LF or CRLF, which is not part of the record. The last line needs no line end. Lines of only white
/// space are skipped, unless [`LinesOptions::blank_lines`] keeps them. A byte order mark at the start of a file is
/// dropped.
///
/// ```
/// use gristmill::source::Lines;
/// use gristmill::{dataset::map::Source, prelude::*};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-lines-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("a.txt");
/// std::fs::write(&path, "one\n\ntwo\r\n").unwrap();
/// let ds = Source::new(Lines::open(&path)?);
/// assert_eq!(ds.collect()?, ["one", "two"]);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with file, line and byte offset, on reading a line that is not UTF-8.
///
/// # Cost
/// Opening maps the files. It finds their lines in parallel, or loads them from the [`IndexCache`]. Holds 4 bytes per
/// line. Reading copies a single line. See [`Mapping`](super::Mapping) for the rules on changing mapped files.
pub struct Lines(Files<Plain>);

/// Options for opening [`Lines`].
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct LinesOptions(LineOptions);

source_options!(LinesOptions of Lines, access at 0.access);

impl LinesOptions {
    /// Sets the place of the line index. Default: beside the file.
    pub fn cache(mut self, cache: IndexCache) -> Self {
        self.0.cache = cache;
        self
    }

    /// Sets whether blank lines are records. Default: `false`.
    pub fn blank_lines(mut self, keep: bool) -> Self {
        self.0.keep_blank = keep;
        self
    }

    /// Opens files, globs or directories (of `.txt` files).
    ///
    /// # Errors
    /// An error if no file is found, or if a file cannot be mapped.
    pub fn open(self, patterns: impl Patterns) -> Result<Lines> {
        let contents = content::open_all(patterns, Format::Lines.endings(), self.0.access)?;
        self.open_contents(contents)
    }

    /// Creates the source from open files.
    pub(crate) fn open_contents(self, contents: Contents) -> Result<Lines> {
        self.0.open(Plain { keep_blank: self.0.keep_blank }, contents).map(Lines)
    }
}

/// Format of plain lines.
struct Plain {
    keep_blank: bool,
}

impl Numbered for Plain {
    type Record = String;
    type Index = LineIndex;

    const NAME: &'static str = "lines";

    by_starts!(LineIndex, line_range);

    fn read(&self, file: &File<LineIndex>, record: u64) -> Result<String> {
        file.line(record)?.text().map(str::to_owned)
    }

    fn place_in_words(&self, file: &File<LineIndex>, record: u64) -> String {
        file.line_in_words(record)
    }

    /// Returns the error unchanged, because errors of lines already contain their place.
    fn locate(&self, _: &File<LineIndex>, _: u64, error: Error) -> Error {
        error
    }

    fn params(&self) -> String {
        if self.keep_blank { ", blank_lines=true".to_owned() } else { String::new() }
    }
}

named_source!(Lines of String);

reader! {
    /// Opens text files, with a record for each line: see [`Lines`](crate::source::Lines).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-lines-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("a.txt");
    /// std::fs::write(&path, "oat\nrye\n").unwrap();
    /// assert_eq!(gristmill::lines(&path)?.map(|line| line.len()).collect()?, [3, 3]);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    lines: Lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::RandomAccess;

    #[test]
    fn files_follow_each_other_and_errors_say_where() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
        write("a.txt", b"\xef\xbb\xbfone\ntwo\r\n\r\n");
        write("b.txt", b"");
        write("c.txt", b"\n \nthr\xffee\nfour");
        let lines = Lines::open(dir.path()).unwrap();
        assert_eq!(lines.len(), 4);
        assert_eq!([0, 1, 3].map(|i| lines.read(i).unwrap()), ["one", "two", "four"]);
        let error = lines.read(2).unwrap_err().to_string();
        assert!(error.ends_with("c.txt: line 3: byte 6: byte 0xff is not UTF-8"), "{error}");
        assert!(lines.read(4).is_err());
        assert!(lines.facts().identity.starts_with("a.txt … c.txt, files=3, bytes="), "{}", lines.facts().identity);

        let all = Lines::options().blank_lines(true).open(dir.path()).unwrap();
        assert_eq!(all.len(), 7);
        assert_eq!(all.read(2).unwrap(), "");
        assert_ne!(all.facts().identity, lines.facts().identity);
    }

    #[cfg(feature = "compress")]
    #[test]
    fn a_compressed_file_is_refused_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        std::fs::write(&path, b"\x1f\x8b\x08rest").unwrap();
        let error = Lines::open(&path).unwrap_err();
        assert!(error.message().contains("gzip") && error.help_text().unwrap().contains("stream"), "{error:?}");
    }
}
