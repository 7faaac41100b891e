//! The formats that are read: a file for each format, and a list of all formats.

mod array_record;
mod arrow;
pub(super) mod bagz;
mod csv;
mod facts;
mod jsonl;
mod lines;
mod mds;
mod megatron;
mod npy;
mod npz;
mod parquet;
mod probe;
mod safetensors;
mod tf_record;
mod tokens;
mod web_dataset;

use std::fmt;
use std::path::Path;

use self::facts::Facts;
pub(super) use self::probe::Probe;
use crate::error::Error;
use crate::place::unsharded;

/// Defines [`Format`] from lines with the [`Facts`] of a format, and the feature it requires.
macro_rules! formats {
    ($($(#[$about:meta])* $format:ident = $facts:path $(, if $feature:literal)?;)*) => {
        /// Format of files that are read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$about])* $format,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: &[Self] = &[$(Self::$format),*];

            const fn facts(self) -> &'static Facts {
                match self {
                    $(Self::$format => &$facts,)*
                }
            }

            /// Returns the feature that the format requires, and whether this build has it.
            const fn needs(self) -> Option<(&'static str, bool)> {
                match self {
                    $($(Self::$format => Some(($feature, cfg!(feature = $feature))),)?)*
                    _ => None,
                }
            }
        }
    };
}

formats! {
    /// JSON Lines: [`Jsonl`](super::Jsonl).
    Jsonl = jsonl::FACTS;
    /// Plain text: [`Lines`](super::Lines).
    Lines = lines::FACTS;
    /// Compressed JSON Lines: `JsonlStream`.
    JsonlStream = jsonl::COMPRESSED, if "compress";
    /// Compressed text: `LineStream`.
    LineStream = lines::COMPRESSED, if "compress";
    /// CSV, TSV and the like: `Csv`.
    Csv = csv::FACTS, if "csv";
    /// Compressed CSV: `CsvStream`.
    CsvStream = csv::COMPRESSED, if "csv";
    /// Parquet: `Parquet`.
    Parquet = parquet::FACTS, if "parquet";
    /// Arrow IPC format, including Feather and folders of Hugging Face: `Arrow`.
    Arrow = arrow::FACTS, if "arrow";
    /// ArrayRecord: `ArrayRecord`.
    ArrayRecord = array_record::FACTS, if "array_record";
    /// Bagz: `Bagz`.
    Bagz = bagz::FACTS, if "bagz";
    /// Tensors by name: `Safetensors`.
    Safetensors = safetensors::FACTS, if "safetensors";
    /// TFRecord: `TfRecord`.
    TfRecord = tf_record::FACTS, if "tf_record";
    /// Compressed TFRecord: `TfRecordStream`.
    TfRecordStream = tf_record::COMPRESSED, if "tf_record";
    /// WebDataset shards, which are tar archives: `WebDataset`.
    WebDataset = web_dataset::FACTS, if "webdataset";
    /// Compressed WebDataset shards: `WebDatasetStream`.
    WebDatasetStream = web_dataset::COMPRESSED, if "webdataset";
    /// An MDS folder, or its `index.json`: `Mds`.
    Mds = mds::FACTS, if "mds";
    /// A NumPy array: [`Npy`](super::Npy), or [`Tokens`](super::Tokens) if it has one dimension of ids.
    Npy = npy::FACTS;
    /// NumPy arrays: `Npz`.
    Npz = npz::FACTS, if "compress";
    /// Token ids, bare or with llm.c's header: [`Tokens`](super::Tokens).
    Tokens = tokens::FACTS;
    /// Megatron's indexed datasets: [`Megatron`](super::Megatron).
    Megatron = megatron::FACTS;
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
        match self.needs() {
            Some((name, _)) => Some(name),
            None => None,
        }
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
    #[cfg_attr(not(feature = "spec"), expect(dead_code, reason = "for those who say where indices are kept"))]
    pub(crate) fn is_indexed(self) -> bool {
        self.facts().is_indexed
    }

    /// Returns the error that this build lacks [`feature`](Self::feature), with the remedy.
    pub(crate) fn lacking(self) -> Error {
        lacking(self.as_str(), self.feature().unwrap_or_default())
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

/// Returns the error that files of a format need a feature that this build lacks, with the remedy.
pub(crate) fn lacking(format: &str, feature: &str) -> Error {
    let what = if feature == "compress" { "compressed" } else { format };
    Error::unsupported(format!("{what} files need the feature `{feature}`, which this build lacks"))
        .help(format!("build with `--features {feature}`"))
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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
    fn the_longest_ending_of_a_name_counts() {
        assert_eq!(Format::by_name("a.jsonl.gz"), Some(Format::JsonlStream));
        assert_eq!(Format::by_name("a.tfrecord.gz"), Some(Format::TfRecordStream));
        assert_eq!(Format::by_name("a.tfrecord.zlib"), Some(Format::TfRecordStream));
        assert_eq!(Format::by_name("a.gz"), None);
        for &format in Format::ALL {
            for ending in format.endings() {
                assert_eq!(Format::by_name(&format!("a{ending}")), Some(format), "{ending}");
            }
        }
    }
}
