//! Sequential reading of text files, compressed or plain.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::columns::to_names;
use super::content::{self, Content};
use super::file_stream::{FileState, FileStream, Forward, file_stream};
use super::files::Patterns;
use super::formats::Format;
use super::index::is_space;
use super::inflate::{Bounds, LineReader, RawLine};
use super::json::RepeatedNames;
use super::jsonl::RecordParser;
use super::numbered::Numbered;
use super::utf8;
use crate::element::{Element, Name};
use crate::error::{Error, Result};

/// A parser of lines of text.
pub trait LineParser: Send + Sync + 'static {
    /// Type of a record.
    type Record: Send + 'static;

    /// Returns the name of the stage.
    fn name(&self) -> &'static str;

    /// Returns the options that affect the data; an empty string if there are none.
    fn params(&self) -> String {
        String::new()
    }

    /// Parses a line, which is not blank and has no line end.
    ///
    /// # Errors
    /// The offset in the line at which the line is invalid, and a message.
    fn parse(&self, line: &str) -> Result<Self::Record, (usize, String)>;

    /// Returns the payload bytes of a record, for the report.
    fn record_bytes(&self, record: &Self::Record) -> u64;

    /// Returns a note for the report, with the number of occurrences since the last call.
    fn take_note(&self) -> Option<(&'static str, u64)> {
        None
    }
}

/// Parser that returns lines unchanged.
#[derive(Clone, Copy, Debug)]
pub struct PlainLines;

impl LineParser for PlainLines {
    type Record = String;

    facts! { name: "line_stream" }

    fn parse(&self, line: &str) -> Result<String, (usize, String)> {
        Ok(line.to_owned())
    }

    fn record_bytes(&self, record: &String) -> u64 {
        record.len() as u64
    }
}

/// Parser of lines that are JSON objects, with the types of [`Jsonl`](super::Jsonl).
#[derive(Clone, Debug)]
pub struct JsonLines(RecordParser);

impl LineParser for JsonLines {
    type Record = Element;

    facts! { name: "jsonl_stream" }

    fn params(&self) -> String {
        self.0.params()
    }

    fn parse(&self, line: &str) -> Result<Element, (usize, String)> {
        self.0.parse(line).map_err(|fault| (fault.at, fault.message))
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }

    fn take_note(&self) -> Option<(&'static str, u64)> {
        self.0.take_note()
    }
}

/// Options for reading text as a stream.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `lines` or `jsonl`"]
pub struct StreamOptions {
    bounds: Bounds,
    columns: Option<Vec<Name>>,
    names: RepeatedNames,
}

impl Default for StreamOptions {
    fn default() -> Self {
        let bounds = Bounds { line_bytes: 16 << 20, window_log: None };
        Self { bounds, columns: None, names: RepeatedNames::Last }
    }
}

impl StreamOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the maximum length of a line in bytes. Default: 16 MiB. A compressed file can contain lines that are
        /// much longer than the file.
        pub max_line_bytes(bytes: usize) => bounds.line_bytes = bytes.max(1);

        /// Sets the base-2 logarithm of the largest window that a zstd frame may require. Default: 25 (32 MiB), 26 for
        /// files of at least 32 MiB, 27 for files of at least 96 MiB.
        pub max_window_log(log: u32) => bounds.window_log = Some(log);

        /// Sets the fields that [`jsonl`](Self::jsonl) reads, in this order. Default: all fields.
        pub columns<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) => columns = Some(to_names(columns));

        /// Sets how [`jsonl`](Self::jsonl) treats records in which an object repeats a name. Default:
        /// [`RepeatedNames::Last`].
        pub repeated_names(names: RepeatedNames) => names = names;
    }

    /// Opens text files, globs, or directories (of `.txt.gz`, `.txt.zst`, `.txt.lz4` and `.txt` files).
    ///
    /// # Errors
    /// An error if no file is found, or if a file cannot be mapped.
    pub fn lines(self, patterns: impl Patterns) -> Result<LineStream> {
        TextStream::open(patterns, &Format::endings_of("lines"), self.bounds, PlainLines)
    }

    /// Opens JSON Lines files, globs, or directories (of `.jsonl.gz`, `.jsonl.zst`, `.jsonl.lz4`, `.jsonl` and the
    /// like).
    ///
    /// # Errors
    /// The errors of [`lines`](Self::lines); [`ErrorKind::Config`](crate::ErrorKind::Config) if the list of columns is
    /// empty or repeats a column.
    pub fn jsonl(self, patterns: impl Patterns) -> Result<JsonlStream> {
        let parser = JsonLines(RecordParser::new(self.columns, self.names)?);
        TextStream::open(patterns, &Format::endings_of("jsonl"), self.bounds, parser)
    }
}

