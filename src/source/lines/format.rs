//! Plain text.

use super::facts::Facts;
use super::probe::Probe;

pub(in crate::source) const FACTS: Facts = Facts {
    is_indexed: true,
    guess: Some(Probe::is_text),
    could_be: Probe::is_plain,
    ..Facts::of(
        "lines",
        "Reads the lines of text files, without line ends. Compressed files (`.gz`, `.zst`, `.lz4`) are read as a stream.\n\n\
         Elements are dicts with one column of text.",
        &[".txt"],
    )
};

pub(in crate::source) const COMPRESSED: Facts =
    Facts { guess: Some(|_| true), ..Facts::compressed("line_stream", "lines", &[".txt.gz", ".txt.zst", ".txt.lz4"]) };
