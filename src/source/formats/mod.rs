//! The formats that are read. Each format has a folder, whose `format.rs` states its facts, and a line in one list.

mod facts;
mod probe;

#[path = "../array_record/format.rs"]
pub(super) mod array_record;
#[path = "../arrow_ipc/format.rs"]
pub(super) mod arrow_ipc;
#[path = "../bagz/format.rs"]
pub(super) mod bagz;
#[path = "../csv/format.rs"]
pub(super) mod csv;
#[path = "../json_array/format.rs"]
pub(super) mod json_array;
#[path = "../jsonl/format.rs"]
pub(super) mod jsonl;
#[path = "../lines/format.rs"]
pub(super) mod lines;
#[path = "../mds/format.rs"]
pub(super) mod mds;
#[path = "../megatron/format.rs"]
pub(super) mod megatron;
#[path = "../npy/format.rs"]
pub(super) mod npy;
#[path = "../npz/format.rs"]
pub(super) mod npz;
#[path = "../parquet/format.rs"]
pub(super) mod parquet;
#[path = "../safetensors/format.rs"]
pub(super) mod safetensors;
#[path = "../tf_record/format.rs"]
pub(super) mod tf_record;
#[path = "../tokens/format.rs"]
pub(super) mod tokens;
#[path = "../webdataset/format.rs"]
pub(super) mod webdataset;

use std::path::Path;

use self::facts::Facts;
pub(super) use self::probe::Probe;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
use super::fuzzing::Target;
#[cfg(feature = "spec")]
use crate::dataset::entry::SourceEntry;
use crate::error::Error;
use crate::place::unsharded;