/// Lines of `.gz`, `.zst`, `.lz4` and plain text files, read front to back: an [`IterDataset`](crate::IterDataset) of
/// `String`.
pub type LineStream = TextStream<PlainLines>;

/// Records of `.jsonl.gz`, `.jsonl.zst`, `.jsonl.lz4` and plain JSON Lines files, read front to back: an
/// [`IterDataset`](crate::IterDataset) of [`Element`].
pub type JsonlStream = TextStream<JsonLines>;

file_stream! {
    /// Records of text files, read front to back: see [`LineStream`] and [`JsonlStream`].
    ///
    /// Compression is detected by its magic number: gzip with any number of members, zstd and LZ4 with any number of
    /// frames, or none. Files follow each other in the order of [`find`](super::find). Blank lines are skipped. `-` is
    /// standard input, which can be read only once: a second pass and a restored state are errors.
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// use gristmill::source::StreamOptions;
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-stream-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("a.jsonl");
    /// std::fs::write(&path, "{\"text\": \"oat\"}\n").unwrap();
    /// let ds = StreamOptions::new().columns(["text"]).jsonl(&path)?;
    /// assert_eq!(ds.collect()?[0].text("text")?, "oat");
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset in the file if a stream is cut or damaged.
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the line and its byte offset if a line is too long, not UTF-8,
    /// or rejected by the parser. A gzip member has its checksum at the end, so records before the damage may already
    /// have been returned.
    ///
    /// # Cost
    /// One thread decompresses. Several threads decompress if each file is a separate stream, and the streams are read
    /// as [`lanes`](crate::dataset::iter::lanes()). Resuming decompresses the current file again up to the position.
    /// Memory: the window of the codec, and a buffer that grows to the longest line.
    TextStream<P: LineParser> of P::Record, TextStreamIter at TextStreamState, by TextLines<P>
}

/// The format of lines.
struct TextLines<P> {
    bounds: Bounds,
    parser: P,
}

impl<P: LineParser> TextStream<P> {
    fn open(patterns: impl Patterns, extensions: &[&str], bounds: Bounds, parser: P) -> Result<Self> {
        let files = content::open_streams(patterns, extensions)?;
        Ok(Self(FileStream::of(files, TextLines { bounds, parser })))
    }

    /// Opens text files. `parser` converts each line into a record.
    ///
    /// # Errors
    /// The errors of [`StreamOptions::lines`].
    pub fn with_parser(patterns: impl Patterns, options: StreamOptions, parser: P) -> Result<Self> {
        Self::open(patterns, &Format::endings_of("lines"), options.bounds, parser)
    }
}

/// The position of a [`TextStreamIter`].
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextStreamState {
    /// Number of completed files.
    pub file: u64,
    /// Offset of the next line in the current file, in decompressed bytes.
    pub byte: u64,
    /// Number of lines read from the current file.
    pub line: u64,
}

from_as!(FileState => TextStreamState, |FileState { file, byte, record }| Self { file, byte, line: record });

from_as!(TextStreamState => FileState, |TextStreamState { file, byte, line }| Self { file, byte, record: line });

impl<P: LineParser> Forward for TextLines<P> {
    type Record = P::Record;
    type Reader = LineReader;

