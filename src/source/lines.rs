//! Text files, a record a line.

use std::fmt;
use std::path::{Path, PathBuf};

use super::content::{self, Content, check_plain};
use super::files::{self, Patterns};
use super::firsts::Firsts;
use super::index::LineIndex;
use super::index_cache::{IndexCache, Records, load_or_find};
use super::index_stream;
use super::mmap::Access;
use super::starts::Starts;
use super::utf8;
use crate::dataset::Upcoming;
use crate::dataset::map::{Many, RandomAccess};
use crate::element::Buffer;
use crate::error::{Error, Result};

/// How text files are opened: the part that [`Lines`] and [`Jsonl`](super::Jsonl) share.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineOptions {
    pub(crate) cache: IndexCache,
    pub(crate) access: Access,
    pub(crate) keep_blank: bool,
}

/// Text files that are mapped and indexed: lines by number, over all of them.
pub(crate) struct LineFiles {
    files: Vec<LineFile>,
    firsts: Firsts,
    /// Whether some come from far away.
    far: bool,
    identity: String,
}

struct LineFile {
    path: PathBuf,
    content: Content,
    index: LineIndex,
}

/// One line, and where it is.
pub(crate) struct Line<'a> {
    file: &'a LineFile,
    record: u64,
    start: usize,
    bytes: Bytes<'a>,
}

enum Bytes<'a> {
    Here(&'a [u8]),
    /// With what follows the line.
    Read(Buffer),
}

impl LineFiles {
    pub(crate) fn open(patterns: impl Patterns, extensions: &[&str], options: &LineOptions) -> Result<Self> {
        Self::of(content::open_all(patterns, extensions, options.access)?, options)
    }

    /// The same of files that are open.
    pub(crate) fn of(contents: Vec<(PathBuf, Content)>, options: &LineOptions) -> Result<Self> {
        let records = if options.keep_blank { Records::AllLines } else { Records::Lines };
        let find = |at: usize| starts(&contents[at].1, options.keep_blank);
        let (starts, ids) = load_or_find(&contents, records, &options.cache, find)?;
        let file = |((path, content), starts)| LineFile { path, content, index: LineIndex(starts) };
        let files: Vec<LineFile> = contents.into_iter().zip(starts).map(file).collect();
        let firsts = Firsts::of(files.iter().map(|file| file.index.len()))?;
        let far = content::any_far(files.iter().map(|file| &file.content));
        Ok(Self { files, firsts, far, identity: files::identity(&ids) })
    }

    pub(crate) fn len(&self) -> u64 {
        self.firsts.len()
    }

    #[inline]
    pub(crate) fn line(&self, index: u64) -> Result<Line<'_>> {
        let (at, record) = self.firsts.find(index)?;
        self.files[at].line(record)
    }

    /// Whether lines come from far away, so that many at once come in less time than one after the other.
    pub(crate) fn is_far(&self) -> bool {
        self.far
    }

    /// Begins to fetch these lines, where they lie far away.
    pub(crate) fn fetch(&self, indices: &[u64]) {
        if self.far {
            content::fetch_all(self.parts(indices), |at| &self.files[at].content);
        }
    }

    /// Says that these lines will be read.
    pub(crate) fn will_read(&self, next: Upcoming<'_>) {
        content::will_read(self.parts(next.indices()), next, |at| &self.files[at].content);
    }

    /// The files and ranges where these lines lie.
    fn parts(&self, indices: &[u64]) -> impl Iterator<Item = (usize, std::ops::Range<u64>)> {
        indices.iter().filter_map(|&index| {
            let (at, record) = self.firsts.find(index).ok()?;
            let file = &self.files[at];
            Some((at, file.index.place(record, file.content.len())?))
        })
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.files.iter().map(|f| f.index.memory_bytes()).sum()
    }
}

impl LineFile {
    #[inline]
    fn line(&self, record: u64) -> Result<Line<'_>> {
        let other = || other_file(&self.path, record);
        if let Some(all) = self.content.here() {
            let (start, bytes) = self.index.line(record, all).ok_or_else(other)?;
            return Ok(Line { file: self, record, start, bytes: Bytes::Here(bytes) });
        }
        let place = self.index.place(record, self.content.len()).ok_or_else(other)?;
        let start = place.start as usize;
        let bytes = self.content.read(place).map_err(|e| e.path(&self.path).record(record))?;
        Ok(Line { file: self, record, start, bytes: Bytes::Read(bytes) })
    }
}

/// An error where a file is not the one of which its index was made.
#[cold]
pub(super) fn other_file(path: &Path, record: u64) -> Error {
    let error = Error::data("the index is of another file, or the file was changed").path(path).record(record);
    error.help("open it again; where that does not help, delete the index, `.gmi` or `.NAME.gmi` beside it")
}

