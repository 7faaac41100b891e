//! Tensors by name.

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(in crate::source) const FACTS: Facts = Facts {
    sign: Some((Turn::Json, begins_with_header)),
    ..Facts::of(
        "safetensors",
        "Reads the tensors of safetensors files: a record for each file, or for each row of its tensors.\n\n\
         Elements are dicts of arrays. In Python, tensors of 8-bit floats have the types of `ml_dtypes`, unless `float8_as_u8` is true.",
        &[".safetensors"],
    )
};

/// Returns true if the file begins with a header: a length that fits, and a JSON object.
fn begins_with_header(probe: &Probe) -> bool {
    let Some((length, header)) = probe.head().split_first_chunk() else { return false };
    let length = u64::from_le_bytes(*length);
    (2..=probe.size.saturating_sub(8)).contains(&length) && header.starts_with(b"{")
}

#[cfg(test)]
mod tests {
    use crate::source::detect::tests::is;
    use crate::source::formats::Format;

    #[test]
    fn a_file_is_known_by_the_length_of_its_header() {
        assert_eq!(is(b"\x02\0\0\0\0\0\0\0{}", "a"), Some(Format::Safetensors));
        assert_eq!(is(b"\x03\0\0\0\0\0\0\0{}", "a"), None);
    }
}
