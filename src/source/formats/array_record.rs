//! ArrayRecord.

use super::facts::{Facts, Turn};

pub(super) const FACTS: Facts = Facts {
    // Hash of the first chunk header, which is equal in all Riegeli files.
    sign: Some((Turn::Magic, |probe| probe.begins(b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f"))),
    ..Facts::of("array_record", &[".array_record", ".arrayrecord"])
};
