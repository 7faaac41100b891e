//! What files show of themselves: magic numbers that several formats ask for, and what those have that are without one.

use std::path::{Path, PathBuf};

use super::files::file_name;

/// The file in which the limits of a Bagz file are, if they are not in itself.
pub(crate) fn limits_path(path: &Path) -> PathBuf {
    path.with_file_name(format!("limits.{}", file_name(path)))
}

/// Whether a file of `size` bytes that ends so may end with limits: they begin where the last one says, after something, and as
/// far as they are seen, none is below the one before.
pub(crate) fn ends_with_limits(size: u64, tail: &[u8]) -> bool {
    let Some(end) = tail.last_chunk().copied().map(u64::from_le_bytes) else { return false };
    if end == 0 || end > size.saturating_sub(8) || !(size - end).is_multiple_of(8) {
        return false;
    }
    let seen = (tail.len() as u64).min(size - end) / 8 * 8;
    let (limits, _) = tail[tail.len() - seen as usize..].as_chunks::<8>();
    limits.is_sorted_by_key(|limit| u64::from_le_bytes(*limit))
}

/// Whether a file of `size` bytes that begins so has the header of safetensors: its length, which fits, and an object of JSON.
pub(crate) fn begins_with_header(size: u64, head: &[u8]) -> bool {
    let Some((length, header)) = head.split_first_chunk() else { return false };
    let length = u64::from_le_bytes(*length);
    (2..=size.saturating_sub(8)).contains(&length) && header.starts_with(b"{")
}

/// The codec of compressed content, by its magic number. A zstd file may begin with a frame to skip.
pub(crate) fn compression(bytes: &[u8]) -> Option<&'static str> {
    match *bytes {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some("lz4"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some("zstd"),
        _ => None,
    }
}

/// Whether a file of this beginning may be one of zlib: a text may begin so, too.
#[cfg(feature = "tf_record")]
pub(crate) fn may_be_zlib(bytes: &[u8]) -> bool {
    let is_header = |first: u8, second: u8| first & 0x8f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31);
    matches!(*bytes, [first, second, ..] if is_header(first, second) && second & 0x20 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_of_limits_is_told_from_others() {
        let fits = |file: &[u8]| ends_with_limits(file.len() as u64, &file[file.len().saturating_sub(4096)..]);
        let bag = |records: u64| {
            let mut file = b"oat".repeat(records as usize);
            (1..=records).for_each(|record| file.extend_from_slice(&(record * 3).to_le_bytes()));
            file
        };
        assert!(fits(&bag(1000)) && fits(&bag(1)));
        assert!(!fits(b"") && !fits(b"oat") && !fits(b"some text of no tail") && !fits(&[0; 64]));
        let mut file = bag(1000);
        let at = file.len() - 80;
        file[at] ^= 0xff;
        assert!(!fits(&file));
    }
}
