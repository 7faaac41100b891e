//! JSON Lines: an object per line.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::columns::{check_choice, instead};
use super::content::{self, Contents};
use super::files::Patterns;
use super::formats::Format;
use super::index::LineIndex;
use super::index_cache::IndexCache;
use super::json::{self, Fault, RecordFault, RepeatedNames, Wanted};
use super::lines::LineOptions;
use super::numbered::{File, Files, Numbered, by_starts, named_source, reader, source_options};
use crate::element::{Element, Name};
use crate::error::{Error, Result};

/// Records of JSON Lines files, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of [`Element`].
///
/// | JSON | value |
/// |---|---|
/// | string | text |
/// | integer | scalar `i64`; else `u64` if in range; else `f64` |
/// | other number | scalar `f64`, correctly rounded |
/// | `true`, `false` | scalar `bool` |
/// | `null` | null |
/// | list of numbers | array of `i64`, or `f64` if a number is not an integer; an empty list is an array of 0 `i64` |
/// | other list | list |
/// | object | tree |
///
/// Blank lines are skipped. Lines end with LF or CRLF. If an object repeats a name, the last value is used
/// ([`RepeatedNames`]). An object may have at most 10,000 names, and values may nest 128 deep.
///
/// ```
/// use gristmill::source::Jsonl;
/// use gristmill::{dataset::map::Source, prelude::*};
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
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with file, line and byte offset, on reading a record that is not UTF-8,
/// not JSON or not an object, or that lacks a chosen column. In fields that were not chosen, the structure is checked,
/// but not every number and escape.
///
/// # Cost
/// Opening: see [`Lines`](super::Lines). Reading passes over the line once, and builds only the chosen columns.
pub struct Jsonl(Files<RecordParser>);

/// Implements the setters of options with the fields `columns` and `names`.
macro_rules! record_options {
    ($options:ident) => {
        impl $options {
            /// Sets the fields to read, in this order. Default: all fields.
            pub fn columns<S: AsRef<str>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
                self.columns = Some($crate::source::columns::to_names(columns));
                self
            }

            /// Sets how to treat records in which an object repeats a name, among the fields that are read. Default:
            /// [`RepeatedNames::Last`](crate::source::RepeatedNames::Last).
            pub fn repeated_names(mut self, names: $crate::source::RepeatedNames) -> Self {
                self.names = names;
                self
            }
        }
    };
}
pub(super) use record_options;

/// Options for opening [`Jsonl`] files.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct JsonlOptions {
    lines: LineOptions,
    columns: Option<Vec<Name>>,
    names: RepeatedNames,
}

source_options!(JsonlOptions of Jsonl, access at lines.access);
record_options!(JsonlOptions);

impl JsonlOptions {
    /// Sets the place of the line index. Default: beside the file.
    pub fn cache(mut self, cache: IndexCache) -> Self {
        self.lines.cache = cache;
        self
    }

    /// Opens files, globs or directories.
    ///
    /// # Errors
    /// An error if no file is found, or if a file cannot be mapped; [`ErrorKind::Config`](crate::ErrorKind::Config) if
    /// the list of columns is empty or repeats a column.
    pub fn open(self, patterns: impl Patterns) -> Result<Jsonl> {
        let access = self.lines.access;
        self.open_by(|| content::open_all(patterns, Format::Jsonl.endings(), access))
    }

    /// Opens files after checking the options.
    fn open_by(self, contents: impl FnOnce() -> Result<Contents>) -> Result<Jsonl> {
        let parser = RecordParser::new(self.columns, self.names)?;
        self.lines.open(parser, contents()?).map(Jsonl)
    }
}

named_source!(Jsonl of Element);

reader! {
    /// Opens JSON Lines files, to read these fields of each record: see [`Jsonl`](crate::source::Jsonl).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-jsonl-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("a.jsonl");
    /// std::fs::write(&path, "{\"id\": 1, \"text\": \"oat\"}\n{\"id\": 2, \"text\": \"rye\"}\n").unwrap();
    /// let records = gristmill::jsonl(&path, ["text"])?;
    /// assert_eq!(records.map(|record| record.text("text").unwrap().to_owned()).collect()?, ["oat", "rye"]);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    jsonl: Jsonl by columns
}

/// Parser from lines to elements.
#[derive(Clone)]
pub(crate) struct RecordParser {
    wanted: Wanted,
    names: RepeatedNames,
    /// Number of records with a repeated name since the last note to the report.
    repeated: Arc<AtomicU64>,
}

