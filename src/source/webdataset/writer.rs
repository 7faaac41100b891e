//! Writer of WebDataset shards.

use std::io::Write;

use super::super::encode;
use super::header::BLOCK;
use super::sample::{KEY, split};
use crate::element::{Element, Value};
use crate::error::{Error, Result};

/// Writes the samples of a WebDataset shard. [`finish`](Self::finish) writes the end of the archive.
///
/// An element has the text `__key__`. Every other field becomes a file `KEY.NAME`, in order, except fields whose names
/// begin with `_`. Bytes are written unchanged, and so is text, except as JSON. The last part of the name determines
/// the encoding of other values:
///
/// | extension | value |
/// |---|---|
/// | `npy` | array |
/// | `cls`, `cls2`, `class`, `count`, `index`, `inx`, `id` | integer, as digits |
/// | `json`, `jsn` | any value that JSON can represent |
///
/// Reading with [`decode`](super::WebDatasetOptions::decode) restores the values. Images are passed as the bytes of
/// their files.
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
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with record and field if a key or a name would be read back differently,
/// if the previous sample has an equal key, or if a value cannot be written. The sample is then not written.
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if `out` fails.
///
/// # Determinism
/// Equal elements produce equal bytes: files have mode 0444 and zero for time, user and group. Headers are in POSIX's
/// ustar format, with an extended header for a name that is too long.
#[must_use = "an archive that is not finished cannot be read"]
pub struct WebDatasetWriter<W> {
    out: W,
    last_key: Option<String>,
    samples: u64,
}

/// Type of a member, in its header.
const FILE: u8 = b'0';
const EXTENDED: u8 = b'x';

impl<W: Write> WebDatasetWriter<W> {
    /// Creates a writer to `out`. Each file of a sample is written separately.
    pub fn new(out: W) -> Self {
        Self { out, last_key: None, samples: 0 }
    }

    /// Writes a sample.
    ///
    /// # Errors
    /// See [`WebDatasetWriter`].
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

    /// Returns the number of samples written.
    pub fn len(&self) -> u64 {
        self.samples
    }

    /// Returns true if no sample was written.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Writes the end of the archive, and returns the output.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn finish(mut self) -> Result<W> {
        self.out.write_all(&[0; 2 * BLOCK as usize]).and_then(|()| self.out.flush()).map_err(Error::of_io)?;
        Ok(self.out)
    }

    /// Returns the key of a sample, which must differ from the key of the previous sample.
    fn key<'a>(&self, element: &'a Element) -> Result<&'a str> {
        let key = element.text(KEY)?;
        if self.last_key.as_deref() == Some(key) {
            return Err(Error::data(format!("the key {key:?} again: the two samples would read as one")));
        }
        Ok(key)
    }

    fn member(&mut self, path: &str, data: &[u8]) -> Result<()> {
        let name = if let Some(place) = Place::of(path) {
            place
        } else {
            self.block(&header(Place { prefix: "", name: "PaxHeader" }, EXTENDED, 0), &path_record(path))?;
            // The name for readers that do not support extended headers.
            Place { prefix: "", name: tail(path) }
        };
        self.block(&header(name, FILE, 0), data)
    }

    /// Writes a header with the size of `data`, then the data, padded with zeros.
    fn block(&mut self, header: &tar::Header, data: &[u8]) -> Result<()> {
        let mut header = header.clone();
        header.set_size(data.len() as u64);
        header.set_cksum();
        let padding = data.len().next_multiple_of(BLOCK as usize) - data.len();
        let zeros = [0; BLOCK as usize];
        for part in [header.as_bytes().as_slice(), data, &zeros[..padding]] {
            self.out.write_all(part).map_err(Error::of_io)?;
        }
        Ok(())
    }
}

/// Returns the path and the data of a field's file.
fn file<'a>(key: &str, name: &str, value: &'a Value) -> Result<(String, std::borrow::Cow<'a, [u8]>)> {
    let path = format!("{key}.{name}");
    if split(&path) != Some((key, name.to_owned())) || path.contains('\0') {
        let text = format!("the key {key:?} and the name {name:?} would read back as others");
        return Err(Error::data(text).help("keys have no dot in their last part, names no `/` and no upper case"));
    }
    Ok((path, encode::by_extension(name, value)?))
}

/// A path, split for a header.
#[derive(Clone, Copy)]
struct Place<'a> {
    prefix: &'a str,
    name: &'a str,
}

impl<'a> Place<'a> {
    /// Splits a path at a `/` into a prefix of at most 155 bytes and a name of at most 100 bytes. Returns `None` if the
    /// path does not fit.
    fn of(path: &'a str) -> Option<Self> {
        if path.len() <= 100 {
            return Some(Self { prefix: "", name: path });
        }
        let mut slashes = path.match_indices('/').map(|(at, _)| at);
        let at = slashes.rfind(|&at| at > 0 && at <= 155 && (1..=100).contains(&(path.len() - at - 1)))?;
        Some(Self { prefix: &path[..at], name: &path[at + 1..] })
    }
}

/// Returns the end of a path, at most 100 bytes.
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

/// Returns the record `LENGTH path=PATH\n`. The length includes itself.
fn path_record(path: &str) -> Vec<u8> {
    let rest = path.len() + " path=\n".len();
    let mut length = rest;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} path={path}\n").into_bytes()
}

debug_as!(<W> WebDatasetWriter<W>, |self, f| write!(f, "WebDatasetWriter({} samples)", self.samples));