    fn name(&self) -> &'static str {
        self.parser.name()
    }

    fn params(&self) -> String {
        self.parser.params()
    }

    fn open(&self, path: &Path, file: &Content, byte: u64, lines: u64) -> Result<LineReader> {
        LineReader::open(path, file, self.bounds, byte, lines)
    }

    fn next(&self, reader: &mut LineReader, _: &Path) -> Result<Option<P::Record>> {
        let compressed = reader.is_compressed();
        while let Some(line) = reader.next()? {
            if line.bytes.iter().any(|&b| !is_space(b)) {
                let record = utf8::text(line.bytes).and_then(|text| self.parser.parse(text));
                return record.map(Some).map_err(|(at, text)| located(&line, compressed, at, text));
            }
        }
        Ok(None)
    }

    fn place(reader: &LineReader) -> Option<(u64, u64)> {
        Some(reader.position())
    }

    fn record_bytes(&self, record: &P::Record) -> u64 {
        self.parser.record_bytes(record)
    }

    fn take_note(&self) -> Option<(&'static str, u64)> {
        self.parser.take_note()
    }
}

#[cold]
fn located(line: &RawLine<'_>, compressed: bool, at: usize, text: String) -> Error {
    let at = line.offset + at as u64;
    match compressed {
        true => Error::data(format!("byte {at} of the decompressed text: {text}")).line(line.number),
        false => Error::data(text).line(line.number).offset(at),
    }
}

#[cfg(all(test, feature = "compress"))]
mod tests {
    use super::*;
    use crate::cx::Cx;
    use crate::dataset::{DatasetIterator, IterDataset, IterDatasetExt, Stage};
    use crate::exec::Runtime;
    use std::io::Write;

    fn gzip(parts: &[&[u8]]) -> Vec<u8> {
        let member = |part: &&[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap()
        };
        parts.iter().flat_map(member).collect()
    }

    fn zstd(parts: &[&[u8]]) -> Vec<u8> {
        parts.iter().flat_map(|part| zstd::encode_all(*part, 3).unwrap()).collect()
    }

    /// Three files, with a line across two gzip members, blank lines, CRLF, a byte order mark and no final line end.
    fn corpus(dir: &Path) -> LineStream {
        std::fs::write(dir.join("a.txt.gz"), gzip(&[b"\xef\xbb\xbfone\n\ntw", b"o\r\n  \n"])).unwrap();
        std::fs::write(dir.join("b.txt.zst"), zstd(&[b"three\n", b"", b"four"])).unwrap();
        std::fs::write(dir.join("c.txt"), b"five\nsix\n\n").unwrap();
        StreamOptions::new().lines(dir).unwrap()
    }

    #[test]
    fn members_frames_and_files_are_one_text() {
        let dir = tempfile::tempdir().unwrap();
        let ds = corpus(dir.path());
        assert_eq!(ds.collect().unwrap(), ["one", "two", "three", "four", "five", "six"]);
        assert!(
            ds.node().describe.params().starts_with("a.txt.gz … c.txt, files=3, bytes="),
            "{}",
            ds.node().describe.params()
        );
    }

    #[test]
    fn zeros_behind_members_of_gzip_are_padding() {
        let dir = tempfile::tempdir().unwrap();
        let member = gzip(&[b"one\n"]);
        let lines = |bytes: Vec<u8>| {
            std::fs::write(dir.path().join("a.txt.gz"), bytes).unwrap();
            StreamOptions::new().lines(dir.path()).unwrap().collect()
        };
        let zeros = [0; 1000];
        assert_eq!(lines([&member[..], &zeros].concat()).unwrap(), ["one"]);
        assert_eq!(lines([&member[..], &zeros, &member].concat()).unwrap(), ["one", "one"]);
        assert!(lines([&member[..], &zeros, b"x"].concat()).is_err());
    }

