//! ArrayRecord.

use super::facts::{Facts, Turn};

pub(in crate::source) const FACTS: Facts = Facts {
    // Hash of the first chunk header, which is equal in all Riegeli files.
    sign: Some((Turn::Magic, |probe| probe.begins(b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f"))),
    ..Facts::of(
        "array_record",
        "Reads the records of ArrayRecord files.\n\n\
         Elements are `bytes`, or dicts if `field`, `examples` or `sequence_examples` is given.",
        &[".array_record", ".arrayrecord"],
    )
};

#[cfg(test)]
mod tests {
    use crate::source::detect::tests::is;
    use crate::source::formats::Format;

    #[test]
    fn a_file_is_known_by_the_hash_of_its_header() {
        assert_eq!(is(&0x3f4a_880d_d170_af83u64.to_le_bytes(), "a.bin"), Some(Format::ArrayRecord));
        assert_eq!(is(b"\0\0", "a.array_record"), None);
    }
}
