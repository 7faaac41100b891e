//! The content of a file: in memory, mapped, in a store, or from standard input.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::abreast;
use super::files::{self, FileId, Patterns};
use super::formats::Format;
use super::pieces::Pieces;
use super::signs::compression;
use super::stdin;
use crate::cores;
use crate::dataset::Upcoming;
use crate::element::{Buffer, Owner};
use crate::error::{Error, ErrorKind, Result};
use crate::mmap::{Access, Mapping};
use crate::place::{self, Location};
use crate::store::{END, Object};

/// The content of a file. Formats read only the ranges they need, so a remote file is not transferred whole.
#[derive(Clone, Debug)]
pub(crate) struct Content(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// In memory.
    Here(Buffer),
    /// Mapped, with the hash of a sample if it was already computed.
    Mapped(Buffer, Arc<Mapping>, Option<u64>),
    Far(Arc<Object>),
    /// Standard input. Has no length, and is read once, front to back.
    Piped,
}

impl Owner for Mapping {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }
}

impl Content {
    /// Maps a local file, or requests the size and version of an object.
    pub(crate) fn open(location: &Location, access: Access) -> Result<Self> {
        let path = match location {
            Location::Local(path) => path,
            Location::Object(url) => return Self::far(url, Object::open(url)?),
        };
        if stdin::is_piped(path) {
            return Err(stdin::refused("has no random access, which is needed here"));
        }
        let (mapping, file) = Mapping::open_file(path, access)?;
        check_begun(path, mapping.bytes().len() as u64)?;
        let hash = files::sample_file(&file, mapping.bytes().len());
        let mapping = Arc::new(mapping);
        let bytes = Buffer::from_owner(mapping.clone());
        Ok(Self(Kind::Mapped(bytes, mapping, hash)))
    }

    /// Opens a file for a sequential read. The file may be standard input.
    pub(crate) fn open_stream(location: &Location) -> Result<Self> {
        match location {
            Location::Local(path) if stdin::is_piped(path) => Ok(Self(Kind::Piped)),
            _ => Self::open(location, Access::Sequential),
        }
    }

    /// Returns true for standard input. Only its first bytes can be read twice.
    pub(crate) fn is_piped(&self) -> bool {
        matches!(self.0, Kind::Piped)
    }

    /// Opens a file whose end is read first. One request fetches version and end if a listing gave the size.
    pub(crate) fn open_end(location: &Location, access: Access) -> Result<Self> {
        if let Location::Object(url) = location {
            let content = Self::far(url, Object::open_end(url)?)?;
            content.fetch(std::slice::from_ref(&(content.len().saturating_sub(END)..content.len())));
            Ok(content)
        } else {
            Self::open(location, access)
        }
    }

    fn far(url: &Path, object: Arc<Object>) -> Result<Self> {
        check_begun(url, object.len())?;
        Ok(Self(Kind::Far(object)))
    }

    /// Returns the length in bytes; `u64::MAX` for standard input.
    pub(crate) fn len(&self) -> u64 {
        match &self.0 {
            Kind::Here(bytes) | Kind::Mapped(bytes, ..) => bytes.len() as u64,
            Kind::Far(object) => object.len(),
            Kind::Piped => u64::MAX,
        }
    }

    /// Returns the first bytes, at most `bytes` of them.
    pub(crate) fn head(&self, bytes: u64) -> Result<Buffer> {
        if let Kind::Piped = &self.0 { stdin::head(bytes as usize) } else { self.read(0..self.len().min(bytes)) }
    }

