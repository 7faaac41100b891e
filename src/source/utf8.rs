//! Validation of text.

/// Returns the bytes as text. If they are not UTF-8, returns the offset of the first invalid byte and a message.
#[inline]
pub(super) fn text(bytes: &[u8]) -> Result<&str, (usize, String)> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| slowly(bytes))
}

/// Finds the invalid byte, whose offset the fast check does not report.
#[cold]
fn slowly(bytes: &[u8]) -> Result<&str, (usize, String)> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        (at, format!("byte 0x{:02x} is not UTF-8", bytes[at]))
    })
}
