//! Archives of NumPy arrays: `.npz`, which are zip files of `.npy` members.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{FileId, Patterns, find, identity};
use super::mmap::{Access, Mapping};
use super::npy;
use crate::element::{Array, Buffer, Element};
use crate::error::{Error, Result};

/// The named arrays of one `.npz` file, stored or deflated.
///
/// The directory is read when the file is opened, an array when it is asked for; its CRC-32 is checked. A stored array
/// is a view of the mapped file where it lies at a fitting place there.
pub struct Npz {
    path: PathBuf,
    file: Buffer,
    members: Vec<Member>,
    identity: String,
}

/// An entry of the archive's directory.
#[derive(Clone, Debug)]
struct Member {
    name: String,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    /// Where its local header is.
    at: u64,
}

impl Npz {
    /// Opens a file.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset if its directory is damaged or cut,
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the name stands for several files.
    pub fn open(pattern: impl Patterns) -> Result<Self> {
        let paths = find(pattern, &[".npz"])?;
        let [path] = paths.as_slice() else {
            return Err(Error::config(format!("{} npz files, where one is read", paths.len())));
        };
        let file = Mapping::open(path, Access::Normal)?;
        Self::of(path.clone(), Buffer::from_owner(Arc::new(file)))
    }

    /// The archive in the bytes of a whole file.
    pub(super) fn of(path: PathBuf, file: Buffer) -> Result<Self> {
        let identity = identity(&[FileId::new(&path, file.as_bytes())]);
        let members = directory(file.as_bytes()).map_err(|e| e.path(&path))?;
        Ok(Self { path, file, members, identity })
    }

    /// Names of the arrays, in the order of the archive.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.members.iter().map(|m| m.name.strip_suffix(".npy").unwrap_or(&m.name))
    }

    /// The array of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if there is none or it is damaged, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported)
    /// for other compression and for types other than plain numbers.
    pub fn array(&self, name: &str) -> Result<Array> {
        let at = self.names().position(|n| n == name);
        let missing = || Error::data(super::columns::instead(name, self.names().collect::<Vec<_>>()));
        let member = &self.members[at.ok_or_else(|| missing().path(&self.path))?];
        self.read(member).map_err(|e| within(&self.path, &member.name, e).offset(member.at))
    }

    /// All arrays as one element.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn element(&self) -> Result<Element> {
        let mut element = Element::with_capacity(self.members.len());
        for name in self.names() {
            element.insert(name, self.array(name)?);
        }
        Ok(element)
    }

    /// What tells this archive from others: its name, its size, a hash.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    fn read(&self, member: &Member) -> Result<Array> {
        let data = local_data(self.file.as_bytes(), member)?;
        let packed = self.file.slice(data).ok_or_else(|| Error::data("the member lies outside of the file"))?;
        let npy = match member.method {
            0 => packed,
            8 => Buffer::from_vec(inflate(packed.as_bytes(), member.size)?),
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

/// Offsets inside a member are not offsets of the file: they go into the message.
fn within(path: &Path, member: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("member {member:?}: {error}")).path(path)
}

impl fmt::Debug for Npz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// At most `size` bytes and one more, so that a wrong size is seen; memory grows with what is really there.
fn inflate(packed: &[u8], size: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut stream = flate2::read::DeflateDecoder::new(packed).take(size.saturating_add(1));
    stream.read_to_end(&mut out).map_err(|e| Error::data(format!("deflate: {e}")))?;
    Ok(out)
}

/// Little-endian numbers at places that may not exist.
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// The central directory, by the end record at the end of the file (PKWARE's *.ZIP File Format Specification*, 4.3.12 to 4.3.16).
fn directory(file: &[u8]) -> Result<Vec<Member>> {
    let end = end_record(file).ok_or_else(|| {
        Error::data("not a whole zip file: it has no end-of-directory record").offset(file.len() as u64)
    })?;
    let (entries, start) =
        sizes(file, end).ok_or_else(|| Error::data("the end-of-directory record is damaged").offset(end as u64))?;
    let mut members = Vec::new();
    let mut at = start;
    for i in 0..entries {
        let entry = file.get(..end).and_then(|file| entry(file, at));
        let (member, next) =
            entry.ok_or_else(|| Error::data(format!("entry {i} of the directory is damaged")).offset(at as u64))??;
        members.push(member);
        at = next;
    }
    Ok(members)
}

