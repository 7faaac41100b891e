//! The frame of a record: length, checksum of the length, data, checksum of the data.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::source::checksums;

/// Size of the head of a frame: the length (`u64`) and its checksum (`u32`), little-endian.
pub(super) const HEAD: usize = 12;
/// Size of the checksum of the data.
pub(super) const FOOT: usize = 4;

/// Returns the CRC-32C, rotated and added to a constant. This mask also gives good checksums of data that contains
/// checksums.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Returns the bytes before and after a record in its frame.
pub(super) fn around(record: &[u8]) -> ([u8; HEAD], [u8; FOOT]) {
    let length = (record.len() as u64).to_le_bytes();
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&length);
    head[8..].copy_from_slice(&masked(&length).to_le_bytes());
    (head, masked(record).to_le_bytes())
}

fn stored(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns the length in the first 12 bytes of a frame, if its checksum matches.
pub(super) fn length(head: &[u8]) -> Result<u64> {
    let (Some(length), Some(stored)) = (head.get(..8), stored(head, 8)) else {
        return Err(Error::data(format!(
            "the file ends inside of a record's length, after {} bytes of {HEAD}",
            head.len()
        )));
    };
    let computed = masked(length);
    if stored != computed && checksums::are_checked() {
        return Err(Error::data(format!("the checksum of the length is {stored:#010x}, computed {computed:#010x}")));
    }
    Ok(u64::from_le_bytes(length.try_into().expect("8 bytes")))
}

/// Returns the range of the data in the frame that begins at `at`. `file` is the whole file.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) at the offset of the frame if its length is damaged, or extends past the
/// end of the file.
pub(super) fn data(file: &[u8], at: usize) -> Result<Range<usize>> {
    let head = file.get(at..).unwrap_or_default();
    let range = span(&head[..head.len().min(HEAD)], at as u64, file.len() as u64)?;
    Ok(range.start as usize..range.end as usize)
}

/// Returns the range of the data in the frame that begins at `at`, in a file of `size` bytes. `head` holds the first
/// [`HEAD`] bytes of the frame, or fewer at the end of the file.
pub(super) fn span(head: &[u8], at: u64, size: u64) -> Result<Range<u64>> {
    let length = length(head).map_err(|e| e.offset(at))?;
    let start = at + HEAD as u64;
    let room = size.saturating_sub(start);
    let end = start.checked_add(length).filter(|_| room.checked_sub(FOOT as u64).is_some_and(|room| length <= room));
    let text = || format!("a record of {length} bytes and a checksum, where there are {room} bytes");
    end.map(|end| start..end).ok_or_else(|| Error::data(text()).offset(at))
}

/// Checks data against its stored checksum.
pub(super) fn check(data: &[u8], stored: [u8; FOOT]) -> Result<()> {
    let (stored, computed) = (u32::from_le_bytes(stored), masked(data));
    if stored != computed && checksums::are_checked() {
        return Err(Error::data(format!("the checksum of the data is {stored:#010x}, computed {computed:#010x}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the literature, `crc32c(b"123456789")` is `0xe3069283`.
    #[test]
    fn checksums_are_turned_and_moved() {
        assert_eq!(masked(b"123456789"), 0xe306_9283u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn lengths_are_held_against_what_is_there() {
        let mut file = 2u64.to_le_bytes().to_vec();
        file.extend_from_slice(&masked(&2u64.to_le_bytes()).to_le_bytes());
        file.extend_from_slice(b"ab....");
        assert_eq!(data(&file, 0).unwrap(), 12..14);
        let message = |file: &[u8]| data(file, 0).unwrap_err().to_string();
        assert_eq!(message(&file[..17]), "byte 0: a record of 2 bytes and a checksum, where there are 5 bytes");
        assert_eq!(message(&file[..12]), "byte 0: a record of 2 bytes and a checksum, where there are 0 bytes");
        assert!(message(&file[..11]).starts_with("byte 0: the file ends inside of a record's length"));
        file[0] = 3;
        assert!(message(&file).starts_with("byte 0: the checksum of the length is"));
    }
}