    /// Returns a range of bytes. A mapped file returns a view, without a copy.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the offset if the range extends past the end.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Buffer> {
        let (start, end) = self.check(&range)?;
        match &self.0 {
            Kind::Here(bytes) | Kind::Mapped(bytes, ..) => Ok(bytes.slice(start..end).unwrap_or(Buffer::EMPTY)),
            Kind::Far(object) => object.read(range),
            Kind::Piped => Err(stdin::refused("has no random access, which is needed here")),
        }
    }

    /// Checks that a range lies inside the file. Returns its start and end.
    #[inline]
    fn check(&self, range: &Range<u64>) -> Result<(usize, usize)> {
        let inside = range.start <= range.end && range.end <= self.len();
        match (usize::try_from(range.start), usize::try_from(range.end)) {
            (Ok(start), Ok(end)) if inside => Ok((start, end)),
            _ => Err(self.outside(range)),
        }
    }

    #[cold]
    fn outside(&self, range: &Range<u64>) -> Error {
        let text = format!("bytes {} to {} of a file of {}", range.start, range.end, self.len());
        Error::data(text).offset(range.start.min(self.len())).help("the file is cut or damaged")
    }

    /// Returns a view of the bytes that covers `range`, without a copy.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read), for remote files and standard input.
    pub(crate) fn pieces(&self, range: Range<u64>) -> Result<Pieces<'_>> {
        match &self.0 {
            Kind::Here(bytes) | Kind::Mapped(bytes, ..) => Ok(Pieces::All(bytes.as_bytes())),
            Kind::Far(object) => {
                self.check(&range)?;
                Ok(Pieces::Far {
                    at: range.start,
                    end: range.end,
                    blocks: object.pieces(range).collect::<Result<_>>()?,
                })
            }
            Kind::Piped => self.read(range).map(|_| Pieces::All(&[])),
        }
    }

    /// Returns all bytes if the file is in memory or mapped. Their access needs no further request.
    pub(crate) fn here(&self) -> Option<&[u8]> {
        match &self.0 {
            Kind::Here(bytes) | Kind::Mapped(bytes, ..) => Some(bytes.as_bytes()),
            Kind::Far(_) | Kind::Piped => None,
        }
    }

    /// Starts fetching ranges that will be read soon, all at once, if the file is remote.
    pub(crate) fn fetch(&self, ranges: &[Range<u64>]) {
        if let Kind::Far(object) = &self.0 {
            object.fetch(ranges);
        }
    }

    /// Loads only the pages of `range` into memory, if the file is mapped: see [`Mapping::bring`].
    pub(crate) fn bring(&self, range: Range<u64>) {
        if let (Kind::Mapped(_, mapping, _), Ok(start), Ok(end)) =
            (&self.0, usize::try_from(range.start), usize::try_from(range.end))
        {
            mapping.bring(start..end);
        }
    }

    /// Returns all bytes.
    pub(crate) fn whole(&self) -> Result<Buffer> {
        self.read(0..self.len())
    }

    /// Returns all bytes of a text that describes other files, at most 256 MiB.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if it is longer; the errors of [`read`](Self::read) for remote
    /// files.
    pub(crate) fn description(&self) -> Result<Buffer> {
        crate::store::check_description(self.len())?;
        self.whole()
    }

    /// Returns a sequential reader of the bytes.
    pub(crate) fn stream(&self) -> Stream {
        Stream { content: self.clone(), piece: Buffer::EMPTY, taken: 0, next: 0 }
    }

    /// Returns the contribution of this file to the identity of a source.
    pub(crate) fn id(&self, path: impl AsRef<Path>) -> FileId {
        let (size, hash) = match &self.0 {
            Kind::Here(bytes) => (bytes.len() as u64, files::sample(bytes.as_bytes())),
            Kind::Mapped(bytes, _, hash) => {
                (bytes.len() as u64, hash.unwrap_or_else(|| files::sample(bytes.as_bytes())))
            }
            Kind::Far(object) => (object.len(), object.hash()),
            // The content is not known in advance.
            Kind::Piped => return FileId { name: place::STDIN.to_owned(), size: 0, hash: 0 },
        };
        FileId { name: files::file_name(path.as_ref()).into_owned(), size, hash }
    }

    /// Returns the key of an object in a store: a hash of its URL and version, if it has a version. Local files have
    /// other keys.
    pub(crate) fn known_as(&self) -> Option<u64> {
        if let Kind::Far(object) = &self.0 { object.known_as() } else { None }
    }

    /// Reads a piece from `at` on, for a sequential read. The piece has at least 1 byte, except at the end.
    fn piece(&self, at: u64) -> Result<Buffer> {
        match &self.0 {
            Kind::Here(..) | Kind::Mapped(..) => self.read(at..self.len().min(at + PIECE)),
            Kind::Far(object) => object.read_on(at),
            Kind::Piped => stdin::piece(at),
        }
    }
}

