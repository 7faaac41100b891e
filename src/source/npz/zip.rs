//! The parts of the zip format that `.npz` archives use.
//!
//! The `zip` crate (9.8.1) lacks the checks of this module. It searches backwards for any readable directory. In a
//! truncated archive that contains another archive uncompressed, the crate therefore reads the inner archive. The crate
//! also accepts bytes before and after the archive, and ignores the names in local headers. If two members have equal
//! names, the later member hides the first. Its errors have no byte offset. With the crate, this module would still
//! need the comparison of names, the range in the mapping, and the checksum. The crate would also add five
//! dependencies.

use crate::error::{Error, Result};

/// An entry of the archive's directory.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) packed: u64,
    pub(super) size: u64,
    /// Position of the local header.
    pub(super) at: u64,
}

/// Little-endian numbers. Return `None` past the end of `bytes`.
fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Reads the central directory through the end record (PKWARE's *.ZIP File Format Specification*, 4.3.12 to 4.3.16).
pub(super) fn directory(file: &[u8]) -> Result<Vec<Member>> {
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

/// Returns the position of the end record: the last signature whose comment ends exactly at the end of the file.
fn end_record(file: &[u8]) -> Option<usize> {
    const LEN: usize = 22;
    let last = file.len().checked_sub(LEN)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    let fits = |at: &usize| {
        file[*at..].starts_with(b"PK\x05\x06") && u16_at(file, at + 20).map(usize::from) == Some(last - at)
    };
    (first..=last).rev().find(fits)
}

/// Returns the number of entries and the start of the directory.
fn sizes(file: &[u8], end: usize) -> Option<(u64, usize)> {
    let (entries, start) = (u16_at(file, end + 10)?, u32_at(file, end + 16)?);
    if entries != u16::MAX && start != u32::MAX {
        return Some((entries.into(), start as usize));
    }
    // Zip64: a locator precedes the end record.
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

/// Reads the directory entry at `at`. Returns the entry and the position of the next entry.
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

/// Returns the name in the local header of a member.
fn local_name<'a>(file: &'a [u8], member: &Member) -> Option<&'a [u8]> {
    let at = usize::try_from(member.at).ok()?;
    let start = at.checked_add(30)?;
    file.get(start..start.checked_add(u16_at(file, at.checked_add(26)?)?.into())?)
}

/// Replaces values that exceed 32 bits with the 64-bit values in the extra field.
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

/// Returns the range of a member's data after its local header. The header's name must match the directory.
pub(super) fn local_data(file: &[u8], member: &Member) -> Result<std::ops::Range<usize>> {
    let name = local_name(file, member).map(String::from_utf8_lossy);
    if let Some(name) = name.filter(|name| *name != member.name) {
        return Err(Error::data(format!("its local header names {name:?}")));
    }
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