    #[test]
    fn a_state_continues_and_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let ds = corpus(dir.path());
        let (run, mut cx) = (Runtime::inline(), Cx::default());
        let all = ds.collect().unwrap();
        let mut iter = ds.iter(&run).unwrap();
        for taken in 0..=all.len() + 1 {
            let state = iter.state();
            let mut other = ds.iter(&run).unwrap();
            other.restore(state.clone(), &mut cx).unwrap();
            assert_eq!(other.state(), state);
            let mut rest = Vec::new();
            while let Some(line) = other.next(&mut cx).unwrap() {
                rest.push(line);
            }
            assert_eq!(rest, all[taken.min(all.len())..], "after {taken}");
            iter.next(&mut cx).unwrap();
        }
        let mut restore = |file, byte| ds.iter(&run).unwrap().restore(TextStreamState { file, byte, line: 0 }, &mut cx);
        assert!([restore(4, 0), restore(3, 1), restore(0, 1000), restore(2, 1000)].iter().all(Result::is_err));
    }

    fn first_error(name: &str, bytes: &[u8], options: StreamOptions) -> String {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), bytes).unwrap();
        let error = options.jsonl(dir.path().join(name)).unwrap().collect().unwrap_err();
        error.to_string().rsplit_once('/').unwrap().1.to_owned()
    }

    #[test]
    fn damage_says_where() {
        let text = b"{\"a\": 1}\n{\"a\": }\n".as_slice();
        let options = StreamOptions::new;
        assert_eq!(first_error("a.jsonl", text, options()), "a.jsonl: line 2: byte 15: expected value");
        let error = first_error("a.jsonl.gz", &gzip(&[text]), options());
        assert_eq!(error, "a.jsonl.gz: line 2: byte 15 of the decompressed text: expected value");
        let cut = gzip(&[text]);
        let error = first_error("a.jsonl.gz", &cut[..cut.len() - 9], options());
        assert!(error.contains(&format!("byte {}: the file ends inside a gzip stream", cut.len() - 9)), "{error}");
        let cut = zstd(&[text]);
        let error = first_error("a.jsonl.zst", &cut[..cut.len() - 1], options());
        assert!(error.contains("the file ends inside a zstd stream"), "{error}");
        // A frame header that requires a window of 2 GiB.
        let error = first_error("a.zst", b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", options());
        assert!(error.contains("more memory than it may"), "{error}");
    }

    #[test]
    fn bad_lines_and_damaged_files_are_skipped_where_that_is_asked_for() {
        use crate::dataset::iter::{BadRecords, laws};
        let dir = tempfile::tempdir().unwrap();
        let good = gzip(&[b"{\"a\": 1}\n{\"a\": }\n{\"a\": 2}\n"]);
        let files = [
            ("a.jsonl.gz", good.clone()),
            ("b.jsonl.gz", good[..good.len() - 9].to_vec()),
            // A frame header that requires a window of 2 GiB.
            ("c.jsonl.zst", b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00".to_vec()),
            ("d.jsonl", b"{\"a\": 3}\n".to_vec()),
        ];
        files.iter().for_each(|(name, bytes)| std::fs::write(dir.path().join(name), bytes).unwrap());
        let ds = StreamOptions::new().jsonl(dir.path()).unwrap().on_bad_record(BadRecords::skip());
        let values: Vec<_> = laws::check(&ds).iter().map(|e| e.array("a").unwrap().as_i64().unwrap()).collect();
        assert_eq!(values.first_chunk(), Some(&[1, 2]));
        assert_eq!(values.last(), Some(&3));
    }

    #[test]
    fn a_line_that_is_too_long_is_an_error_and_the_next_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("ok\n{}\nfine\n{}", "x".repeat(1 << 20), "y".repeat(2000));
        std::fs::write(dir.path().join("a.txt.zst"), zstd(&[text.as_bytes()])).unwrap();
        let ds = StreamOptions::new().max_line_bytes(1000).lines(dir.path()).unwrap();
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        assert_eq!(iter.next(&mut cx).unwrap().unwrap(), "ok");
        let error = iter.next(&mut cx).unwrap_err().to_string();
        assert!(error.contains("line 2: byte 3: the line is longer than 1000 B"), "{error}");
        assert_eq!(iter.next(&mut cx).unwrap().unwrap(), "fine");
        assert!(iter.next(&mut cx).is_err());
        assert!(iter.next(&mut cx).unwrap().is_none());
    }
}
