//! The formats that are read: each in a file of its own, and all of them in one list.

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

/// Makes a [`Format`] of each line: its [`Facts`], and the feature without which a build lacks it.
macro_rules! formats {
    ($($(#[$about:meta])* $format:ident = $facts:path $(, if $feature:literal)?;)*) => {
        /// A format that is read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$about])* $format,)*
        }

        impl Format {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$format),*];

            const fn facts(self) -> &'static Facts {
                match self {
                    $(Self::$format => &$facts,)*
                }
            }

            /// The feature without which it is not read, and whether this build has it.
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
    /// Arrow's IPC format, as Feather and folders of Hugging Face have it: `Arrow`.
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
    /// WebDataset's shards, tar archives: `WebDataset`.
    WebDataset = web_dataset::FACTS, if "webdataset";
    /// Compressed shards of WebDataset: `WebDatasetStream`.
    WebDatasetStream = web_dataset::COMPRESSED, if "webdataset";
    /// A folder of MDS, or its `index.json`: `Mds`.
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
    /// The name of the format in lower case, as reports and errors have it.
    pub const fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The source of pipeline files that reads it.
    pub const fn source(self) -> &'static str {
        self.facts().source
    }

    /// Endings of names of such files.
    pub const fn endings(self) -> &'static [&'static str] {
        self.facts().endings
    }

    /// Endings of all the files that `source` of pipeline files reads: of compressed ones first.
    pub(crate) fn endings_of(source: &str) -> Vec<&'static str> {
        let (packed, plain): (Vec<_>, Vec<_>) = Self::ALL
            .iter()
            .map(|format| format.facts())
            .filter(|facts| facts.source == source)
            .partition(|facts| facts.is_compressed);
        packed.into_iter().chain(plain).flat_map(|facts| facts.endings).copied().collect()
    }

    /// The feature of the crate without which it is not read, if there is one.
    pub const fn feature(self) -> Option<&'static str> {
        match self.needs() {
            Some((name, _)) => Some(name),
            None => None,
        }
    }

    /// Whether this build reads it.
    pub const fn is_built(self) -> bool {
        matches!(self.needs(), None | Some((_, true)))
    }

    /// Whether records can be read by number.
    pub const fn has_random_access(self) -> bool {
        !self.facts().is_compressed
    }

    /// Whether an index of its files is built and kept.
    #[cfg_attr(not(feature = "spec"), expect(dead_code, reason = "for those who say where indices are kept"))]
    pub(crate) fn is_indexed(self) -> bool {
        self.facts().is_indexed
    }

    /// Makes the error that this build lacks [`feature`](Self::feature), and how to get one that does not.
    pub(crate) fn lacking(self) -> Error {
        lacking(self.as_str(), self.feature().unwrap_or_default())
    }

    /// The format that the ending of a lower-case name promises: the longest ending counts.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let name = unsharded(name).unwrap_or(name);
        let ending =
            |format: &Self| format.endings().iter().filter(|ending| name.ends_with(*ending)).map(|e| e.len()).max();
        let longest = Self::ALL.iter().rev().filter_map(|format| Some((ending(format)?, *format)));
        longest.max_by_key(|(len, _)| *len).map(|(_, format)| format)
    }

    /// The format whose sign a file shows, the surest first.
    pub(super) fn by_sign(probe: &Probe) -> Option<Self> {
        let mut signs: Vec<_> = Self::ALL.iter().filter_map(|format| Some((format.facts().sign?, *format))).collect();
        signs.sort_by_key(|((turn, _), _)| *turn);
        signs.iter().find(|((_, shows), _)| shows(probe)).map(|(_, format)| *format)
    }

    /// The format that a text without a sign is taken for, or a file that is `compressed`.
    pub(super) fn by_guess(probe: &Probe, compressed: bool) -> Option<Self> {
        let alike = Self::ALL.iter().rev().filter(|format| format.facts().is_compressed == compressed);
        alike.copied().find(|format| format.facts().guess.is_some_and(|guess| guess(probe)))
    }

    /// The format of a folder that is a data set as a whole.
    pub(super) fn by_folder(path: &Path) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.facts().is_folder.is_some_and(|is_one| is_one(path)))
    }

    /// Whether a file that shows no sign may yet be what its name promises.
    pub(super) fn could_be(self, probe: &Probe) -> bool {
        (self.facts().could_be)(probe)
    }
}

/// Makes the error that files of a format need a feature that this build lacks, and how to get one that does not.
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
