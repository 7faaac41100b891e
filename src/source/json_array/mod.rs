//! JSON files that hold an array of records.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
mod scan;

use self::scan::{starts, value};
use super::content::{self, Contents};
use super::files::Patterns;
use super::formats::Format;
use super::index_cache::{IndexCache, Records};
use super::json::RepeatedNames;
use super::jsonl::{RecordParser, record_options};
use super::lines::other_file;
use super::numbered::{File, Files, Numbered, by_starts, named_source, reader, source_options};
use super::starts::Starts;
use super::utf8;
use crate::element::{Element, Name};
use crate::error::{Error, Result};
use crate::mmap::Access;

/// Records of JSON files, each an array of objects, by number: a
/// [`RandomAccess`](crate::dataset::map::RandomAccess) source of [`Element`].
///
/// Values become fields as in [`Jsonl`](super::Jsonl). Objects may be pretty-printed.
///
/// ```
/// use gristmill::source::JsonArray;
/// use gristmill::{dataset::map::Source, prelude::*};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-json-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("a.json");
/// std::fs::write(&path, "[\n  {\"id\": 1, \"text\": \"oat\"},\n  {\"id\": 2, \"text\": \"rye\"}\n]\n").unwrap();
/// let ds = Source::new(JsonArray::options().columns(["text"]).open(&path)?);
/// let texts = ds.map(|e| e.text("text").unwrap().to_owned()).collect()?;
/// assert_eq!(texts, ["oat", "rye"]);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// Opening returns [`ErrorKind::Data`](crate::ErrorKind::Data) with file and byte offset if the file is not an array or
/// ends within the array. Reading returns it if a record is not UTF-8, not JSON or not an object, or if it lacks a
/// chosen column.
///
/// # Cost
/// Opening finds the records in one pass over each file, or loads their positions from the [`IndexCache`]. Holds 4 bytes
/// per record. Reading passes over the record once and builds only the chosen columns.
pub struct JsonArray(Files<Parser>);

/// Options for opening [`JsonArray`] files.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct JsonArrayOptions {
    access: Access,
    cache: IndexCache,
    columns: Option<Vec<Name>>,
    names: RepeatedNames,
}

source_options!(JsonArrayOptions of JsonArray, access at access);
record_options!(JsonArrayOptions);

impl JsonArrayOptions {
    /// Sets the place of the positions of the records. Default: beside the file.
    pub fn cache(mut self, cache: IndexCache) -> Self {
        self.cache = cache;
        self
    }

    /// Opens files, globs or directories.
    ///
    /// # Errors
    /// An error if no file is found, or if a file is not an array; [`ErrorKind::Config`](crate::ErrorKind::Config) if
    /// the list of columns is empty or repeats a column.
    pub fn open(self, patterns: impl Patterns) -> Result<JsonArray> {
        let access = self.access;
        self.of(|| content::open_all(patterns, Format::Json.endings(), access))
    }

    /// Opens files after checking the options.
    fn of(self, contents: impl FnOnce() -> Result<Contents>) -> Result<JsonArray> {
        let parser = Parser(RecordParser::new(self.columns, self.names)?);
        Files::indexed(parser, contents()?, Records::Items, &self.cache, starts).map(JsonArray)
    }

    /// Opens a file that is already in memory.
    #[cfg(any(test, fuzzing))]
    fn open_bytes(self, bytes: &[u8]) -> Result<JsonArray> {
        let content = crate::element::Buffer::copy_from(bytes).into();
        self.cache(IndexCache::Off).of(|| Ok(vec![("a.json".into(), content)]))
    }
}

named_source!(JsonArray of Element);

reader! {
    /// Opens JSON files, each an array of objects, to read these fields: see [`JsonArray`](crate::source::JsonArray).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-json-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("a.json");
    /// std::fs::write(&path, "[{\"id\": 1, \"text\": \"oat\"}, {\"id\": 2, \"text\": \"rye\"}]").unwrap();
    /// let records = gristmill::json(&path, ["text"])?;
    /// assert_eq!(records.map(|record| record.text("text").unwrap().to_owned()).collect()?, ["oat", "rye"]);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    json: JsonArray by columns
}

/// Parser from items of an array to elements.
struct Parser(RecordParser);

impl Numbered for Parser {
    type Record = Element;
    type Index = Starts;

    const NAME: &'static str = "json";

    by_starts!(Starts, range);

    fn read(&self, file: &File<Starts>, record: u64) -> Result<Element> {
        let wrong = || other_file(file.path.as_ref(), record);
        let range = file.range(record).ok_or_else(wrong)?;
        let start = range.start;
        let at = |at: usize, message: String| Error::data(message).offset(start + at as u64);
        let bytes = file.content.read(range)?;
        let item = value(bytes.as_bytes()).ok_or_else(wrong)?;
        let text = utf8::text(item).map_err(|(byte, message)| at(byte, message))?;
        self.0.parse(text).map_err(|fault| at(fault.at, fault.message))
    }

    fn params(&self) -> String {
        self.0.params()
    }

    fn take_note(&self) -> Option<(&'static str, u64)> {
        self.0.take_note()
    }
}

#[cfg(test)]
mod tests;
