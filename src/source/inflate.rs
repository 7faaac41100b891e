//! Line reader for `.gz`, `.zst`, `.lz4` and plain text files, with bounded memory.

#[cfg(feature = "compress")]
pub(super) mod codecs;
#[cfg(not(feature = "compress"))]
#[path = "inflate/no_codecs.rs"]
mod codecs;

use std::io::{self, Read};
use std::path::Path;

use memchr::memchr;

use super::content::{Content, Stream};
use super::file_stream::shorter;
use crate::error::{Error, Result};
use crate::units::Bytes;

/// Decoder of a file, chosen by its magic number.
pub(super) enum Decoder {
    Plain(Stream),
    Packed(&'static str, Box<dyn Codec>),
}

/// A decoder of a compressed file.
pub(super) trait Codec: Read + Send {
    /// Returns the compressed file.
    fn file(&self) -> &Stream;
}

impl Decoder {
    pub(super) fn new(file: &Content, window_log: Option<u32>) -> Result<Self> {
        match super::signs::compression(file.head(4)?.as_bytes()) {
            Some(codec) => codecs::packed(codec, file, window_log),
            None => Ok(Self::Plain(file.stream())),
        }
    }

    pub(super) fn codec(&self) -> Option<&'static str> {
        match self {
            Self::Plain(_) => None,
            Self::Packed(codec, _) => Some(codec),
        }
    }

    /// Returns the number of bytes read from the file.
    fn consumed(&self) -> u64 {
        match self {
            Self::Plain(stream) => stream.position(),
            Self::Packed(_, decoder) => decoder.file().position(),
        }
    }

    pub(super) fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(out),
            Self::Packed(_, decoder) => decoder.read(out),
        }
    }

    /// Converts an error of [`read`](Self::read), and adds the offset in the file.
    #[cold]
    pub(super) fn fault(&self, error: io::Error) -> Error {
        let error = match error.downcast::<Error>() {
            Ok(ours) => return ours,
            Err(error) => error,
        };
        let (codec, at) = (self.codec().unwrap_or("file"), self.consumed());
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Error::data(format!("the file ends inside a {codec} stream")).offset(at);
        }
        if error.to_string().contains("too much memory") {
            let text = format!("the zstd frame asks for more memory than it may: {error}");
            return Error::data(text).offset(at).help("raise `max_window_log` if the file is right");
        }
        Error::data(format!("the {codec} stream is damaged: {error}")).offset(at)
    }
}

/// Decompresses the beginning of a file, up to `most` bytes. Returns no bytes if the decoder cannot be created.
pub(super) fn beginning(head: &[u8], most: usize) -> Vec<u8> {
    let decoder = Decoder::new(&Content::from(crate::element::Buffer::copy_from(head)), None);
    decoder.map_or_else(|_| Vec::new(), |decoder| first(decoder, most))
}

fn first(mut decoder: Decoder, most: usize) -> Vec<u8> {
    let mut out = vec![0; most];
    let mut got = 0;
    while let Ok(read @ 1..) = decoder.read(&mut out[got..]) {
        got += read;
    }
    out.truncate(got);
    out
}

/// Limits for a single file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) line_bytes: usize,
    pub(super) window_log: Option<u32>,
}

/// Line reader of a single file.
pub(super) struct LineReader {
    decoder: Decoder,
    bounds: Bounds,
    buffer: Vec<u8>,
    /// Start of the unread bytes in the buffer.
    from: usize,
    to: usize,
    /// Offset of `buffer[from]` in the decompressed text.
    offset: u64,
    /// Number of lines returned or skipped.
    lines: u64,
    ended: bool,
}

/// A line without its line end, and its place in the decompressed text.
pub(super) struct RawLine<'a> {
    pub(super) bytes: &'a [u8],
    /// True if the line ended with CRLF.
    pub(super) crlf: bool,
    pub(super) offset: u64,
    /// Number of the line, from 1.
    pub(super) number: u64,
}

const BUFFER: usize = 256 << 10;

impl LineReader {
    /// Opens a file at line `lines + 1`, which begins at byte `offset` of the decompressed text. Compressed text is
    /// decompressed up to this offset.
    pub(super) fn open(path: &Path, file: &Content, bounds: Bounds, offset: u64, lines: u64) -> Result<Self> {
        let decoder = Decoder::new(file, bounds.window_log).map_err(|e| e.path(path))?;
        let buffer = vec![0; BUFFER];
        let mut reader = Self { decoder, bounds, buffer, from: 0, to: 0, offset: 0, lines, ended: false };
        reader.skip_to(offset).map_err(|e| e.path(path))?;
        Ok(reader)
    }

