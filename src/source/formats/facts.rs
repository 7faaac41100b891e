//! Everything that the rest of the crate knows of a format that is read, whether this build reads it or not.

use std::path::Path;

use super::Probe;

/// Facts of a format, in its file: `Facts { …, ..Facts::of(…) }`.
pub(super) struct Facts {
    pub(super) name: &'static str,
    /// The source of pipeline files that reads it.
    pub(super) source: &'static str,
    pub(super) endings: &'static [&'static str],
    /// Whether its files are compressed as a whole, and so read in order, not by number.
    pub(super) is_compressed: bool,
    /// Whether an index of its files is built and kept.
    pub(super) is_indexed: bool,
    /// The sign by which a file is known, whatever its name, and when it is looked for.
    pub(super) sign: Option<(Turn, Recognise)>,
    /// Whether a file without a sign and with a name that promises nothing is taken for one; of two, the later in the list.
    pub(super) guess: Option<Recognise>,
    /// Whether a file without the sign may yet be what its name promises. Where it is, the reader tells of damage, with its place.
    pub(super) could_be: Recognise,
    /// Whether a folder is a data set of this format as a whole.
    pub(super) is_folder: Option<fn(&Path) -> bool>,
}

/// Whether a file is of a format.
pub(super) type Recognise = fn(&Probe) -> bool;

/// Times at which signs are looked for, one after the other: the surest at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// Files beside it.
    Beside,
    /// A checksum of a whole header.
    Header,
    /// The end of the file. Its beginning, a record, may look like anything, also compressed.
    End,
    /// The beginning of the file once it is decompressed.
    Packed,
    /// A magic number.
    Magic,
    /// A checksum of a length, one in 256 of which begins as a header of safetensors does.
    Length,
    /// An object of JSON, of which more than the brace fits.
    Json,
    /// Any object of JSON.
    Any,
}

impl Facts {
    /// A format that is read by number by the source of its name, known by its sign alone.
    pub(super) const fn of(name: &'static str, endings: &'static [&'static str]) -> Self {
        Self {
            name,
            source: name,
            endings,
            is_compressed: false,
            is_indexed: false,
            sign: None,
            guess: None,
            could_be: |_| false,
            is_folder: None,
        }
    }

    /// The compressed files of a format that `source` reads.
    pub(super) const fn compressed(name: &'static str, source: &'static str, endings: &'static [&'static str]) -> Self {
        Self { source, is_compressed: true, could_be: Probe::is_compressed, ..Self::of(name, endings) }
    }
}