/// Where the end record is: the last place with its signature whose comment reaches exactly to the end of the file.
fn end_record(file: &[u8]) -> Option<usize> {
    const LEN: usize = 22;
    let last = file.len().checked_sub(LEN)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    let fits = |at: &usize| {
        file[*at..].starts_with(b"PK\x05\x06") && u16_at(file, at + 20).map(usize::from) == Some(last - at)
    };
    (first..=last).rev().find(fits)
}

/// Number of entries and start of the directory.
fn sizes(file: &[u8], end: usize) -> Option<(u64, usize)> {
    let (entries, start) = (u16_at(file, end + 10)?, u32_at(file, end + 16)?);
    if entries != u16::MAX && start != u32::MAX {
        return Some((entries.into(), start as usize));
    }
    // Zip64: a locator lies before the end record.
    let locator = end.checked_sub(20)?;
    if !file[locator..].starts_with(b"PK\x06\x07") {
        return None;
    }
    let record = usize::try_from(u64_at(file, locator + 8)?).ok()?;
    if !file.get(record..)?.starts_with(b"PK\x06\x06") {
        return None;
    }
    Some((u64_at(file, record.checked_add(32)?)?, usize::try_from(u64_at(file, record.checked_add(48)?)?).ok()?))
}

/// The directory entry at `at`, and where the next one is.
fn entry(file: &[u8], at: usize) -> Option<Result<(Member, usize)>> {
    if !file.get(at..)?.starts_with(b"PK\x01\x02") {
        return None;
    }
    let name_len = usize::from(u16_at(file, at + 28)?);
    let (extra_len, comment_len) = (usize::from(u16_at(file, at + 30)?), usize::from(u16_at(file, at + 32)?));
    let name = file.get(at + 46..at + 46 + name_len)?;
    let extra = file.get(at + 46 + name_len..at + 46 + name_len + extra_len)?;
    let mut member = Member {
        name: String::from_utf8_lossy(name).into_owned(),
        method: u16_at(file, at + 10)?,
        crc: u32_at(file, at + 16)?,
        packed: u32_at(file, at + 20)?.into(),
        size: u32_at(file, at + 24)?.into(),
        at: u32_at(file, at + 42)?.into(),
    };
    zip64(&mut member, extra)?;
    if u16_at(file, at + 8)? & 1 != 0 {
        let error = Error::unsupported(format!("member {:?} is encrypted", member.name));
        return Some(Err(error.offset(at as u64)));
    }
    Some(Ok((member, at + 46 + name_len + extra_len + comment_len)))
}

/// Takes the 64-bit values out of the extra field, for those that did not fit.
fn zip64(member: &mut Member, extra: &[u8]) -> Option<()> {
    const FULL: u64 = u32::MAX as u64;
    let mut at = 0;
    while at < extra.len() {
        let (id, len) = (u16_at(extra, at)?, usize::from(u16_at(extra, at + 2)?));
        let field = extra.get(at + 4..at + 4 + len)?;
        if id == 1 {
            let wide = [&mut member.size, &mut member.packed, &mut member.at].into_iter().filter(|v| **v == FULL);
            for (i, value) in wide.enumerate() {
                *value = u64_at(field, i * 8)?;
            }
        }
        at += 4 + len;
    }
    Some(())
}

/// Where the bytes of a member are, behind its local header.
fn local_data(file: &[u8], member: &Member) -> Result<std::ops::Range<usize>> {
    let range = || {
        let at = usize::try_from(member.at).ok()?;
        if !file.get(at..)?.starts_with(b"PK\x03\x04") {
            return None;
        }
        let names = usize::from(u16_at(file, at + 26)?) + usize::from(u16_at(file, at + 28)?);
        let start = at.checked_add(30 + names)?;
        let end = start.checked_add(usize::try_from(member.packed).ok()?)?;
        (end <= file.len()).then_some(start..end)
    };
    range().ok_or_else(|| Error::data("its local header is damaged, or it reaches over the end of the file"))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// A zip file of one member.
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