/// Where the lines of a file start.
fn starts(file: &Content, keep_blank: bool) -> Result<Starts> {
    let head = file.read(0..file.len().min(4))?;
    check_plain(head.as_bytes(), "read it as a stream (`JsonlStream`, `LineStream`), or decompress it")?;
    let index = match file.here() {
        Some(all) => LineIndex::build(all, keep_blank),
        None => index_stream::build(file.stream(), keep_blank).map_err(content::untold)?,
    };
    Ok(index.0)
}

impl fmt::Debug for LineFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines in {} files", self.len(), self.files.len())
    }
}

impl Line<'_> {
    /// The line as text.
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

    /// An error at byte `at` of this line.
    #[cold]
    pub(crate) fn fault(&self, at: usize, message: impl Into<String>) -> Error {
        let (index, record) = (&self.file.index, self.record);
        let error = Error::data(message).path(&self.file.path);
        let error = match self.file.content.here() {
            Some(all) => error.line(index.line_number(record, all)),
            // Counting the lines before it would read them all.
            None if index.has_gaps() => error.record(record),
            None => error.line(record + 1),
        };
        error.offset((self.start + at) as u64)
    }
}

/// Lines of text files, by number: a [`RandomAccess`] source of `String`.
///
/// Lines end with LF or CRLF, which is not part of the record; the last needs no end. Lines of nothing but white space
/// are left out unless [`LinesOptions::blank_lines`] keeps them. A byte order mark at the start of a file is dropped.
///
/// ```
/// use gristmill::source::Lines;
/// use gristmill::{MapDataset, dataset::map::Source};
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
/// Reading a line that is not UTF-8 is [`ErrorKind::Data`](crate::ErrorKind::Data) with file, line and byte offset.
///
/// # Cost
/// Opening maps the files and finds their lines in parallel, or takes them from the [`IndexCache`]; 4 bytes a line are
/// held. Reading copies one line. See [`Mapping`](super::Mapping) for what must not be done to the files meanwhile.
pub struct Lines {
    files: LineFiles,
    identity: String,
}

impl Lines {
    /// Opens files, globs or directories (of `.txt` files) with the default options.
    ///
    /// # Errors
    /// If nothing is found, or a file cannot be mapped.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }

    /// The options, to change before opening.
    pub fn options() -> LinesOptions {
        LinesOptions::default()
    }
}

/// How [`Lines`] are opened.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct LinesOptions(LineOptions);

impl LinesOptions {
    /// Where the line index is kept; beside the file at first.
    pub fn cache(mut self, cache: IndexCache) -> Self {
        self.0.cache = cache;
        self
    }

    /// How the files will be read.
    pub fn access(mut self, access: Access) -> Self {
        self.0.access = access;
        self
    }

    /// Whether blank lines are records; `false` at first.
    pub fn blank_lines(mut self, keep: bool) -> Self {
        self.0.keep_blank = keep;
        self
    }

    /// Opens files, globs or directories (of `.txt` files).
    ///
    /// # Errors
    /// As [`Lines::open`].
    pub fn open(self, patterns: impl Patterns) -> Result<Lines> {
        LineFiles::open(patterns, &[".txt"], &self.0).map(|files| self.of(files))
    }

    /// The same of files that are open.
    #[cfg(feature = "spec")]
    pub(crate) fn open_contents(self, contents: Vec<(PathBuf, Content)>) -> Result<Lines> {
        LineFiles::of(contents, &self.0).map(|files| self.of(files))
    }

    fn of(&self, files: LineFiles) -> Lines {
        let identity = match self.0.keep_blank {
            true => format!("{}, blank_lines=true", files.identity()),
            false => files.identity().to_owned(),
        };
        Lines { files, identity }
    }
}

impl RandomAccess for Lines {
    type Record = String;

    fn len(&self) -> u64 {
        self.files.len()
    }

    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<String> {
        self.files.line(index)?.text().map(str::to_owned)
    }

    fn read_many(&self, indices: &[u64]) -> Many<String> {
        self.files.fetch(indices);
        Many::one_by_one(indices, |index| self.read(index).map(Some))
    }

    fn reads_together(&self) -> bool {
        self.files.is_far()
    }

    fn reads_far(&self) -> bool {
        self.files.is_far()
    }

    fn will_read(&self, next: Upcoming<'_>) {
        self.files.will_read(next);
    }

    fn name(&self) -> &'static str {
        "lines"
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn record_bytes(&self, record: &String) -> u64 {
        record.len() as u64
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.files.memory_bytes())
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lines({:?})", self.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(lines.identity().starts_with("a.txt … c.txt, files=3, bytes="), "{}", lines.identity());

        let all = Lines::options().blank_lines(true).open(dir.path()).unwrap();
        assert_eq!(all.len(), 7);
        assert_eq!(all.read(2).unwrap(), "");
        assert_ne!(all.identity(), lines.identity());
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
