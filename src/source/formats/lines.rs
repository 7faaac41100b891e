//! Plain text.

use super::facts::Facts;
use super::probe::Probe;

pub(super) const FACTS: Facts =
    Facts { is_indexed: true, guess: Some(Probe::is_text), could_be: Probe::is_plain, ..Facts::of("lines", &[".txt"]) };

pub(super) const COMPRESSED: Facts =
    Facts { guess: Some(|_| true), ..Facts::compressed("line_stream", "lines", &[".txt.gz", ".txt.zst", ".txt.lz4"]) };
