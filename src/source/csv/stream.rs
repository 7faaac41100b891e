//! CSV files read front to back: what compression leaves of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::content::{self, Content};
use super::super::delimited::Dialect;
use super::super::files::{self, FileId, Patterns};
use super::super::inflate::{Bounds, LineReader};
use super::super::text_stream::TextStreamState;
use super::CsvOptions;
use super::table::{Fault, Table};
use crate::cx::{Cx, StageId};
use crate::dataset::{DatasetIterator, IterDataset, Role, Stage};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exec::Runtime;

const ENDINGS: [&str; 6] = [".csv.gz", ".csv.zst", ".csv", ".tsv.gz", ".tsv.zst", ".tsv"];

/// Records of `.csv.gz`, `.csv.zst` and plain CSV files, read front to back: an [`IterDataset`] of [`Element`], those of
/// [`Csv`](super::Csv).
///
/// Compression is known by its magic number: gzip of one or many members, zstd of one or many frames, or none. Made by
/// [`CsvOptions::stream`].
///
/// # Errors
/// Those of [`Csv`](super::Csv) with the offset in the decompressed text, and those of a [`TextStream`](crate::source::TextStream)
/// for streams that are cut or damaged.
///
/// # Cost
/// As a [`TextStream`](crate::source::TextStream). Opening reads the records from which types are guessed.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct CsvStream {
    shared: Arc<Shared>,
}

struct Shared {
    text: Text,
    table: Table,
    /// Whether the header of a file is held against the table.
    checks_header: bool,
    identity: String,
}

/// The bytes of a record.
type Record = Vec<u8>;

/// Files, and how their records are found.
struct Text {
    files: Vec<(PathBuf, Content)>,
    bounds: Bounds,
    dialect: Dialect,
    has_header: bool,
}

impl CsvOptions {
    /// Opens files, globs or directories (of `.csv.gz`, `.csv.zst`, `.csv` files and the like) as a stream of their records.
    ///
    /// # Errors
    /// As [`Csv::open`](super::Csv::open).
    pub fn stream(self, patterns: impl Patterns) -> Result<CsvStream> {
        self.stream_of(content::open_all(patterns, &ENDINGS, self.access)?)
    }

    pub(in super::super) fn stream_of(&self, files: Vec<(PathBuf, Content)>) -> Result<CsvStream> {
        self.check()?;
        let dialect = self.dialect(&files)?;
        let bounds = Bounds { line_bytes: self.max_record_bytes, window_log: None };
        let ids = files.iter().map(|(path, file)| file.id(path)).collect::<Result<Vec<FileId>>>()?;
        let text = Text { files, bounds, dialect, has_header: self.has_header() };
        let (header, rows) = text.beginning(self.infer_rows.max(1))?;
        let named = |error| text.files.first().into_iter().fold(error, |error: Error, (path, _)| error.path(path));
        let header = header.as_deref();
        let table = Table::new(self, dialect, header, &rows);
        let table = table.map_err(|fault| named(fault.located(header.unwrap_or_default(), None, 1)))?;
        let table = table.choose(self).map_err(named)?;
        let identity = files::identity(&ids) + &table.identity();
        let checks_header = text.has_header && self.names.is_none();
        Ok(CsvStream { shared: Arc::new(Shared { text, table, checks_header, identity }) })
    }
}

impl Text {
    /// The header, if there is one, and so many records behind it; of the first files as far as these reach.
    fn beginning(&self, most: usize) -> Result<(Option<Record>, Vec<Record>)> {
        let (mut header, mut rows) = (None, Vec::new());
        // More are not held for a guess.
        let (mut bytes, enough) = (0, self.bounds.line_bytes);
        for (path, file) in &self.files {
            let mut reader = RecordReader::open(path, file, self.bounds, 0, 0)?;
            if self.has_header && reader.next(self).map_err(|e| e.path(path))? {
                header.get_or_insert(reader.record.clone());
            }
            // What is damaged is told when it is its turn.
            while rows.len() < most && bytes < enough && reader.next(self).unwrap_or(false) {
                bytes += reader.record.len();
                rows.push(reader.record.clone());
            }
            if rows.len() == most || bytes >= enough {
                break;
            }
        }
        Ok((header, rows))
    }
}

/// Puts the lines of a file together where quotes hold line ends.
struct RecordReader {
    lines: LineReader,
    /// The present record, with line ends inside of it as they are.
    record: Record,
    /// Where it begins in the decompressed text.
    start: u64,
    /// Its line, from 1.
    line: u64,
}

impl RecordReader {
    fn open(path: &Path, file: &Content, bounds: Bounds, byte: u64, line: u64) -> Result<Self> {
        let lines = LineReader::open(path, file, bounds, byte, line)?;
        Ok(Self { lines, record: Vec::new(), start: byte, line })
    }

