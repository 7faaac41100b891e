//! Megatron's indexed datasets.

use super::facts::{Facts, Turn};
use crate::source::megatron;

pub(in crate::source) const FACTS: Facts = Facts {
    sign: Some((Turn::Beside, |probe| megatron::is_index(probe.head()) || megatron::has_index_beside(&probe.path))),
    ..Facts::of(
        "megatron",
        "Reads the token ids of Megatron's indexed datasets.\n\n\
         Elements are dicts of `tokens`, a view of the file in its integer type, and of `mode` if the dataset has modes.",
        &[".idx"],
    )
};

#[cfg(test)]
mod tests {
    use crate::source::detect::tests::is;
    use crate::source::formats::Format;

    #[test]
    fn an_index_is_known_by_its_mark() {
        assert_eq!(is(b"MMIDIDX\0\0", "a"), Some(Format::Megatron));
    }
}
