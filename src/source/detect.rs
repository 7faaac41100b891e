//! What a file is, by its name and its first bytes.

/// The codec of compressed content, by its magic number.
pub(crate) fn compression(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x1f\x8b") {
        Some("gzip")
    } else if bytes.starts_with(b"\x28\xb5\x2f\xfd") {
        Some("zstd")
    } else {
        None
    }
}
