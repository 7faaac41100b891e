//! The bytes of a file, wherever it lies.
#![cfg_attr(not(feature = "formats"), allow(dead_code, reason = "what all formats share, no one format needs whole"))]

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::abreast;
use super::files::{self, FileId, Patterns};
use super::formats::Format;
#[cfg(feature = "array_record")]
use super::pieces::Pieces;
use super::signs::compression;
use super::stdin;
use crate::cores;
use crate::dataset::Upcoming;
use crate::element::{Buffer, Owner};
use crate::error::{Error, ErrorKind, Result};
use crate::mmap::{Access, Mapping};
use crate::place::{self, Location};
#[cfg(feature = "store")]
use crate::store::{END, Object};

/// The bytes of a file. Formats read the ranges they need and no others, so that what lies far away need not come whole.
#[derive(Clone, Debug)]
pub(crate) struct Content(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// In memory.
    Here(Buffer),
    /// Mapped, with the hash of a sample of it, where that was taken already.
    Mapped(Buffer, Arc<Mapping>, Option<u64>),
    #[cfg(feature = "store")]
    Far(Arc<Object>),
    /// Standard input. It has no length, and is read front to back once.
    Piped,
}

impl Owner for Mapping {
    fn bytes(&self) -> &[u8] {
        self.bytes()
    }
}