    fn skip_to(&mut self, offset: u64) -> Result<()> {
        if let Decoder::Plain(stream) = &mut self.decoder {
            if !stream.seek(offset) {
                return Err(shorter(offset));
            }
            self.offset = offset;
        }
        while self.offset < offset {
            self.fill()?;
            let skip = ((self.to - self.from) as u64).min(offset - self.offset);
            if skip == 0 {
                return Err(shorter(offset));
            }
            self.from += skip as usize;
            self.offset += skip;
        }
        Ok(())
    }

    /// Returns the offset after the last returned line, in the decompressed text, and the line's number.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.offset, self.lines)
    }

    /// Returns true if the file is compressed. Offsets of lines then refer to the decompressed text.
    pub(super) fn is_compressed(&self) -> bool {
        self.decoder.codec().is_some()
    }

    /// Returns the next line, or `None` at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the offset in the file if the file is damaged; the reader has
    /// then ended. Also [`ErrorKind::Data`](crate::ErrorKind::Data) if a line is too long; the reader then continues
    /// after that line.
    pub(super) fn next(&mut self) -> Result<Option<RawLine<'_>>> {
        if self.offset == 0 {
            self.drop_mark()?;
        }
        let mut searched = 0;
        let end = loop {
            let unread = &self.buffer[self.from..self.to];
            if let Some(at) = memchr(b'\n', &unread[searched..]) {
                break searched + at;
            }
            searched = unread.len();
            if self.ended && searched == 0 {
                return Ok(None);
            }
            if self.ended {
                break searched;
            }
            if searched > self.bounds.line_bytes {
                return Err(self.too_long());
            }
            self.fill()?;
        };
        let (offset, start) = (self.offset, self.from);
        if end > self.bounds.line_bytes {
            return Err(self.too_long());
        }
        self.advance(end + 1);
        let bytes = &self.buffer[start..start + end];
        let (bytes, crlf) = bytes.strip_suffix(b"\r").map_or((bytes, false), |bytes| (bytes, true));
        Ok(Some(RawLine { bytes, crlf, offset, number: self.lines }))
    }

    /// Moves past a line of `bytes` bytes, or to the end of the buffer.
    fn advance(&mut self, bytes: usize) {
        let bytes = bytes.min(self.to - self.from);
        self.from += bytes;
        self.offset += bytes as u64;
        self.lines += 1;
    }

    /// Skips a byte order mark at the beginning of the text.
    fn drop_mark(&mut self) -> Result<()> {
        while !self.ended && self.to - self.from < 4 {
            self.fill()?;
        }
        if self.to - self.from > 3 && self.buffer[self.from..].starts_with(b"\xef\xbb\xbf") {
            self.from += 3;
            self.offset += 3;
        }
        Ok(())
    }

    /// Skips the rest of a line that is too long. Returns the error.
    #[cold]
    fn too_long(&mut self) -> Error {
        let (offset, limit) = (self.offset, self.bounds.line_bytes);
        let mut error =
            Error::data(format!("the line is longer than {}", Bytes(limit as u64))).line(self.lines + 1).offset(offset);
        error = error.help("raise `max_line_bytes` if lines of this length are correct");
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.from..self.to]) {
                self.advance(at + 1);
                return error;
            }
            self.offset += (self.to - self.from) as u64;
            self.from = self.to;
            if self.ended || self.fill().is_err() {
                self.lines += 1;
                return error;
            }
        }
    }

    /// Reads more bytes after the unread bytes. Grows the buffer if it is full.
    fn fill(&mut self) -> Result<()> {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        if self.to == self.buffer.len() {
            let room = self.buffer.len().saturating_mul(2).min(self.bounds.line_bytes.saturating_add(BUFFER));
            self.buffer.resize(room, 0);
        }
        match self.decoder.read(&mut self.buffer[self.to..]) {
            Ok(0) => self.ended = true,
            Ok(read) => self.to += read,
            Err(error) => return Err(self.damaged(error)),
        }
        Ok(())
    }

    #[cold]
    fn damaged(&mut self, error: io::Error) -> Error {
        // Bytes decompressed before the damage may be wrong too, because gzip has its checksum at the end of a member.
        self.ended = true;
        self.offset += (self.to - self.from) as u64;
        self.from = self.to;
        self.decoder.fault(error)
    }
}
