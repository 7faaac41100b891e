//! Magic numbers that several formats check.

/// Returns the codec of compressed content, by its magic number. A zstd file may begin with a skippable frame.
pub(crate) fn compression(bytes: &[u8]) -> Option<&'static str> {
    match *bytes {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some("lz4"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some("zstd"),
        _ => None,
    }
}

/// Returns a description and a remedy if the content cannot be text, by its magic number.
pub(crate) fn no_text(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    Some(match bytes {
        [b'P', b'A', b'R', b'1', ..] => ("a Parquet file", "read it with `parquet`"),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => ("an Arrow file", "read it with `arrow`"),
        [b'P', b'K', 3, 4, ..] => ("a ZIP archive", "unpack it"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            ("compressed with xz", "`xz -d` it, and compress it with zstd or gzip")
        }
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => {
            ("compressed with bzip2", "`bzip2 -d` it, and compress it with zstd or gzip")
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ("text in UTF-16", "`iconv -f UTF-16 -t UTF-8` it"),
        _ => return None,
    })
}

/// Returns true if a file that begins with these bytes may be in zlib format. A text may begin with them too.
pub(crate) fn may_be_zlib(bytes: &[u8]) -> bool {
    let is_header = |first: u8, second: u8| first & 0x8f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31);
    matches!(*bytes, [first, second, ..] if is_header(first, second) && second & 0x20 == 0)
}
