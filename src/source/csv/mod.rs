//! CSV files, and other files with delimited fields.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
#[cfg(feature = "compress")]
mod stream;
mod table;
mod types;

use std::ops::Range;
use std::path::Path;

pub use self::stream::{CsvStream, CsvStreamIter};
use self::table::{Fault, Places, Table, names};
pub use self::types::CsvType;
use super::abreast;
use super::columns::to_names;
use super::content::{self, Content, Contents, check_plain};
use super::delimited::Dialect;
use super::files::{self, Patterns};
use super::formats::Format;
use super::index::begins_line;
use super::index_cache::{IndexCache, Records, load_or_find};
use super::lines::other_file;
use super::numbered::{File, Files, Numbered, named_source, reader, source_options};
use super::starts::{Facts, Starts, StartsBuilder};
use crate::cores;
use crate::dataset::iter::InPlace;
use crate::dataset::map::GetStacked;
use crate::element::{BatchMut, ColumnMut, Element, Name};
use crate::error::{Error, Result};
use crate::mmap::Access;

const BOM: &[u8] = b"\xef\xbb\xbf";
/// Bytes in which to look for the delimiter.
const HEAD: u64 = 64 << 10;

/// Records of CSV files, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of [`Element`], with a
/// field per column.
///
/// Records end with LF or CRLF outside of quotes. Empty lines are skipped. A quote is doubled within quotes. The first
/// record of each file names the columns by default: see [`CsvOptions::header`]. A column without a name is `column_3`,
/// by its number from 0 on.
///
/// Columns are scalars of `int64`, `float64` or `bool`, or text. The type is declared by [`CsvOptions::types`], or is
/// the first of these that fits all fields of the first 1,000 records. An empty field is null in a column of numbers,
/// and empty text in a column of text.
///
/// ```
/// use gristmill::source::Csv;
/// use gristmill::{dataset::map::Source, prelude::*};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-csv-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("a.csv");
/// std::fs::write(&path, "id,text\n1,\"oat, or\nrye\"\n2,wheat\n").unwrap();
/// let all = Source::new(Csv::open(&path)?).collect()?;
/// assert_eq!(all[0].text("text")?, "oat, or\nrye");
/// assert_eq!(all[1].array("id")?.as_i64(), Some(2));
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// Reading an invalid record returns [`ErrorKind::Data`](crate::ErrorKind::Data) with file, line and byte offset. A
/// record is invalid if it has more or fewer fields than columns, a field of the wrong type, invalid UTF-8, or a quote
/// that is never closed. Opening fails if a header has a name twice, if files have no columns in common, or if a chosen
/// column does not exist.
///
/// # Cost
/// Opening scans each file once for its records, or loads their index from the [`IndexCache`]; 4 bytes per record are
/// held. Reading scans the record once.
pub struct Csv(Files<Table>);

/// Options to open [`Csv`] files, or streams of compressed CSV files.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct CsvOptions {
    cache: IndexCache,
    access: Access,
    delimiter: Option<u8>,
    quote: Option<u8>,
    header: Option<bool>,
    names: Option<Vec<Name>>,
    columns: Option<Vec<Name>>,
    types: Vec<(Name, CsvType)>,
    nulls: Option<Vec<String>>,
    infer_rows: usize,
    max_record_bytes: usize,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            cache: IndexCache::default(),
            access: Access::default(),
            delimiter: None,
            quote: Some(b'"'),
            header: None,
            names: None,
            columns: None,
            types: Vec::new(),
            nulls: None,
            infer_rows: 1000,
            max_record_bytes: 16 << 20,
        }
    }
}

source_options!(CsvOptions of Csv, access at access);