impl RecordParser {
    pub(crate) fn new(columns: Option<Vec<Name>>, names: RepeatedNames) -> Result<Self> {
        let wanted = match columns {
            None => Wanted::All,
            Some(columns) => {
                check_choice(&columns)?;
                Wanted::Columns(columns)
            }
        };
        Ok(Self { wanted, names, repeated: Arc::default() })
    }

    #[inline]
    pub(crate) fn parse(&self, line: &str) -> Result<Element, Fault> {
        match json::record(line, &self.wanted, self.names) {
            Ok((element, repeats)) => {
                if repeats {
                    self.repeated.fetch_add(1, Ordering::Relaxed);
                }
                Ok(element)
            }
            Err(RecordFault::Damaged(fault)) => Err(fault),
            Err(RecordFault::Missing(column)) => Err(missing(line, &column)),
        }
    }
}

impl Numbered for RecordParser {
    type Record = Element;
    type Index = LineIndex;

    const NAME: &'static str = "jsonl";

    by_starts!(LineIndex, line_range);

    #[inline]
    fn read(&self, file: &File<LineIndex>, record: u64) -> Result<Element> {
        let line = file.line(record)?;
        self.parse(line.text()?).map_err(|fault| line.fault(fault.at, fault.message))
    }

    fn place_in_words(&self, file: &File<LineIndex>, record: u64) -> String {
        file.line_in_words(record)
    }

    /// Returns the error unchanged, because errors of lines already contain their place.
    fn locate(&self, _: &File<LineIndex>, _: u64, error: Error) -> Error {
        error
    }

    fn params(&self) -> String {
        let columns = match &self.wanted {
            Wanted::All => String::new(),
            Wanted::Columns(columns) => format!(", columns=[{}]", columns.join(", ")),
        };
        match self.names {
            RepeatedNames::Last => columns,
            RepeatedNames::Error => columns + ", repeated_names=error",
        }
    }

    #[inline]
    fn take_note(&self) -> Option<(&'static str, u64)> {
        if self.repeated.load(Ordering::Relaxed) == 0 {
            return None;
        }
        Some((REPEATED, self.repeated.swap(0, Ordering::Relaxed)))
    }
}

/// Name in the report for records in which an object repeats a name.
pub(crate) const REPEATED: &str = "records with a repeated name";

debug_as!(RecordParser, |self, f| write!(f, "{:?}, {:?}", self.wanted, self.names));

#[cold]
fn missing(line: &str, column: &str) -> Fault {
    let names = json::names(line);
    Fault { at: 0, message: instead(column, names.iter().map(String::as_str)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::{RandomAccess, Source};
    use crate::{Load, MapDatasetExt};

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
        let id = |columns: &[&str]| Jsonl::options().columns(columns).open(&path).unwrap().facts().identity;
        assert_ne!(id(&["a"]), id(&["b"]));
        assert!(Jsonl::options().columns(["a", "a"]).open(&path).unwrap_err().message().contains("\"a\" again"));
        assert!(Jsonl::options().columns([""; 0]).open(&path).is_err());
        let of = |names: RepeatedNames| Jsonl::options().repeated_names(names).open(&path).unwrap().facts().identity;
        assert_eq!(of(RepeatedNames::Last), Jsonl::open(&path).unwrap().facts().identity);
        assert_ne!(of(RepeatedNames::Last), of(RepeatedNames::Error));
    }

    #[test]
    fn records_with_a_repeated_name_are_counted_once_each() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let line = |i: usize| match i % 3 {
            0 => "{\"a\": 1, \"a\": 2, \"a\": 3}\n",
            1 => "{\"a\": {\"b\": 0, \"b\": 1}}\n",
            _ => "{\"a\": 1}\n",
        };
        std::fs::write(&path, (0..3000).map(line).collect::<String>()).unwrap();
        let counted = |notes: Vec<(String, u64)>| notes.into_iter().find(|(what, _)| what == REPEATED).map(|(_, n)| n);
        for threads in [1, 3] {
            let ds = Source::new(Jsonl::open(&path).unwrap());
            let mut loader = ds.to_iter().loader().threads(threads).build().unwrap();
            loader.by_ref().for_each(|element| drop(element.unwrap()));
            assert_eq!(counted(loader.report().notes), Some(2000));
        }
        let strict = Jsonl::options().repeated_names(RepeatedNames::Error).open(&path).unwrap();
        let error = strict.read(1).unwrap_err().to_string();
        assert!(error.ends_with("line 2: byte 46: the name \"b\" occurs twice in one record"), "{error}");
    }
}