    /// Goes to the next record, if there is one.
    fn next(&mut self, text: &Text) -> Result<bool> {
        self.record.clear();
        let mut inside = false;
        while let Some(line) = self.lines.next()? {
            if self.record.is_empty() {
                if line.bytes.is_empty() {
                    continue;
                }
                (self.start, self.line) = (line.offset, line.number);
            }
            self.record.extend_from_slice(line.bytes);
            // Who splits the record takes one off its end, no more.
            self.record.extend_from_slice(if line.crlf { b"\r" } else { b"" });
            inside = text.dialect.ends_inside(line.bytes, inside);
            if !inside {
                return Ok(true);
            }
            self.record.push(b'\n');
            if self.record.len() > text.bounds.line_bytes {
                let message = format!("the record is longer than {} bytes", text.bounds.line_bytes);
                let error = Error::data(message).line(self.line).offset(self.start);
                return Err(error
                    .help("a quote is not closed; or raise `max_record_bytes` if records of this length are right"));
            }
        }
        Ok(!self.record.is_empty())
    }

    #[cold]
    fn located(&self, mut fault: Fault) -> Error {
        let start = if self.lines.is_compressed() {
            fault.message =
                format!("byte {} of the decompressed text: {}", self.start + fault.at as u64, fault.message);
            None
        } else {
            Some(self.start)
        };
        fault.located(&self.record, start, self.line)
    }
}

impl Stage for CsvStream {
    fn name(&self) -> &'static str {
        "csv_stream"
    }
    fn params(&self) -> String {
        self.shared.identity.clone()
    }
    fn role(&self) -> Role {
        Role::Source
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }
}

impl IterDataset for CsvStream {
    type Item = Element;
    type Iter = CsvStreamIter;

    fn iter(&self, _: &Runtime) -> Result<CsvStreamIter> {
        Ok(CsvStreamIter { shared: self.shared.clone(), file: 0, reader: None })
    }
}

/// A pass over a [`CsvStream`].
pub struct CsvStreamIter {
    shared: Arc<Shared>,
    file: usize,
    reader: Option<RecordReader>,
}

impl CsvStreamIter {
    fn read(&mut self) -> Result<Option<Element>> {
        let shared = &*self.shared;
        while let Some((path, file)) = shared.text.files.get(self.file) {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => none.insert(shared.begin(path, file)?),
            };
            if reader.next(&shared.text).map_err(|e| e.path(path))? {
                let element = shared.table.element(&reader.record);
                return element.map(Some).map_err(|fault| reader.located(fault).path(path));
            }
            self.file += 1;
            self.reader = None;
        }
        Ok(None)
    }
}

impl Shared {
    /// A reader in front of the first record behind the header.
    fn begin(&self, path: &Path, file: &Content) -> Result<RecordReader> {
        let mut reader = RecordReader::open(path, file, self.text.bounds, 0, 0)?;
        if self.text.has_header && reader.next(&self.text).map_err(|e| e.path(path))? && self.checks_header {
            self.table.check_header(&reader.record).map_err(|fault| reader.located(fault).path(path))?;
        }
        Ok(reader)
    }
}

impl DatasetIterator for CsvStreamIter {
    type Item = Element;
    type State = TextStreamState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Element>> {
        cx.begin_element();
        match cx.consumed(StageId(0), || self.read()) {
            Ok(Some(record)) => {
                cx.produced(StageId(0), 1, record.nbytes() as u64);
                Ok(Some(record))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(cx.blame(StageId(0), "csv_stream", error)),
        }
    }

    fn state(&self) -> TextStreamState {
        let (byte, line) = self.reader.as_ref().map_or((0, 0), |reader| reader.lines.position());
        TextStreamState { file: self.file as u64, byte, line }
    }

    fn restore(&mut self, state: TextStreamState, _: &mut Cx) -> Result<()> {
        let text = &self.shared.text;
        let file = usize::try_from(state.file).ok().filter(|&file| file <= text.files.len());
        self.file = file.ok_or_else(|| Error::state(format!("file {} of {}", state.file, text.files.len())))?;
        self.reader = match text.files.get(self.file) {
            _ if state.byte == 0 => None,
            Some((path, file)) => Some(RecordReader::open(path, file, text.bounds, state.byte, state.line)?),
            None => return Err(Error::state(format!("byte {} behind the last file", state.byte))),
        };
        Ok(())
    }
}

impl fmt::Debug for CsvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CsvStream({} files)", self.shared.text.files.len())
    }
}

impl fmt::Debug for CsvStreamIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CsvStreamIter({:?})", self.state())
    }
}
