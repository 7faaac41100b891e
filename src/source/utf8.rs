//! Bytes that are to be text.

/// The bytes as text; else the first byte that is not UTF-8, and what is wrong with it.
#[inline]
pub(super) fn text(bytes: &[u8]) -> Result<&str, (usize, String)> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| slowly(bytes))
}

/// The quick check does not say where.
#[cold]
fn slowly(bytes: &[u8]) -> Result<&str, (usize, String)> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        (at, format!("byte 0x{:02x} is not UTF-8", bytes[at]))
    })
}
