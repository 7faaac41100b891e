//! Token ids, bare or with llm.c's header.

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(in crate::source) const FACTS: Facts = Facts {
    // The numbers 20240520 and 20240801 of llm.c.
    sign: Some((Turn::Magic, |probe| probe.begins(b"\x88\xd8\x34\x01") || probe.begins(b"\xa1\xd9\x34\x01"))),
    could_be: Probe::is_plain,
    ..Facts::of(
        "tokens",
        "Reads files of token ids: a record for each file, with all of its ids.\n\n\
         Elements are dicts of `tokens`.",
        &[".bin"],
    )
};
