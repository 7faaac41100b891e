//! CSV files as streams, mainly for compressed files.

use std::path::Path;

use super::super::content::{self, Content, Contents};
use super::super::delimited::Dialect;
use super::super::file_stream::{FileStream, Forward, file_stream};
use super::super::files::Patterns;
use super::super::formats::Format;
use super::super::inflate::{Bounds, LineReader};
use super::super::text_stream::TextStreamState;
use super::CsvOptions;
use super::table::{Fault, Places, Table, names};
use crate::element::{Buffer, Element};
use crate::error::{Error, Result};
use crate::units::Bytes;

file_stream! {
    /// Records of `.csv.gz`, `.csv.zst`, `.csv.lz4` and plain CSV files, in order: an
    /// [`IterDataset`](crate::IterDataset) of [`Element`], with the elements of [`Csv`](super::Csv).
    ///
    /// Compression is detected by its magic number: gzip with one or more members, zstd and LZ4 with one or more
    /// frames, or uncompressed. Created by [`CsvOptions::stream`].
    ///
    /// # Errors
    /// As for [`Csv`](super::Csv), with the offset in the decompressed text. Truncated or damaged streams are errors as
    /// for a [`TextStream`](crate::source::TextStream).
    ///
    /// # Cost
    /// As for a [`TextStream`](crate::source::TextStream). Opening reads the records from which types are guessed.
    CsvStream of Element, CsvStreamIter at TextStreamState, by CsvRecords
}

/// Parser of records.
struct CsvRecords {
    text: Text,
    table: Table,
}

/// Bytes of a record.
type Record = Vec<u8>;

/// Splitter of text into records.
struct Text {
    bounds: Bounds,
    dialect: Dialect,
    has_header: bool,
    /// True if the header of each file names its columns.
    by_name: bool,
}

impl CsvOptions {
    /// Opens files, globs or directories (of `.csv.gz`, `.csv.zst`, `.csv.lz4`, `.csv` files and the like) as a stream.
    ///
    /// # Errors
    /// As for [`Csv::open`](super::Csv::open).
    pub fn stream(self, patterns: impl Patterns) -> Result<CsvStream> {
        self.stream_of(content::open_streams(patterns, &Format::endings_of("csv"))?)
    }

    pub(in super::super) fn stream_of(&self, files: Contents) -> Result<CsvStream> {
        self.check()?;
        let dialect = self.dialect(&files)?;
        let bounds = Bounds { line_bytes: self.max_record_bytes, window_log: None };
        let by_name = self.has_header() && self.names.is_none();
        let text = Text { bounds, dialect, has_header: self.has_header(), by_name };
        let Beginning { header, rows, .. } = text.beginning(&files, self.infer_rows.max(1))?;
        let named = |error| files.first().into_iter().fold(error, |error: Error, (path, _)| error.path(path));
        let header = header.as_deref();
        let table = Table::new(self, dialect, header, &rows);
        let table = table.map_err(|fault| named(fault.located(header.unwrap_or_default(), None, 1)))?;
        let table = table.choose(self).map_err(named)?;
        Ok(CsvStream(FileStream::of(files, CsvRecords { text, table })))
    }
}

impl Text {
    /// Reads up to `most` records from the start of the files.
    fn beginning(&self, files: &Contents, most: usize) -> Result<Beginning> {
        let mut beginning = Beginning { most, ..Beginning::default() };
        let mut damage = None;
        for (path, file) in files {
            let read = match file.is_piped() {
                true => file.head(LOOK).and_then(|head| beginning.read_head(self, path.as_ref(), head)),
                false => beginning.read(self, path.as_ref(), file),
            };
            if let Err(error) = read {
                damage.get_or_insert(error.path(path));
            }
            if beginning.is_enough(self) {
                break;
            }
        }
        match damage {
            // Otherwise, the pass returns the error when it reaches the file.
            Some(error) if beginning.header.is_none() && beginning.rows.is_empty() => Err(error),
            _ => Ok(beginning),
        }
    }
}

/// Bytes of standard input from which records for the guess are taken.
const LOOK: u64 = 1 << 20;

