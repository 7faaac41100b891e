//! Archives of NumPy arrays: `.npz` files, which are zip files with `.npy` members.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
mod rows;
mod zip;

use std::io::Read;
use std::path::{Path, PathBuf};

pub use self::rows::{NpzRows, npz};
use self::zip::{Member, directory, local_data};
use super::content::Content;
use super::files::{Patterns, identity, locate};
use super::formats::Format;
use super::npy::{self, Header};
use crate::element::{Array, Buffer, Element};
use crate::error::{Error, Result};
use crate::mmap::Access;
use crate::units::Bytes;

/// The named arrays of a single `.npz` file, stored or deflated.
///
/// Opening reads only the directory. Each array is read on request and its CRC-32 is checked. A stored array is a view
/// of the mapped file if its position is aligned.
pub struct Npz {
    path: PathBuf,
    file: Buffer,
    members: Vec<Member>,
    /// Maximum size of deflated arrays after inflation.
    max_bytes: u64,
    identity: String,
}

/// Returns the default for [`Npz::max_bytes`]. Real data never compresses 64-fold, and small files do little harm.
fn most_inflated(file: usize) -> u64 {
    (file as u64).saturating_mul(64).max(256 << 20)
}

impl Npz {
    /// Opens a file.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset if the directory is damaged or truncated.
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `pattern` matches several files.
    pub fn open(pattern: impl Patterns) -> Result<Self> {
        let files = locate(pattern, Format::Npz.endings())?;
        let [location] = files.as_slice() else {
            return Err(Error::config(format!("{} npz files, where one is read", files.len())));
        };
        let file = Content::open(location, Access::Normal)?.whole().map_err(|e| e.path(location))?;
        Self::of(location.clone().into_path(), file)
    }

    /// Opens an archive from the bytes of a whole file.
    pub(super) fn of(path: PathBuf, file: Buffer) -> Result<Self> {
        let identity = identity(&[Content::from(file.clone()).id(&path)]);
        let members = directory(file.as_bytes()).map_err(|e| e.path(&path))?;
        let max_bytes = most_inflated(file.len());
        Ok(Self { path, file, members, max_bytes, identity })
    }

    /// Sets the maximum size of the deflated arrays of a single call after inflation, in bytes.
    ///
    /// Default: 64 times the file size, but at least 256 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Returns the names of the arrays, in the order of the archive.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.members.iter().map(|m| m.name.strip_suffix(".npy").unwrap_or(&m.name))
    }

    /// Returns the array with this name.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the array is missing or damaged, or exceeds
    /// [`max_bytes`](Self::max_bytes) after inflation. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for
    /// other compression methods, and for types other than plain numbers.
    pub fn array(&self, name: &str) -> Result<Array> {
        let at = self.names().position(|n| n == name);
        let missing = || Error::data(super::columns::instead(name, self.names().collect::<Vec<_>>()));
        let member = &self.members[at.ok_or_else(|| missing().path(&self.path))?];
        self.check_size([member])?;
        self.read(member).map_err(|e| within(&self.path, &member.name, e).offset(member.at))
    }

    /// Returns all arrays as an element.
    ///
    /// # Errors
    /// The errors of [`array`](Self::array).
    pub fn element(&self) -> Result<Element> {
        self.check_size(&self.members)?;
        let mut element = Element::with_capacity(self.members.len());
        for name in self.names() {
            element.insert(name, self.array(name)?);
        }
        Ok(element)
    }

    /// Checks the total inflated size of the deflated members against [`max_bytes`](Self::max_bytes).
    fn check_size<'a>(&self, members: impl IntoIterator<Item = &'a Member>) -> Result<()> {
        let mut bytes = 0u64;
        for member in members.into_iter().filter(|member| member.method != 0) {
            bytes = bytes.saturating_add(member.size);
            if bytes > self.max_bytes {
                let (most, file) = (self.max_bytes, self.file.len());
                let text = format!(
                    "{} inflated, of a file of {}, and at most {} are taken",
                    Bytes(bytes),
                    Bytes(file as u64),
                    Bytes(most)
                );
                let error = within(&self.path, &member.name, Error::data(text)).offset(member.at);
                return Err(error.help("raise `max_bytes` if the file is right"));
            }
        }
        Ok(())
    }

    /// Returns the identity of the archive: file name, size and a hash.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the name and header of each array, without reading the data.
    fn headers(&self) -> Result<Vec<(&str, Header)>> {
        let header =
            |member: &Member| self.header(member).map_err(|e| within(&self.path, &member.name, e).offset(member.at));
        self.names().zip(&self.members).map(|(name, member)| Ok((name, header(member)?))).collect()
    }

    fn header(&self, member: &Member) -> Result<Header> {
        let file = self.file.as_bytes();
        let packed = &file[local_data(file, member)?];
        let size = usize::try_from(member.size).map_err(|_| Error::data(format!("{} bytes", member.size)))?;
        match member.method {
            8 => Header::of(&inflated(packed, LONGEST_HEADER)?, size),
            // Other compression methods are rejected on reading.
            _ => Header::of(packed, size),
        }
    }

    /// Returns true if no array is compressed, so that aligned arrays are views of the file.
    fn is_stored(&self) -> bool {
        self.members.iter().all(|member| member.method == 0)
    }

    fn read(&self, member: &Member) -> Result<Array> {
        let data = local_data(self.file.as_bytes(), member)?;
        let packed = self.file.slice(data).ok_or_else(|| Error::data("the member lies outside of the file"))?;
        let npy = match member.method {
            0 => packed,
            8 => Buffer::from_vec(inflated(packed.as_bytes(), member.size)?),
            other => {
                return Err(Error::unsupported(format!(
                    "zip compression method {other}, stored and deflated are read"
                )));
            }
        };
        if npy.len() as u64 != member.size {
            return Err(Error::data(format!("{} bytes, the directory says {}", npy.len(), member.size)));
        }
        let mut crc = flate2::Crc::new();
        crc.update(npy.as_bytes());
        if crc.sum() != member.crc {
            return Err(Error::data(format!("crc-32 is {:08x}, the directory says {:08x}", crc.sum(), member.crc)));
        }
        npy::aligned(npy::decode(npy)?)
    }
}

