//! Magic numbers of compressed content, which several formats ask for.

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