impl Content {
    /// Maps a file, or asks a store for its size and version.
    pub(crate) fn open(location: &Location, access: Access) -> Result<Self> {
        let path = match location {
            Location::Local(path) => path,
            #[cfg(feature = "store")]
            Location::Object(url) => return Self::far(url, Object::open(url)?),
            #[cfg(not(feature = "store"))]
            Location::Object(url) => return Err(crate::store::lacking(url)),
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

    /// Opens a file that is read front to back, which may be standard input.
    pub(crate) fn open_stream(location: &Location) -> Result<Self> {
        match location {
            Location::Local(path) if stdin::is_piped(path) => Ok(Self(Kind::Piped)),
            _ => Self::open(location, Access::Sequential),
        }
    }

    /// Whether it is standard input: no more of it than the first bytes is read twice.
    pub(crate) fn is_piped(&self) -> bool {
        matches!(self.0, Kind::Piped)
    }

    /// Opens a file whose end is read first: one request brings version and end of an object if a listing gave its size.
    pub(crate) fn open_end(location: &Location, access: Access) -> Result<Self> {
        match location {
            #[cfg(feature = "store")]
            Location::Object(url) => {
                let content = Self::far(url, Object::open_end(url)?)?;
                content.fetch(std::slice::from_ref(&(content.len().saturating_sub(END)..content.len())));
                Ok(content)
            }
            _ => Self::open(location, access),
        }
    }

    #[cfg(feature = "store")]
    fn far(url: &Path, object: Arc<Object>) -> Result<Self> {
        check_begun(url, object.len())?;
        Ok(Self(Kind::Far(object)))
    }

    /// Bytes in it; more than there can be, of standard input.
    pub(crate) fn len(&self) -> u64 {
        match &self.0 {
            Kind::Here(bytes) | Kind::Mapped(bytes, ..) => bytes.len() as u64,
            #[cfg(feature = "store")]
            Kind::Far(object) => object.len(),
            Kind::Piped => u64::MAX,
        }
    }

    /// Its first bytes, up to `bytes` of them.
    pub(crate) fn head(&self, bytes: u64) -> Result<Buffer> {
        match &self.0 {
            Kind::Piped => stdin::head(bytes as usize),
            _ => self.read(0..self.len().min(bytes)),
        }
    }

    /// A range of its bytes: a view where they are mapped.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the offset if the range reaches over the end.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Buffer> {
        let (start, end) = self.check(&range)?;
        match &self.0 {
            Kind::Here(bytes) | Kind::Mapped(bytes, ..) => Ok(bytes.slice(start..end).unwrap_or(Buffer::EMPTY)),
            #[cfg(feature = "store")]
            Kind::Far(object) => object.read(range),
            Kind::Piped => Err(stdin::refused("has no random access, which is needed here")),
        }
    }

    /// The begin and end of a range, which is to lie inside.
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

    /// These bytes as they lie in memory, without a copy.
    ///
    /// # Errors
    /// As [`read`](Self::read), of what lies far away.
    #[cfg(feature = "array_record")]
    pub(crate) fn pieces(&self, range: Range<u64>) -> Result<Pieces<'_>> {
        match &self.0 {
            Kind::Here(bytes) | Kind::Mapped(bytes, ..) => Ok(Pieces::All(bytes.as_bytes())),
            #[cfg(feature = "store")]
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

    /// Its bytes where they are in memory or mapped: what is read of them costs nothing.
    pub(crate) fn here(&self) -> Option<&[u8]> {
        match &self.0 {
            Kind::Here(bytes) | Kind::Mapped(bytes, ..) => Some(bytes.as_bytes()),
            #[cfg(feature = "store")]
            Kind::Far(_) => None,
            Kind::Piped => None,
        }
    }

    /// Says that these ranges will be read soon: what lies far away begins to come, all of it at once.
    pub(crate) fn fetch(&self, ranges: &[Range<u64>]) {
        match (&self.0, ranges) {
            (Kind::Here(..) | Kind::Mapped(..) | Kind::Piped, _) => {}
            #[cfg(feature = "store")]
            (Kind::Far(object), ranges) => object.fetch(ranges),
        }
    }

    /// Brings the pages of these bytes into memory, where they are mapped, and no others: see [`Mapping::bring`].
    pub(crate) fn bring(&self, range: Range<u64>) {
        if let (Kind::Mapped(_, mapping, _), Ok(start), Ok(end)) =
            (&self.0, usize::try_from(range.start), usize::try_from(range.end))
        {
            mapping.bring(start..end);
        }
    }

    /// All of its bytes.
    pub(crate) fn whole(&self) -> Result<Buffer> {
        self.read(0..self.len())
    }

    /// All of its bytes, where it is a text that describes others: no more than 256 MiB.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if it is longer; as [`read`](Self::read), of what lies far away.
    #[cfg(any(feature = "arrow", feature = "mds"))]
    pub(crate) fn description(&self) -> Result<Buffer> {
        crate::store::check_description(self.len())?;
        self.whole()
    }

    /// Its bytes front to back.
    pub(crate) fn stream(&self) -> Stream {
        Stream { content: self.clone(), piece: Buffer::EMPTY, taken: 0, next: 0 }
    }

    /// Its part in the identity of a source.
    pub(crate) fn id(&self, path: impl AsRef<Path>) -> FileId {
        let (size, hash) = match &self.0 {
            Kind::Here(bytes) => (bytes.len() as u64, files::sample(bytes.as_bytes())),
            Kind::Mapped(bytes, _, hash) => {
                (bytes.len() as u64, hash.unwrap_or_else(|| files::sample(bytes.as_bytes())))
            }
            #[cfg(feature = "store")]
            Kind::Far(object) => (object.len(), object.hash()),
            // Nothing is known of its content.
            Kind::Piped => return FileId { name: place::STDIN.to_owned(), size: 0, hash: 0 },
        };
        FileId { name: files::file_name(path.as_ref()).into_owned(), size, hash }
    }

    /// The key of an object of a store: its URL and its version, where the server tells one. Files are known otherwise.
    pub(crate) fn known_as(&self) -> Option<u64> {
        match &self.0 {
            Kind::Here(..) | Kind::Mapped(..) | Kind::Piped => None,
            #[cfg(feature = "store")]
            Kind::Far(object) => object.known_as(),
        }
    }

    /// Reads what comes from `at` on, at least a byte of it unless that is the end: a piece of what is read front to back.
    fn piece(&self, at: u64) -> Result<Buffer> {
        match &self.0 {
            Kind::Here(..) | Kind::Mapped(..) => self.read(at..self.len().min(at + PIECE)),
            #[cfg(feature = "store")]
            Kind::Far(object) => object.read_on(at),
            Kind::Piped => stdin::piece(at),
        }
    }
}

/// The bytes of a [`Content`], front to back.
#[derive(Debug)]
pub(crate) struct Stream {
    content: Content,
    piece: Buffer,
    /// Of the piece.
    taken: usize,
    /// The byte of the file at which the piece ends.
    next: u64,
}

/// Bytes of a piece.
const PIECE: u64 = 4 << 20;

impl Stream {
    /// Bytes of the file that were taken.
    pub(crate) fn position(&self) -> u64 {
        self.next - (self.piece.len() - self.taken) as u64
    }

    /// The same stream at the same place; this one is at the end then.
    #[cfg(feature = "compress")]
    pub(crate) fn take_over(&mut self) -> Self {
        let end = Self { content: self.content.clone(), piece: Buffer::EMPTY, taken: 0, next: self.content.len() };
        std::mem::replace(self, end)
    }

    /// Goes to a place in the file, if there is such a place.
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

/// Bytes that are in memory already.
impl From<Buffer> for Content {
    fn from(bytes: Buffer) -> Self {
        Self(Kind::Here(bytes))
    }
}

/// Begins to fetch parts of files, which are told by their number, where they lie far away: all at once.
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

/// Says that parts of files, which are told by their number, will be read next and in this order, so that what lies far away is on
/// its way by then.
#[cfg(feature = "store")]
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

/// Nothing is far away.
#[cfg(not(feature = "store"))]
pub(crate) fn will_read<'a, C: Into<Option<&'a Content>>>(
    _: impl Iterator<Item = (usize, Range<u64>)>,
    _: Upcoming<'_>,
    _: impl Fn(usize) -> C,
) {
}

/// Refuses a file that begins with these bytes of a codec: what is compressed has no random access, and `help` says what it has.
///
/// # Errors
/// [`ErrorKind::Unsupported`].
pub(crate) fn check_plain(head: &[u8], help: &'static str) -> Result<()> {
    refuse_compressed(compression(head), help)
}

/// The same of a file that is compressed by this codec, if it is.
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

/// Whether some of these lie far away.
pub(crate) fn any_far<'a>(mut contents: impl Iterator<Item = &'a Content>) -> bool {
    contents.any(|content| content.here().is_none())
}

/// Refuses a file of 0 bytes whose name says that it is compressed: no codec writes that, so its writer was stopped.
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

/// Opens what lies beside another file, if it is there.
#[cfg_attr(not(feature = "compress"), allow(dead_code, reason = "one format has files beside others"))]
pub(crate) fn beside(location: &Location, access: Access) -> Result<Option<Content>> {
    let is_there = match location {
        Location::Local(path) => path.exists(),
        #[cfg(feature = "store")]
        Location::Object(url) => Object::is_there(url)?,
        #[cfg(not(feature = "store"))]
        Location::Object(_) => true,
    };
    is_there.then(|| Content::open(location, access)).transpose()
}

/// Bytes of an object.
#[cfg(feature = "cli")]
pub(crate) fn size(path: &Path) -> Result<u64> {
    Ok(Content::open(&path.into(), Access::Normal).map_err(|e| e.path(path))?.len())
}

/// The error that a [`Stream`] put into one of the standard library.
pub(crate) fn untold(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::new(ErrorKind::Io, error.to_string()),
    }
}

/// Files that are open, in their order.
pub(crate) type Contents = Vec<(Location, Content)>;

/// The files that `patterns` name, in their order, opened.
pub(crate) fn open_all(patterns: impl Patterns, extensions: &[&str], access: Access) -> Result<Contents> {
    open_each(files::locate(patterns, extensions)?, access)
}

/// The same of files that are read front to back, standard input among them.
pub(crate) fn open_streams(patterns: impl Patterns, extensions: &[&str]) -> Result<Contents> {
    open_each_by(files::locate(patterns, extensions)?, Content::open_stream)
}

/// Files, opened, many at a time.
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
