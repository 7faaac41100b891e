//! Parquet.

use super::facts::{Facts, Turn};

pub(in crate::source) const FACTS: Facts = Facts {
    sign: Some((Turn::Magic, |probe| probe.begins(b"PAR1"))),
    ..Facts::of(
        "parquet",
        "Reads the rows of Parquet files.\n\n\
         Elements are dicts of arrays, numbers, text, lists and dicts.",
        &[".parquet"],
    )
};

#[cfg(test)]
mod tests {
    use crate::source::detect::tests::is;
    use crate::source::formats::Format;

    #[test]
    fn a_file_is_known_by_its_mark() {
        assert_eq!(is(b"PAR1", "a.bin"), Some(Format::Parquet));
    }
}