impl CsvOptions {
    setters! {
        /// Sets the place of the index of records; beside the file by default.
        pub cache: IndexCache;

        /// Sets the byte between fields.
        ///
        /// By default, the delimiter is guessed among comma, tab, semicolon and bar. The candidate must split the first
        /// records into equally many fields; the largest number of fields wins. If no candidate gives two fields, the
        /// delimiter is a tab for `.tsv` files and a comma for others.
        pub delimiter(delimiter: u8) => delimiter = Some(delimiter);

        /// Sets the byte around fields that contain delimiters or line ends; `"` by default, `None` for files without
        /// quotes.
        pub quote: Option<u8>;

        /// Sets whether the first record of each file names the columns; true by default unless [`names`](Self::names)
        /// are given.
        pub header(header: bool) => header = Some(header);

        /// Sets the names of all columns, instead of a header.
        pub names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) => names = Some(to_names(names));

        /// Sets the columns to read, in this order; all columns by default.
        pub columns<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) => columns = Some(to_names(columns));

        /// Sets the types of some columns, instead of guessing them from the first records.
        pub types<S: AsRef<str>>(types: impl IntoIterator<Item = (S, CsvType)>) =>
            types = types.into_iter().map(|(name, kind)| (Name::new(name.as_ref()), kind)).collect();

        /// Sets the fields that mean null. In a column of text, a quoted field is never null. By default, only the
        /// empty field means null, and only in columns of numbers.
        pub nulls<S: AsRef<str>>(nulls: impl IntoIterator<Item = S>) =>
            nulls = Some(nulls.into_iter().map(|null| null.as_ref().to_owned()).collect());

        /// Sets the number of records from which types are guessed; 1,000 by default.
        pub infer_rows: usize;

        /// Sets the largest size of a stream's record, in bytes; 16 MiB by default. A compressed file may hold much
        /// longer records.
        pub max_record_bytes(bytes: usize) => max_record_bytes = bytes.max(1);
    }

    /// Opens files, globs or directories (of `.csv` and `.tsv` files).
    ///
    /// # Errors
    /// If nothing is found, or a header is invalid; also [`ErrorKind::Config`](crate::ErrorKind::Config) if options
    /// contradict each other.
    pub fn open(self, patterns: impl Patterns) -> Result<Csv> {
        self.of(content::open_all(patterns, Format::Csv.endings(), self.access)?)
    }

    /// Opens files from their contents, each of which is mapped or loaded whole.
    pub(crate) fn of(&self, contents: Contents) -> Result<Csv> {
        self.check()?;
        let dialect = self.dialect(&contents)?;
        let whole = |(_, content): &(_, Content)| content.whole().map(Content::from);
        let wholes: Vec<_> = cores::try_map_on(abreast::whole(&contents), &contents, whole)?;
        let records = Records::Fields(dialect.delimiter, dialect.quote);
        let (starts, ids) = load_or_find(&contents, records, &self.cache, |at| starts(held(&wholes[at]), dialect))?;
        let file = |(((path, _), content), starts): ((_, Content), Starts)| {
            let headers = u64::from(self.has_header()).min(starts.len());
            File { path, content, index: Index { starts, headers, places: None } }
        };
        let mut files: Vec<_> = contents.into_iter().zip(wholes).zip(starts).map(file).collect();
        let table = self.table(dialect, &mut files)?;
        Files::of(table, files, &ids).map(Csv)
    }

    /// Opens a file that is already in memory.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_bytes(&self, bytes: &[u8]) -> Result<Csv> {
        self.of(vec![("a.csv".into(), crate::Buffer::copy_from(bytes).into())])
    }

    fn check(&self) -> Result<()> {
        let named = [&self.names, &self.columns].into_iter().flatten();
        for names in named {
            if names.is_empty() {
                return Err(Error::config("a list of columns is empty").help("omit it to read all columns"));
            }
            if let Some((i, name)) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
                return Err(Error::config(format!("column {i} is {name:?} again")));
            }
        }
        let ends = [self.delimiter, self.quote].contains(&Some(b'\n'));
        if ends || (self.delimiter.is_some() && self.delimiter == self.quote) {
            return Err(Error::config("delimiter, quote and line end must differ"));
        }
        Ok(())
    }

    fn has_header(&self) -> bool {
        self.header.unwrap_or(self.names.is_none())
    }

    /// Returns the dialect of the first file that is not empty.
    fn dialect(&self, contents: &Contents) -> Result<Dialect> {
        let first = contents.iter().find(|(_, content)| content.len() > 0);
        let delimiter = match (self.delimiter, first) {
            (Some(delimiter), _) => delimiter,
            (None, Some((path, content))) => guess(path.as_ref(), content)?,
            (None, None) => b',',
        };
        Ok(Dialect { delimiter, quote: self.quote })
    }

    /// Merges the columns of all files by name. Records the places of the fields in files with other columns.
    fn table(&self, dialect: Dialect, files: &mut [File<Index>]) -> Result<Table> {
        let with_records: Vec<usize> = (0..files.len()).filter(|&at| files[at].index.starts.len() > 0).collect();
        let first = with_records.first().map(|&at| &files[at]);
        let by_name = self.has_header() && self.names.is_none();
        let header = first.filter(|_| self.has_header()).and_then(|file| file.raw(0)).map(|(_, header)| header);
        let named = |header: Option<&[u8]>| header.and_then(|header| names(dialect, header).ok());
        let is_alike = |&at: &usize| !by_name || named(files[at].raw(0).map(|(_, raw)| raw)) == named(header);
        let (alike, others): (Vec<usize>, Vec<usize>) = with_records.iter().copied().partition(is_alike);
        let rows = alike.iter().flat_map(|&at| files[at].rows()).take(self.infer_rows.max(1));
        let rows: Vec<_> = rows.collect();
        let mut table = Table::new(self, dialect, header, &rows).map_err(|fault| match first {
            Some(file) => file.located(0, fault),
            None => fault.located(&[], None, 1),
        })?;
        for at in others {
            let file = &files[at];
            let Some((_, header)) = file.raw(0) else { continue };
            let rows: Vec<_> = file.rows().take(self.infer_rows).collect();
            table.add(self, header, &rows).map_err(|fault| file.located(0, fault))?;
        }
        for &at in with_records.iter().filter(|_| by_name) {
            let file = &files[at];
            let Some((_, header)) = file.raw(0) else { continue };
            let places = table.places(header).map_err(|fault| file.located(0, fault))?;
            files[at].index.places = places;
        }
        table.choose(self).map_err(|e| with_records.first().iter().fold(e, |e, &&at| e.path(&files[at].path)))
    }
}