/// Sequential reader of a [`Content`].
#[derive(Debug)]
pub(crate) struct Stream {
    content: Content,
    piece: Buffer,
    /// Number of bytes consumed from the piece.
    taken: usize,
    /// Offset in the file of the end of the piece.
    next: u64,
}

/// Maximum size of a piece in bytes, for mapped files.
const PIECE: u64 = 4 << 20;

impl Stream {
    /// Returns the offset in the file of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.next - (self.piece.len() - self.taken) as u64
    }

    /// Moves the stream out, at its current position. Leaves a stream at the end of the file.
    pub(crate) fn take_over(&mut self) -> Self {
        let end = Self { content: self.content.clone(), piece: Buffer::EMPTY, taken: 0, next: self.content.len() };
        std::mem::replace(self, end)
    }

    /// Moves to an offset in the file. Returns false if the file ends before it.
    pub(crate) fn seek(&mut self, position: u64) -> bool {
        let inside = position <= self.content.len();
        let piece_start = self.next - self.piece.len() as u64;
        if (piece_start..=self.next).contains(&position) {
            self.taken = (position - piece_start) as usize;
        } else if inside {
            (self.piece, self.taken, self.next) = (Buffer::EMPTY, 0, position);
        }
        inside
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Stream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.piece.len() && self.next < self.content.len() {
            self.piece = self.content.piece(self.next).map_err(io::Error::other)?;
            (self.taken, self.next) = (0, self.next + self.piece.len() as u64);
        }
        Ok(&self.piece.as_bytes()[self.taken..])
    }

    fn consume(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.piece.len());
    }
}

/// Wraps bytes that are already in memory.
impl From<Buffer> for Content {
    fn from(bytes: Buffer) -> Self {
        Self(Kind::Here(bytes))
    }
}

/// Starts fetching ranges of remote files, all at once. A part is the number of a file and a range in it.
pub(crate) fn fetch_all<'a, C: Into<Option<&'a Content>>>(
    parts: impl Iterator<Item = (usize, Range<u64>)>,
    content: impl Fn(usize) -> C,
) {
    let mut wanted: BTreeMap<usize, Vec<Range<u64>>> = BTreeMap::new();
    let is_far = |file| content(file).into().is_some_and(|content| content.here().is_none());
    for (file, range) in parts.filter(|(file, _)| is_far(*file)) {
        wanted.entry(file).or_default().push(range);
    }
    wanted.iter().for_each(|(&file, ranges)| content(file).into().iter().for_each(|content| content.fetch(ranges)));
}

/// Announces the next reads, in order, so that remote data arrives before it is read. A part is the number of a file
/// and a range in it.
pub(crate) fn will_read<'a, C: Into<Option<&'a Content>>>(
    parts: impl Iterator<Item = (usize, Range<u64>)>,
    next: Upcoming<'_>,
    content: impl Fn(usize) -> C,
) {
    let mut last = None;
    for (file, range) in parts {
        if let Some(Content(Kind::Far(object))) = content(file).into() {
            object.will_read(range, next.wanted());
            last = Some(object);
        }
    }
    last.iter().for_each(|object| object.go_on());
}

/// Rejects a file whose `head` is compressed, because it has no random access. `help` is the remedy.
///
/// # Errors
/// [`ErrorKind::Unsupported`].
pub(crate) fn check_plain(head: &[u8], help: &'static str) -> Result<()> {
    refuse_compressed(compression(head), help)
}

/// Rejects a file that is compressed with `codec`. Accepts the file if `codec` is `None`.
///
/// # Errors
/// [`ErrorKind::Unsupported`].
pub(crate) fn refuse_compressed(codec: Option<&str>, help: &'static str) -> Result<()> {
    let Some(codec) = codec else { return Ok(()) };
    if cfg!(not(feature = "compress")) {
        return Err(Format::LineStream.lacking());
    }
    Err(Error::unsupported(format!("is compressed with {codec}, which has no random access")).help(help))
}

/// Returns true if a file is neither in memory nor mapped.
pub(crate) fn any_far<'a>(mut contents: impl Iterator<Item = &'a Content>) -> bool {
    contents.any(|content| content.here().is_none())
}