/// Moves offsets within a member into the message, because they are not offsets of the file.
fn within(path: &Path, member: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("member {member:?}: {error}")).path(path)
}

debug_as!(Npz, |self, f| f.debug_list().entries(self.names()).finish());

/// Number of bytes inflated to read a header: the maximum of version 1 after its 10 bytes, and more than real headers of any version need.
const LONGEST_HEADER: u64 = 10 + u16::MAX as u64;

/// Inflates at most `size + 1` bytes, to detect a wrong size. Memory grows with the actual data.
fn inflated(packed: &[u8], size: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut stream = flate2::read::DeflateDecoder::new(packed).take(size.saturating_add(1));
    stream.read_to_end(&mut out).map_err(|e| Error::data(format!("deflate: {e}")))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::RandomAccess;

    fn npy(values: &[u8]) -> Vec<u8> {
        let text =
            format!("{:<117}\n", format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}", values.len()));
        [b"\x93NUMPY\x01\x00\x76\x00", text.as_bytes(), values].concat()
    }

    fn crc(bytes: &[u8]) -> u32 {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        crc.sum()
    }

    /// Builds a zip file with a single member.
    fn zip(method: u16, data: &[u8], size: usize, crc: u32) -> Vec<u8> {
        let shared = |extra: &[u8]| {
            let mut bytes = [method.to_le_bytes().as_slice(), &[0; 4], &crc.to_le_bytes()].concat();
            bytes.extend_from_slice(&(data.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&(size as u32).to_le_bytes());
            bytes.extend_from_slice(&[5, 0, extra.len() as u8, 0]);
            bytes
        };
        let mut file = [b"PK\x03\x04\x14\x00\x00\x00", shared(b"").as_slice(), b"x.npy", data].concat();
        let start = file.len();
        file.extend_from_slice(b"PK\x01\x02\x14\x00\x14\x00\x00\x00");
        file.extend_from_slice(&shared(b""));
        file.extend_from_slice(&[0; 14]);
        file.extend_from_slice(b"x.npy");
        let len = file.len() - start;
        file.extend_from_slice(b"PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00");
        file.extend_from_slice(&(len as u32).to_le_bytes());
        file.extend_from_slice(&(start as u32).to_le_bytes());
        file.extend_from_slice(&[0, 0]);
        file
    }

    fn open(bytes: &[u8]) -> Result<Array> {
        Npz::of("a.npz".into(), Buffer::copy_from(bytes))?.array("x")
    }

    #[test]
    fn stored_and_deflated() {
        let plain = npy(&[1, 2, 3]);
        let stored = zip(0, &plain, plain.len(), crc(&plain));
        assert_eq!(open(&stored).unwrap().bytes(), [1, 2, 3]);
        let mut packed = Vec::new();
        flate2::read::DeflateEncoder::new(plain.as_slice(), flate2::Compression::new(6))
            .read_to_end(&mut packed)
            .unwrap();
        assert_eq!(open(&zip(8, &packed, plain.len(), crc(&plain))).unwrap().bytes(), [1, 2, 3]);
        assert!(open(&zip(8, &packed, plain.len() - 1, crc(&plain))).unwrap_err().message().contains("says 130"));
        assert!(open(&zip(0, &plain, plain.len(), 7)).unwrap_err().message().contains("crc-32"));
        assert_eq!(open(&zip(12, &plain, plain.len(), 7)).unwrap_err().kind(), crate::ErrorKind::Unsupported);
    }

    #[test]
    fn what_inflates_to_far_more_than_the_file_is_refused() {
        let zeros = npy(&vec![0; 300 << 20]);
        let mut packed = Vec::new();
        let encoder = flate2::read::DeflateEncoder::new(zeros.as_slice(), flate2::Compression::new(1));
        { encoder }.read_to_end(&mut packed).unwrap();
        let file = zip(8, &packed, zeros.len(), crc(&zeros));
        drop(zeros);
        let archive = || Npz::of("a.npz".into(), Buffer::copy_from(&file)).unwrap();
        for error in [archive().array("x").unwrap_err(), archive().element().unwrap_err()] {
            let text = error.to_string();
            assert!(text.contains("a.npz: byte 0: member \"x.npy\": 300 MiB inflated, of a file of"), "{text}");
            assert_eq!(error.help_text(), Some("raise `max_bytes` if the file is right"));
        }
        assert_eq!(archive().max_bytes(300 << 21).array("x").unwrap().bytes().len(), 300 << 20);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.npz"), &file).unwrap();
        let rows = NpzRows::open(dir.path()).unwrap();
        assert!(rows.read(5).unwrap_err().message().contains("inflated, of a file of"));
        assert_eq!(rows.max_bytes(300 << 21).read(5).unwrap().array("x").unwrap().as_i64(), Some(0));
    }

    #[test]
    fn a_member_of_another_name_than_the_directory_says_is_refused() {
        let plain = npy(&[1, 2, 3]);
        let mut file = zip(0, &plain, plain.len(), crc(&plain));
        file[30] = b'y';
        let error = open(&file).unwrap_err().to_string();
        assert!(error.contains("its local header names \"y.npy\""), "{error}");
    }

    #[test]
    fn an_archive_in_one_that_is_cut_is_not_taken_for_it() {
        let plain = npy(&[1, 2, 3]);
        let inner = zip(0, &plain, plain.len(), crc(&plain));
        let outer = zip(0, &inner, inner.len(), crc(&inner));
        for file in [&outer[..outer.len() - 30], &[&inner[..], b"rest"].concat()] {
            let error = open(file).unwrap_err().to_string();
            assert!(error.contains("not a whole zip file"), "{error}");
        }
    }

    #[test]
    fn rows_of_archives() {
        let dir = tempfile::tempdir().unwrap();
        let plain = npy(&[1, 2, 3]);
        let mut packed = Vec::new();
        let encoder = flate2::read::DeflateEncoder::new(plain.as_slice(), flate2::Compression::new(6));
        { encoder }.read_to_end(&mut packed).unwrap();
        let write = |name: &str, file: Vec<u8>| std::fs::write(dir.path().join(name), file).unwrap();
        write("a.npz", zip(0, &plain, plain.len(), crc(&plain)));
        write("b.npz", zip(8, &packed, plain.len(), crc(&plain)));
        let source = NpzRows::open(dir.path()).unwrap().cache_bytes(0);
        let read = |i| source.read(i).unwrap().array("x").unwrap().as_i64();
        assert_eq!((0..source.len()).map(read).collect::<Vec<_>>(), [1, 2, 3, 1, 2, 3].map(Some));
        assert!(source.read(6).is_err());
        write("c.npz", zip(0, b"oat", 3, crc(b"oat")));
        let error = NpzRows::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("c.npz: byte 0: member \"x.npy\": byte 0: not an npy file"), "{error}");
        let other = npy(&[1]);
        let text = String::from_utf8_lossy(&other[10..]).replace("(1,)", "(1,1)");
        let other = [&other[..10], &text.as_bytes()[..117], b"\n\x01"].concat();
        write("c.npz", zip(0, &other, other.len(), crc(&other)));
        let error = NpzRows::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains("c.npz: byte 0: its arrays differ from those of a.npz"), "{error}");
    }

    #[test]
    fn any_changed_byte_or_cut_is_survived() {
        let plain = npy(&[1, 2, 3]);
        let good = zip(0, &plain, plain.len(), crc(&plain));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0xff;
            if let Ok(array) = open(&bad) {
                assert_eq!(array.bytes(), [1, 2, 3], "byte {at}");
            }
            assert!(open(&good[..at]).is_err(), "cut at {at}");
        }
    }
}