/// Guesses the delimiter of a file.
fn guess(path: &Path, content: &Content) -> Result<u8> {
    let head = content.head(HEAD)?;
    let is_cut = head.len() as u64 == HEAD && content.len() > HEAD;
    let guessed = match super::signs::compression(head.as_bytes()) {
        Some(_) => Dialect::guess(&super::inflate::beginning(head.as_bytes(), HEAD as usize), true, 1),
        None => Dialect::guess(head.as_bytes(), is_cut, 1),
    };
    #[cfg(not(feature = "compress"))]
    let guessed = Dialect::guess(head.as_bytes(), is_cut, 1);
    let by_name = if files::file_name(path).to_lowercase().contains(".tsv") { b'\t' } else { b',' };
    Ok(guessed.unwrap_or(by_name))
}

/// Index of the records of a file.
pub(crate) struct Index {
    starts: Starts,
    /// Number of header records before the first record.
    headers: u64,
    /// Column of each field of the file, if the fields are not exactly the columns in order.
    places: Option<Places>,
}

/// Returns the bytes of a file that is held whole.
fn held(content: &Content) -> &[u8] {
    content.here().unwrap_or_default()
}

impl File<Index> {
    /// Returns the offset and the bytes of a record, up to the next record. The header counts as a record.
    fn raw(&self, record: u64) -> Option<(usize, &[u8])> {
        let (starts, bytes) = (&self.index.starts, held(&self.content));
        let start = usize::try_from(starts.get(record)?).ok()?;
        let next = starts.get(record + 1).map_or(Some(bytes.len()), |next| usize::try_from(next).ok())?;
        let record = bytes.get(start..next)?;
        begins_line(bytes, start).then_some((start, record))
    }