/// Rejects a file of 0 bytes with a compressed ending. No codec writes such a file: its writer was interrupted.
///
/// # Errors
/// [`ErrorKind::Data`].
fn check_begun(path: &Path, len: u64) -> Result<()> {
    const ENDINGS: [&str; 5] = [".gz", ".tgz", ".zst", ".lz4", ".zlib"];
    let name = files::file_name(path);
    let is_packed = |ending: &&str| name.len() > ending.len() && name.to_lowercase().ends_with(*ending);
    match ENDINGS.iter().find(|ending| len == 0 && is_packed(ending)) {
        None => Ok(()),
        Some(ending) => Err(Error::data(format!("0 bytes, and every whole {ending} file has some"))
            .path(path)
            .offset(0)
            .help("its writer was stopped before it wrote anything: write it again, or leave it out")),
    }
}

/// Opens a file that accompanies another file, if it exists.
pub(crate) fn beside(location: &Location, access: Access) -> Result<Option<Content>> {
    let is_there = match location {
        Location::Local(path) => path.exists(),
        Location::Object(url) => Object::is_there(url)?,
    };
    is_there.then(|| Content::open(location, access)).transpose()
}

/// Returns the size of a file or object in bytes.
pub(crate) fn size(path: &Path) -> Result<u64> {
    Ok(Content::open(&path.into(), Access::Normal).map_err(|e| e.path(path))?.len())
}

/// Returns the error that a [`Stream`] wrapped in an error of the standard library.
pub(crate) fn untold(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::new(ErrorKind::Io, error.to_string()),
    }
}

/// Open files, in order.
pub(crate) type Contents = Vec<(Location, Content)>;

/// Opens the files that `patterns` name, in order.
pub(crate) fn open_all(patterns: impl Patterns, extensions: &[&str], access: Access) -> Result<Contents> {
    open_each(files::locate(patterns, extensions)?, access)
}

/// Opens the files that `patterns` name for sequential reads. Standard input is allowed.
pub(crate) fn open_streams(patterns: impl Patterns, extensions: &[&str]) -> Result<Contents> {
    open_each_by(files::locate(patterns, extensions)?, Content::open_stream)
}

/// Opens files in parallel.
pub(crate) fn open_each(files: Vec<Location>, access: Access) -> Result<Contents> {
    open_each_by(files, |file| Content::open(file, access))
}

fn open_each_by(files: Vec<Location>, open: impl Fn(&Location) -> Result<Content> + Sync) -> Result<Contents> {
    cores::try_map_on(abreast::ends(&files), files, |file| {
        let content = open(&file)?;
        Ok((file, content))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_file_without_a_byte_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            std::fs::write(dir.path().join(name), b"").unwrap();
            Content::open(&dir.path().join(name).into(), Access::Normal).map(|content| content.len())
        };
        for name in ["a.jsonl.gz", "A.CSV.ZST", "a.tar.lz4", "a.tgz", "a.tfrecord.zlib"] {
            let error = open(name).unwrap_err().to_string();
            assert!(error.contains(&format!("{name}: byte 0: 0 bytes, and every whole .")), "{error}");
        }
        assert_eq!([".gz", "a.jsonl", "gz"].map(|name| open(name).unwrap()), [0; 3]);
    }

    #[test]
    fn a_stream_crosses_its_pieces_and_goes_back() {
        let bytes: Vec<u8> = (0..2 * PIECE + 10).map(|i| (i % 251) as u8).collect();
        let mut stream = Content::from(Buffer::copy_from(&bytes)).stream();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert!(all == bytes && stream.position() == bytes.len() as u64);
        assert!(stream.seek(PIECE - 1) && !stream.seek(bytes.len() as u64 + 1));
        let mut two = [0; 2];
        stream.read_exact(&mut two).unwrap();
        assert_eq!((two.as_slice(), stream.position()), (&bytes[PIECE as usize - 1..][..2], PIECE + 1));
    }

    #[test]
    fn ranges_are_views_and_reach_no_further() {
        let content = Content::from(Buffer::copy_from(b"0123456789"));
        assert_eq!((content.len(), content.read(2..5).unwrap().as_bytes()), (10, b"234".as_slice()));
        assert_eq!(content.whole().unwrap().len(), 10);
        assert_eq!(content.read(10..10).unwrap().len(), 0);
        for range in [3..11, 11..12, u64::MAX - 1..u64::MAX] {
            assert!(content.read(range.clone()).unwrap_err().message().contains("of a file of 10"), "{range:?}");
        }
    }
}