/// Defines [`Format`], and the lists of entries, functions and fuzz targets. A line states the name of a format, its
/// folder, the function that opens it, the feature that the folder requires, and the name and feature of its
/// compressed files.
macro_rules! formats {
    ($(
        $(#[$about:meta])*
        $format:ident = $folder:ident $(by $reader:ident)? $(if $feature:literal)? $(, or $(#[$also:meta])* $stream:ident if $packed:literal)?;
    )*) => {
        /// Format of files that are read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$about])* $format, $($(#[$also])* $stream,)?)*
        }

        impl Format {
            /// All formats.
            pub const ALL: &[Self] = &[$(Self::$format, $(Self::$stream,)?)*];

            const fn facts(self) -> &'static Facts {
                match self {
                    $(Self::$format => &$folder::FACTS, $(Self::$stream => &$folder::COMPRESSED,)?)*
                }
            }

            /// Returns the feature that the format requires, and whether this build has it.
            const fn needs(self) -> Option<(&'static str, bool)> {
                match self {
                    $(
                        $(Self::$format => Some(($feature, cfg!(feature = $feature))),)?
                        $(Self::$stream => Some(($packed, cfg!(feature = $packed))),)?
                    )*
                    _ => None,
                }
            }
        }

        /// Entries of the formats in pipeline files; if this build lacks a format, its entry names the missing feature.
        #[cfg(feature = "spec")]
        pub(crate) const SOURCES: &[&[SourceEntry]] = &[$(
            $(#[cfg(feature = $feature)])?
            super::$folder::entry::SOURCES,
            $(
                #[cfg(not(feature = $feature))]
                &[SourceEntry::lacking($folder::FACTS.source, $folder::FACTS.doc, $feature)],
            )?
        )*];

        /// Functions that open a format, and the sources of pipeline files.
        #[cfg(test)]
        const READERS: &[(&str, &str)] = &[$($((stringify!($reader), $folder::FACTS.source),)?)*];

        /// Functions of the crate root, each of which opens a format.
        pub(crate) mod readers {
            $(
                $(#[cfg(feature = $feature)])?
                $(pub use crate::source::$folder::$reader;)?
            )*
        }

        /// Fuzz targets of the formats.
        #[cfg(all(any(test, fuzzing), feature = "compress"))]
        pub(crate) const TARGETS: &[&[Target]] = &[$(
            $(#[cfg(feature = $feature)])?
            super::$folder::fuzz::TARGETS,
        )*];
    };
}

formats! {
    /// JSON Lines: [`Jsonl`](super::Jsonl).
    Jsonl = jsonl by jsonl, or
        /// Compressed JSON Lines: `JsonlStream`.
        JsonlStream if "compress";
    /// JSON files that hold an array of records: [`JsonArray`](super::JsonArray).
    Json = json_array by json;
    /// Plain text: [`Lines`](super::Lines).
    Lines = lines by lines, or
        /// Compressed text: `LineStream`.
        LineStream if "compress";
    /// CSV, TSV and the like: `Csv`.
    Csv = csv by csv if "csv", or
        /// Compressed CSV: `CsvStream`.
        CsvStream if "csv";
    /// Parquet: `Parquet`.
    Parquet = parquet by parquet if "parquet";
    /// Arrow IPC format, including Feather and folders of Hugging Face: `Arrow`.
    Arrow = arrow_ipc by arrow if "arrow";
    /// ArrayRecord: `ArrayRecord`.
    ArrayRecord = array_record by array_record if "array_record";
    /// TFRecord: `TfRecord`.
    TfRecord = tf_record by tfrecord if "tf_record", or
        /// Compressed TFRecord: `TfRecordStream`.
        TfRecordStream if "tf_record";
    /// Bagz: `Bagz`.
    Bagz = bagz by bagz if "bagz";
    /// WebDataset shards, which are tar archives: `WebDataset`.
    WebDataset = webdataset by webdataset if "webdataset", or
        /// Compressed WebDataset shards: `WebDatasetStream`.
        WebDatasetStream if "webdataset";
    /// An MDS folder, or its `index.json`: `Mds`.
    Mds = mds by mds if "mds";
    /// A NumPy array: [`Npy`](super::Npy), or [`Tokens`](super::Tokens) if it has one dimension of ids.
    Npy = npy by npy;
    /// NumPy arrays: `Npz`.
    Npz = npz by npz if "compress";
    /// Tensors by name: `Safetensors`.
    Safetensors = safetensors by safetensors if "safetensors";
    /// Megatron's indexed datasets: [`Megatron`](super::Megatron).
    Megatron = megatron by megatron;
    /// Token ids, bare or with llm.c's header: [`Tokens`](super::Tokens).
    Tokens = tokens;
}

impl Format {
    /// Returns the name of the format in lower case, as used by reports and errors.
    pub const fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// Returns the source of pipeline files that reads the format.
    pub const fn source(self) -> &'static str {
        self.facts().source
    }

    /// Returns the endings of file names.
    pub const fn endings(self) -> &'static [&'static str] {
        self.facts().endings
    }

    /// Returns the endings of all files that `source` of pipeline files reads; endings of compressed files come first.
    pub(crate) fn endings_of(source: &str) -> Vec<&'static str> {
        let (packed, plain): (Vec<_>, Vec<_>) = Self::ALL
            .iter()
            .map(|format| format.facts())
            .filter(|facts| facts.source == source)
            .partition(|facts| facts.is_compressed);
        packed.into_iter().chain(plain).flat_map(|facts| facts.endings).copied().collect()
    }

    /// Returns the crate feature that the format requires, if any.
    pub const fn feature(self) -> Option<&'static str> {
        if let Some((name, _)) = self.needs() { Some(name) } else { None }
    }

    /// Returns true if this build reads the format.
    pub const fn is_built(self) -> bool {
        matches!(self.needs(), None | Some((_, true)))
    }

    /// Returns true if records can be read by number.
    pub const fn has_random_access(self) -> bool {
        !self.facts().is_compressed
    }

    /// Returns true if an index of the files is built and kept.
    pub(crate) fn is_indexed(self) -> bool {
        self.facts().is_indexed
    }

    /// Returns the error that this build lacks [`feature`](Self::feature), with the remedy.
    pub(crate) fn lacking(self) -> Error {
        Error::lacking(self.as_str(), self.feature().unwrap_or_default())
    }

    /// Returns the format for the ending of a lower-case name; the longest known ending wins.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let name = unsharded(name).unwrap_or(name);
        let ending =
            |format: &Self| format.endings().iter().filter(|ending| name.ends_with(*ending)).map(|e| e.len()).max();
        let longest = Self::ALL.iter().rev().filter_map(|format| Some((ending(format)?, *format)));
        longest.max_by_key(|(len, _)| *len).map(|(_, format)| format)
    }

    /// Returns the format whose sign a file has, checking the most reliable signs first.
    pub(super) fn by_sign(probe: &Probe) -> Option<Self> {
        let mut signs: Vec<_> = Self::ALL.iter().filter_map(|format| Some((format.facts().sign?, *format))).collect();
        signs.sort_by_key(|((turn, _), _)| *turn);
        signs.iter().find(|((_, shows), _)| shows(probe)).map(|(_, format)| *format)
    }

    /// Guesses the format of a text without a sign, or of a `compressed` file.
    pub(super) fn by_guess(probe: &Probe, compressed: bool) -> Option<Self> {
        let alike = Self::ALL.iter().rev().filter(|format| format.facts().is_compressed == compressed);
        alike.copied().find(|format| format.facts().guess.is_some_and(|guess| guess(probe)))
    }

    /// Returns the format of a folder that is a data set as a whole.
    pub(super) fn by_folder(path: &Path) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.facts().is_folder.is_some_and(|is_one| is_one(path)))
    }

    /// Returns true if a file without a sign may still be of this format, by its name.
    pub(super) fn could_be(self, probe: &Probe) -> bool {
        (self.facts().could_be)(probe)
    }
}

display_as!(Format, |self, f| f.write_str(self.as_str()));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_feature_names_it() {
        let error = Format::Parquet.lacking();
        assert_eq!(error.to_string(), "parquet files need the feature `parquet`, which this build lacks");
        assert_eq!(error.help_text(), Some("build with `--features parquet`"));
        let error = Format::JsonlStream.lacking();
        assert_eq!(error.to_string(), "compressed files need the feature `compress`, which this build lacks");
        assert_eq!(error.help_text(), Some("build with `--features compress`"));
    }

    #[test]
    fn functions_have_the_names_of_sources() {
        READERS.iter().for_each(|(function, source)| assert_eq!(function, source));
    }

    #[test]
    fn the_longest_ending_of_a_name_counts() {
        assert_eq!(Format::by_name("a.jsonl.gz"), Some(Format::JsonlStream));
        assert_eq!(Format::by_name("a.tfrecord.gz"), Some(Format::TfRecordStream));
        assert_eq!(Format::by_name("a.tfrecord.zlib"), Some(Format::TfRecordStream));
        assert_eq!(Format::by_name("a.gz"), None);
        for &format in Format::ALL {
            for ending in format.endings() {
                // Arrays in `.json` files have a sign. Without it, the files are JSON Lines.
                let format = if format == Format::Json { Format::Jsonl } else { format };
                assert_eq!(Format::by_name(&format!("a{ending}")), Some(format), "{ending}");
            }
        }
    }
}
