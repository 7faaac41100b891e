//! All facts of a format that the rest of the crate uses, whether this build reads the format or not.

use std::path::Path;

use super::Probe;

/// Facts of a format, stated in its folder: `Facts { …, ..Facts::of(…) }`.
pub(in crate::source) struct Facts {
    pub(super) name: &'static str,
    /// Source of pipeline files that reads the format.
    pub(in crate::source) source: &'static str,
    /// Purpose of that source, in a sentence.
    pub(in crate::source) doc: &'static str,
    pub(super) endings: &'static [&'static str],
    /// True if the files are compressed as a whole, so records are read in order and not by number.
    pub(super) is_compressed: bool,
    /// True if an index of the files is built and kept.
    pub(super) is_indexed: bool,
    /// Sign that identifies a file regardless of its name, and the turn in which it is checked.
    pub(super) sign: Option<(Turn, Recognise)>,
    /// Recognizes a file without any sign or known ending. If several formats match, the last in the list wins.
    pub(super) guess: Option<Recognise>,
    /// Recognizes a file without the sign that may still be of the format, by its name. The reader then reports any
    /// damage, with its place.
    pub(super) could_be: Recognise,
    /// Returns true if a folder as a whole is a data set of this format.
    pub(super) is_folder: Option<fn(&Path) -> bool>,
}

/// Returns true if a file is of a format.
pub(super) type Recognise = fn(&Probe) -> bool;

/// Order in which signs are checked, the most reliable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// Other files beside the file.
    Beside,
    /// Checksum of a whole header.
    Header,
    /// End of the file. Its beginning, a record, may resemble any format, even a compressed format.
    End,
    /// Beginning of the decompressed file.
    Packed,
    /// Magic number.
    Magic,
    /// Checksum of a length. One in 256 such files also begins like a safetensors header.
    Length,
    /// JSON object with further evidence of a format.
    Json,
    /// Any JSON object.
    Any,
}

impl Facts {
    /// Facts of a format that has only a sign, and is read by number by the source of this name.
    pub(super) const fn of(name: &'static str, doc: &'static str, endings: &'static [&'static str]) -> Self {
        Self {
            name,
            source: name,
            doc,
            endings,
            is_compressed: false,
            is_indexed: false,
            sign: None,
            guess: None,
            could_be: |_| false,
            is_folder: None,
        }
    }

    /// Facts of the compressed files of a format that `source` reads.
    pub(super) const fn compressed(name: &'static str, source: &'static str, endings: &'static [&'static str]) -> Self {
        Self { source, is_compressed: true, could_be: Probe::is_compressed, ..Self::of(name, "", endings) }
    }
}
