//! JSON Lines: an object a line.

use std::fmt;

#[cfg(feature = "spec")]
use std::path::PathBuf;

use super::columns::{check_choice, instead};
#[cfg(feature = "spec")]
use super::content::Content;
use super::files::Patterns;
use super::index_cache::IndexCache;
use super::json::{self, RecordFault, Wanted};
use super::json_text::Fault;
use super::lines::{LineFiles, LineOptions};
use super::mmap::Access;
use crate::dataset::Upcoming;
use crate::dataset::map::{Many, RandomAccess};
use crate::element::{Element, Name};
use crate::error::Result;

/// Records of JSON Lines files, by number: a [`RandomAccess`] source of [`Element`].
///
/// | JSON | value |
/// |---|---|
/// | string | text |
/// | whole number | scalar `i64`; `u64` above its range; `f64` above that |
/// | other number | scalar `f64`, correctly rounded |
/// | `true`, `false` | scalar `bool` |
/// | `null` | null |
/// | list of numbers | array of `i64`, or of `f64` if one is no whole number; an empty list is an array of 0 `i64` |
/// | other list | list |
/// | object | tree |
///
/// Blank lines are left out; lines end with LF or CRLF. Names in an object must differ, and at most 10,000 are read;
/// values may nest 128 deep.
///
/// ```
/// use gristmill::source::Jsonl;
/// use gristmill::{MapDataset, dataset::map::Source};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-jsonl-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("a.jsonl");
/// std::fs::write(&path, "{\"id\": 1, \"text\": \"oat\"}\n{\"id\": 2, \"text\": \"rye\"}\n").unwrap();
/// let ds = Source::new(Jsonl::options().columns(["text"]).open(&path)?);
/// let texts = ds.map(|e| e.text("text").unwrap().to_owned()).collect()?;
/// assert_eq!(texts, ["oat", "rye"]);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// Reading a record that is not UTF-8, not JSON or not an object, or that lacks a chosen column, is
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with file, line and byte offset. In fields that were not chosen, the
/// structure is checked but not every number and escape.
///
/// # Cost
/// Opening: see [`Lines`](super::Lines). Reading goes once over the line; only chosen columns are built.
pub struct Jsonl {
    files: LineFiles,
    parser: RecordParser,
    identity: String,
}

impl Jsonl {
    /// Opens files, globs or directories (of `.jsonl`, `.ndjson` and `.json` files), all columns.
    ///
    /// # Errors
    /// If nothing is found, or a file cannot be mapped.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }

    /// The options, to change before opening.
    pub fn options() -> JsonlOptions {
        JsonlOptions::default()
    }

    fn new(files: LineFiles, parser: RecordParser) -> Self {
        let identity = files.identity().to_owned() + &parser.identity();
        Self { files, parser, identity }
    }
}

/// How [`Jsonl`] files are opened.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct JsonlOptions {
    lines: LineOptions,
    columns: Option<Vec<Name>>,
}

impl JsonlOptions {
    /// The fields to read, in this order; all of them at first.
    pub fn columns<S: AsRef<str>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(columns.into_iter().map(|c| Name::new(c.as_ref())).collect());
        self
    }

    /// Where the line index is kept; beside the file at first.
    pub fn cache(mut self, cache: IndexCache) -> Self {
        self.lines.cache = cache;
        self
    }

    /// How the files will be read.
    pub fn access(mut self, access: Access) -> Self {
        self.lines.access = access;
        self
    }

    /// Opens files, globs or directories.
    ///
    /// # Errors
    /// As [`Jsonl::open`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if a column is named twice or none is.
    pub fn open(self, patterns: impl Patterns) -> Result<Jsonl> {
        let parser = RecordParser::new(self.columns)?;
        Ok(Jsonl::new(LineFiles::open(patterns, &[".jsonl", ".ndjson", ".json"], &self.lines)?, parser))
    }

    /// The same of files that are open.
    #[cfg(feature = "spec")]
    pub(crate) fn open_contents(self, contents: Vec<(PathBuf, Content)>) -> Result<Jsonl> {
        let parser = RecordParser::new(self.columns)?;
        Ok(Jsonl::new(LineFiles::of(contents, &self.lines)?, parser))
    }
}

impl RandomAccess for Jsonl {
    type Record = Element;

    fn len(&self) -> u64 {
        self.files.len()
    }

    #[inline]
    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<Element> {
        let line = self.files.line(index)?;
        self.parser.parse(line.text()?).map_err(|fault| line.fault(fault.at, fault.message))
    }

    fn read_many(&self, indices: &[u64]) -> Many<Element> {
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
        "jsonl"
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.files.memory_bytes())
    }
}

impl fmt::Debug for Jsonl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Jsonl({:?}, {:?})", self.files, self.parser)
    }
}

/// Turns lines into elements.
#[derive(Clone, Debug)]
pub(crate) struct RecordParser(Wanted);

impl RecordParser {
    pub(crate) fn new(columns: Option<Vec<Name>>) -> Result<Self> {
        let Some(columns) = columns else { return Ok(Self(Wanted::All)) };
        check_choice(&columns)?;
        Ok(Self(Wanted::Columns(columns)))
    }

    /// What of it shapes the data, to follow the identity of the files.
    pub(crate) fn identity(&self) -> String {
        match &self.0 {
            Wanted::All => String::new(),
            Wanted::Columns(columns) => format!(", columns=[{}]", columns.join(", ")),
        }
    }

    #[inline]
    pub(crate) fn parse(&self, line: &str) -> Result<Element, Fault> {
        json::record(line, &self.0).map_err(|fault| match fault {
            RecordFault::Damaged(fault) => fault,
            RecordFault::Missing(column) => missing(line, &column),
        })
    }
}

#[cold]
fn missing(line: &str, column: &str) -> Fault {
    let names = json::names(line);
    Fault { at: 0, message: instead(column, names.iter().map(String::as_str)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_file_line_byte_and_the_nearest_column() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        std::fs::write(&path, "{\"text\": \"a\"}\n\n{\"txet\": \"b\"}\r\n{\"text\": ?}\n").unwrap();
        let source = Jsonl::options().columns(["text"]).open(&path).unwrap();
        assert_eq!(source.read(0).unwrap().text("text").unwrap(), "a");
        let error = |i| source.read(i).unwrap_err().to_string();
        assert!(
            error(1).ends_with("a.jsonl: line 3: byte 15: no column \"text\"; the nearest name is \"txet\""),
            "{}",
            error(1)
        );
        assert!(error(2).ends_with("a.jsonl: line 4: byte 39: expected value"), "{}", error(2));
    }

    #[test]
    fn columns_are_part_of_the_identity() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        std::fs::write(&path, "{\"a\": 1, \"b\": 2}\n").unwrap();
        let id = |columns: &[&str]| Jsonl::options().columns(columns).open(&path).unwrap().identity();
        assert_ne!(id(&["a"]), id(&["b"]));
        assert!(Jsonl::options().columns(["a", "a"]).open(&path).unwrap_err().message().contains("\"a\" again"));
        assert!(Jsonl::options().columns([""; 0]).open(&path).is_err());
    }
}