/// First records of the files, from which types are guessed.
#[derive(Default)]
struct Beginning {
    header: Option<Record>,
    rows: Vec<Record>,
    most: usize,
    bytes: usize,
}

impl Beginning {
    /// Returns true if there are enough records for a guess, or their size reaches the limit.
    fn is_enough(&self, text: &Text) -> bool {
        self.rows.len() >= self.most || self.bytes >= text.bounds.line_bytes
    }

    /// Reads the first bytes of standard input. Their last record may be incomplete.
    fn read_head(&mut self, text: &Text, path: &Path, head: Buffer) -> Result<()> {
        let is_cut = head.len() as u64 == LOOK;
        let read = self.read(text, path, &Content::from(head));
        if is_cut && !self.is_enough(text) {
            self.rows.pop();
        }
        read
    }

    fn read(&mut self, text: &Text, path: &Path, file: &Content) -> Result<()> {
        let mut reader = RecordReader::open(path, file, text.bounds, 0, 0)?;
        if text.has_header && reader.next(text)? {
            let first = self.header.get_or_insert_with(|| reader.record.clone());
            let named = |header: &[u8]| names(text.dialect, header).ok();
            if text.by_name && named(first) != named(&reader.record) {
                // The fields are in another order, so the records do not fit these columns.
                return Ok(());
            }
        }
        while !self.is_enough(text) && reader.next(text)? {
            self.bytes += reader.record.len();
            self.rows.push(reader.record.clone());
        }
        Ok(())
    }
}

/// Reader that joins the lines of a record if quotes contain line ends.
struct RecordReader {
    lines: LineReader,
    /// Current record, with its inner line ends unchanged.
    record: Record,
    /// Offset of the record in the decompressed text.
    start: u64,
    /// Line of the record, from 1.
    line: u64,
    /// Column of each field of the file, if the fields are not exactly the columns in order.
    places: Option<Places>,
}

impl RecordReader {
    fn open(path: &Path, file: &Content, bounds: Bounds, byte: u64, line: u64) -> Result<Self> {
        let lines = LineReader::open(path, file, bounds, byte, line)?;
        Ok(Self { lines, record: Vec::new(), start: byte, line, places: None })
    }

    /// Advances to the next record; returns false at the end.
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
            // `Dialect::fields` strips a single carriage return from the end of the record.
            self.record.extend_from_slice(if line.crlf { b"\r" } else { b"" });
            inside = text.dialect.ends_inside(line.bytes, inside);
            if !inside {
                return Ok(true);
            }
            self.record.push(b'\n');
            if self.record.len() > text.bounds.line_bytes {
                let message = format!("the record is longer than {}", Bytes(text.bounds.line_bytes as u64));
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

impl Forward for CsvRecords {
    type Record = Element;
    type Reader = RecordReader;

    facts! { name: "csv_stream" }

    fn params(&self) -> String {
        self.table.identity()
    }

    fn open(&self, path: &Path, file: &Content, byte: u64, lines: u64) -> Result<RecordReader> {
        let (text, mut places) = (&self.text, None);
        if text.has_header && (byte == 0 || text.by_name) {
            let mut reader = RecordReader::open(path, file, text.bounds, 0, 0)?;
            if reader.next(text)? && text.by_name {
                places = self.table.places(&reader.record).map_err(|fault| reader.located(fault))?;
            }
            if byte == 0 {
                return Ok(RecordReader { places, ..reader });
            }
        }
        Ok(RecordReader { places, ..RecordReader::open(path, file, text.bounds, byte, lines)? })
    }

    fn next(&self, reader: &mut RecordReader, _: &Path) -> Result<Option<Element>> {
        if !reader.next(&self.text)? {
            return Ok(None);
        }
        self.table.element(&reader.record, reader.places.as_deref()).map(Some).map_err(|fault| reader.located(fault))
    }

    fn place(reader: &RecordReader) -> Option<(u64, u64)> {
        Some(reader.lines.position())
    }

    fn record_bytes(&self, element: &Element) -> u64 {
        element.nbytes() as u64
    }
}