    /// Returns the records without the header.
    fn rows(&self) -> impl Iterator<Item = &[u8]> {
        (self.index.headers..self.index.starts.len()).filter_map(|row| Some(self.raw(row)?.1))
    }

    #[cold]
    fn located(&self, record: u64, fault: Fault) -> Error {
        let (start, bytes) = self.raw(record).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', &held(&self.content)[..start]).count() as u64;
        fault.located(bytes, Some(start as u64), lines + 1).path(&self.path)
    }

    /// Writes a record as a row of a batch: see [`Table::copy`].
    fn copy(&self, record: u64, table: &Table, row: usize, columns: &mut [&mut ColumnMut]) -> Option<()> {
        table.copy(self.raw(record + self.index.headers)?.1, self.index.places.as_deref(), row, columns)
    }
}

/// Returns the offsets of the records of a file.
fn starts(file: &[u8], dialect: Dialect) -> Result<Starts> {
    check_plain(file, "read it as a stream (`CsvOptions::stream`; from Python `IterDataset.csv`), or decompress it")?;
    let skipped = if file.starts_with(BOM) { BOM.len() } else { 0 };
    let mut starts = StartsBuilder::default();
    dialect.each_record(&file[skipped..], |at| starts.push((skipped + at) as u64));
    Ok(starts.finish(Facts { size: file.len() as u64, ..Facts::default() }))
}

impl Numbered for Table {
    type Record = Element;
    type Index = Index;

    const NAME: &'static str = "csv";
    const HAS_COLUMNS: bool = true;

    fn len(&self, file: &File<Index>) -> u64 {
        file.index.starts.len() - file.index.headers
    }

    #[inline]
    fn read(&self, file: &File<Index>, record: u64) -> Result<Element> {
        let record = record + file.index.headers;
        let (_, bytes) = file.raw(record).ok_or_else(|| other_file(file.path.as_ref(), record))?;
        self.element(bytes, file.index.places.as_deref()).map_err(|fault| file.located(record, fault))
    }

    /// Returns no ranges: files in a store are read whole by `open`.
    fn ranges(&self, _: &File<Index>, _: u64) -> impl IntoIterator<Item = Range<u64>> {
        None
    }

    /// Returns the error unchanged, because it already has the line of the record.
    fn locate(&self, _: &File<Index>, _: u64, error: Error) -> Error {
        error
    }

    fn params(&self) -> String {
        self.identity()
    }

    fn index_bytes(index: &Index) -> Option<u64> {
        Some(index.starts.memory_bytes())
    }
}

named_source!(Csv of Element {
    /// Writes fields directly to columns.
    fn read_stacked(&self, indices: &[u64]) -> GetStacked<Element> {
        let mut batch = BatchMut::like(&self.read(*indices.first()?).ok()?, indices.len()).ok()?;
        let mut columns: Vec<&mut ColumnMut> = batch.columns_mut().map(|(_, column)| column).collect();
        for (row, &index) in indices.iter().enumerate() {
            let (at, record) = self.0.find(index).ok()?;
            self.0.files[at].copy(record, &self.0.format, row, &mut columns)?;
        }
        let batch = batch.finish();
        Some(InPlace { len: indices.len(), bytes: batch.nbytes(), batch })
    }
});

reader! {
    /// Opens CSV files, to read these columns: see [`Csv`](crate::source::Csv).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-csv-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("a.csv");
    /// std::fs::write(&path, "id,text\n1,\"oat, or\nrye\"\n2,wheat\n").unwrap();
    /// let records = gristmill::csv(&path, ["text"])?;
    /// assert_eq!(records.map(|record| record.text("text").unwrap().to_owned()).collect()?, ["oat, or\nrye", "wheat"]);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    csv: Csv by columns
}

#[cfg(test)]
mod tests;
