//! Writing WebDataset's shards.

use std::fmt;
use std::io::Write;

use super::super::encode;
use super::header::BLOCK;
use super::sample::{KEY, split};
use crate::element::{Element, Value};
use crate::error::{Error, ErrorKind, Result};

/// Writes the samples of a WebDataset shard, one after the other; [`finish`](Self::finish) writes the end of the archive.
///
/// An element has the text `__key__`; every other field becomes a file `KEY.NAME`, in their order, but for those whose names begin with `_`.
/// Bytes and text are written as they are. By the last part of the name, arrays become files of `npy`, whole numbers digits
/// (`cls`, `cls2`, `class`, `count`, `index`, `inx`, `id`), and whatever JSON holds `json` (`jsn`): reading with
/// [`decode`](super::WebDatasetOptions::decode) gives them back. Images are given as the bytes of their files.
///
/// ```
/// use gristmill::source::WebDatasetWriter;
/// use gristmill::{Array, Element};
/// let mut writer = WebDatasetWriter::new(Vec::new());
/// writer.write(&Element::new().with("__key__", "a/0001").with("txt", "oat").with("cls", Array::scalar(7i64)))?;
/// let archive = writer.finish()?;
/// assert_eq!(&archive[..10], b"a/0001.txt");
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with record and field for a key or a name that would read back as another, for the key of the sample
/// before, and for values that cannot be written; the sample is not written then. [`ErrorKind::Io`](crate::ErrorKind::Io) where `out` fails.
///
/// # Determinism
/// The same elements make the same bytes: files are of mode 0444, of no time and nobody. Headers are POSIX ustar's, with an extended header where a
/// name is longer than those hold.
#[must_use = "an archive that is not finished cannot be read"]
pub struct WebDatasetWriter<W> {
    out: W,
    last_key: Option<String>,
    samples: u64,
}

/// Kind of a member, in its header.
const FILE: u8 = b'0';
const EXTENDED: u8 = b'x';

impl<W: Write> WebDatasetWriter<W> {
    /// Writes to `out`, a file of a sample at a time.
    pub fn new(out: W) -> Self {
        Self { out, last_key: None, samples: 0 }
    }

    /// Writes a sample.
    ///
    /// # Errors
    /// As above.
    pub fn write(&mut self, element: &Element) -> Result<()> {
        let record = self.samples;
        let key = self.key(element).map_err(|e| e.record(record))?;
        let mut files = Vec::with_capacity(element.len());
        for (name, value) in element.iter().filter(|(name, _)| !name.starts_with('_')) {
            files.push(file(key, name, value).map_err(|e| e.and(&format!(", in field {name:?}")).record(record))?);
        }
        if files.is_empty() {
            return Err(Error::data("a sample without a field is no file of an archive").record(record));
        }
        let key = key.to_owned();
        for (path, data) in files {
            self.member(&path, &data)?;
        }
        self.last_key = Some(key);
        self.samples += 1;
        Ok(())
    }

    /// Samples so far.
    pub fn len(&self) -> u64 {
        self.samples
    }

    /// Whether there is no sample yet.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Writes the end of the archive, and gives back what it wrote to.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written.
    pub fn finish(mut self) -> Result<W> {
        self.out.write_all(&[0; 2 * BLOCK as usize]).and_then(|()| self.out.flush()).map_err(failed)?;
        Ok(self.out)
    }

    /// The key of a sample, which must be another than that of the last.
    fn key<'a>(&self, element: &'a Element) -> Result<&'a str> {
        let key = element.text(KEY)?;
        if self.last_key.as_deref() == Some(key) {
            return Err(Error::data(format!("the key {key:?} again: the two samples would read as one")));
        }
        Ok(key)
    }

    fn member(&mut self, path: &str, data: &[u8]) -> Result<()> {
        let name = match Place::of(path) {
            Some(place) => place,
            None => {
                self.block(&header(Place { prefix: "", name: "PaxHeader" }, EXTENDED, 0), &path_record(path))?;
                // What those read that know no extended headers.
                Place { prefix: "", name: tail(path) }
            }
        };
        self.block(&header(name, FILE, 0), data)
    }

    /// A header, told the size of the data behind it, and the data, filled with zeros.
    fn block(&mut self, header: &tar::Header, data: &[u8]) -> Result<()> {
        let mut header = header.clone();
        header.set_size(data.len() as u64);
        header.set_cksum();
        let padding = data.len().next_multiple_of(BLOCK as usize) - data.len();
        let zeros = [0; BLOCK as usize];
        for part in [header.as_bytes().as_slice(), data, &zeros[..padding]] {
            self.out.write_all(part).map_err(failed)?;
        }
        Ok(())
    }
}

/// The path of a field's file and its data.
fn file<'a>(key: &str, name: &str, value: &'a Value) -> Result<(String, std::borrow::Cow<'a, [u8]>)> {
    let path = format!("{key}.{name}");
    if split(&path) != Some((key, name.to_owned())) || path.contains('\0') {
        let text = format!("the key {key:?} and the name {name:?} would read back as others");
        return Err(Error::data(text).help("keys have no dot in their last part, names no `/` and no upper case"));
    }
    Ok((path, encode::by_extension(name, value)?))
}

/// Place of a path in a header.
#[derive(Clone, Copy)]
struct Place<'a> {
    prefix: &'a str,
    name: &'a str,
}

impl<'a> Place<'a> {
    /// A name of 100 bytes, in front of which, with a `/` between, a prefix of 155; `None` if it fits nowhere.
    fn of(path: &'a str) -> Option<Self> {
        if path.len() <= 100 {
            return Some(Self { prefix: "", name: path });
        }
        let mut slashes = path.match_indices('/').map(|(at, _)| at);
        let at = slashes.rfind(|&at| at > 0 && at <= 155 && (1..=100).contains(&(path.len() - at - 1)))?;
        Some(Self { prefix: &path[..at], name: &path[at + 1..] })
    }
}

/// The end of a path, as much of it as a header holds.
fn tail(path: &str) -> &str {
    let from = (path.len().saturating_sub(100)..).find(|&at| path.is_char_boundary(at));
    &path[from.unwrap_or_default()..]
}

fn header(place: Place<'_>, kind: u8, mtime: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o444);
    header.set_mtime(mtime);
    header.set_uid(0);
    header.set_gid(0);
    header.set_entry_type(tar::EntryType::new(kind));
    if let Some(ustar) = header.as_ustar_mut() {
        ustar.name[..place.name.len()].copy_from_slice(place.name.as_bytes());
        ustar.prefix[..place.prefix.len()].copy_from_slice(place.prefix.as_bytes());
    }
    header
}

/// `LENGTH path=PATH\n`, where the length counts itself.
fn path_record(path: &str) -> Vec<u8> {
    let rest = path.len() + " path=\n".len();
    let mut length = rest;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} path={path}\n").into_bytes()
}

#[cold]
fn failed(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, error.to_string()).caused_by(error)
}

impl<W> fmt::Debug for WebDatasetWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebDatasetWriter({} samples)", self.samples)
    }
}
