//! The formats there are, and what each of them can do.

use std::fmt;

use crate::error::Error;

/// A format that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Plain text: [`Lines`](super::Lines).
    Lines,
    /// JSON Lines: [`Jsonl`](super::Jsonl).
    Jsonl,
    /// Compressed text: `LineStream`.
    LineStream,
    /// Compressed JSON Lines: `JsonlStream`.
    JsonlStream,
    /// Token ids, bare or with llm.c's header: [`Tokens`](super::Tokens).
    Tokens,
    /// A NumPy array: [`Npy`](super::Npy), or [`Tokens`](super::Tokens) if it has one dimension of ids.
    Npy,
    /// NumPy arrays: `Npz`.
    Npz,
    /// Parquet: `Parquet`.
    Parquet,
    /// Arrow's IPC format, as Feather and folders of Hugging Face have it: `Arrow`.
    Arrow,
    /// ArrayRecord: `ArrayRecord`.
    ArrayRecord,
    /// CSV, TSV and the like: `Csv`.
    Csv,
    /// Compressed CSV: `CsvStream`.
    CsvStream,
    /// Bagz: `Bagz`.
    Bagz,
    /// Megatron's indexed datasets: [`Megatron`](super::Megatron).
    Megatron,
    /// Tensors by name: `Safetensors`.
    Safetensors,
    /// TFRecord: `TfRecord`.
    TfRecord,
    /// Compressed TFRecord: `TfRecordStream`.
    TfRecordStream,
    /// WebDataset's shards, tar archives: `WebDataset`.
    WebDataset,
    /// Compressed shards of WebDataset: `WebDatasetStream`.
    WebDatasetStream,
    /// A folder of MDS, or its `index.json`: `Mds`.
    Mds,
}

/// What is known of a format.
struct Facts {
    name: &'static str,
    /// The source of pipeline files that reads it.
    source: &'static str,
    endings: &'static [&'static str],
    by_number: bool,
    /// The feature without which it is not read, and whether this build has it.
    feature: Option<(&'static str, bool)>,
}

macro_rules! feature {
    ($name:literal) => {
        Some(($name, cfg!(feature = $name)))
    };
}

impl Format {
    /// All of them. Where an ending belongs to several, the first is meant.
    pub const ALL: &[Self] = &[
        Self::Jsonl,
        Self::Lines,
        Self::JsonlStream,
        Self::LineStream,
        Self::Csv,
        Self::CsvStream,
        Self::Parquet,
        Self::Arrow,
        Self::ArrayRecord,
        Self::Bagz,
        Self::Safetensors,
        Self::TfRecord,
        Self::TfRecordStream,
        Self::WebDataset,
        Self::WebDatasetStream,
        Self::Mds,
        Self::Npy,
        Self::Npz,
        Self::Tokens,
        Self::Megatron,
    ];

    /// Whether an index of its files is built and kept.
    #[cfg(feature = "spec")]
    pub(crate) fn is_indexed(self) -> bool {
        matches!(self, Self::Jsonl | Self::Lines | Self::Csv | Self::TfRecord | Self::WebDataset)
    }

    const fn facts(self) -> Facts {
        match self {
            Self::Jsonl => Facts {
                name: "jsonl",
                source: "jsonl",
                endings: &[".jsonl", ".ndjson", ".json"],
                by_number: true,
                feature: None,
            },
            Self::Lines => Facts { name: "lines", source: "lines", endings: &[".txt"], by_number: true, feature: None },
            Self::JsonlStream => Facts {
                name: "jsonl_stream",
                source: "jsonl",
                endings: &[
                    ".jsonl.gz",
                    ".jsonl.zst",
                    ".jsonl.lz4",
                    ".ndjson.gz",
                    ".ndjson.zst",
                    ".ndjson.lz4",
                    ".json.gz",
                    ".json.zst",
                    ".json.lz4",
                ],
                by_number: false,
                feature: feature!("compress"),
            },
            Self::LineStream => Facts {
                name: "line_stream",
                source: "lines",
                endings: &[".txt.gz", ".txt.zst", ".txt.lz4"],
                by_number: false,
                feature: feature!("compress"),
            },
            Self::Tokens => {
                Facts { name: "tokens", source: "tokens", endings: &[".bin"], by_number: true, feature: None }
            }
            Self::Npy => Facts { name: "npy", source: "npy", endings: &[".npy"], by_number: true, feature: None },
            Self::Npz => {
                Facts { name: "npz", source: "npz", endings: &[".npz"], by_number: true, feature: feature!("compress") }
            }
            Self::Parquet => Facts {
                name: "parquet",
                source: "parquet",
                endings: &[".parquet"],
                by_number: true,
                feature: feature!("parquet"),
            },
            Self::Arrow => Facts {
                name: "arrow",
                source: "arrow",
                endings: &[".arrow", ".feather", ".arrows"],
                by_number: true,
                feature: feature!("arrow"),
            },
            Self::ArrayRecord => Facts {
                name: "array_record",
                source: "array_record",
                endings: &[".array_record", ".arrayrecord"],
                by_number: true,
                feature: feature!("array_record"),
            },
            Self::Csv => Facts {
                name: "csv",
                source: "csv",
                endings: &[".csv", ".tsv"],
                by_number: true,
                feature: feature!("csv"),
            },
            Self::CsvStream => Facts {
                name: "csv_stream",
                source: "csv",
                endings: &[".csv.gz", ".csv.zst", ".csv.lz4", ".tsv.gz", ".tsv.zst", ".tsv.lz4"],
                by_number: false,
                feature: feature!("csv"),
            },
            Self::Bagz => Facts {
                name: "bagz",
                source: "bagz",
                endings: &[".bagz", ".bag"],
                by_number: true,
                feature: feature!("bagz"),
            },
            Self::Safetensors => Facts {
                name: "safetensors",
                source: "safetensors",
                endings: &[".safetensors"],
                by_number: true,
                feature: feature!("safetensors"),
            },
            Self::Megatron => {
                Facts { name: "megatron", source: "megatron", endings: &[".idx"], by_number: true, feature: None }
            }
            Self::TfRecord => Facts {
                name: "tfrecord",
                source: "tfrecord",
                endings: &[".tfrecord", ".tfrecords"],
                by_number: true,
                feature: feature!("tf_record"),
            },
            Self::TfRecordStream => Facts {
                name: "tfrecord_stream",
                source: "tfrecord",
                endings: &[".tfrecord.gz", ".tfrecords.gz", ".tfrecord.zlib", ".tfrecords.zlib"],
                by_number: false,
                feature: feature!("tf_record"),
            },
            Self::WebDataset => Facts {
                name: "webdataset",
                source: "webdataset",
                endings: &[".tar"],
                by_number: true,
                feature: feature!("webdataset"),
            },
            Self::WebDatasetStream => Facts {
                name: "webdataset_stream",
                source: "webdataset",
                endings: &[".tar.gz", ".tgz", ".tar.zst", ".tar.lz4"],
                by_number: false,
                feature: feature!("webdataset"),
            },
            // Known by what is in a folder.
            Self::Mds => Facts { name: "mds", source: "mds", endings: &[], by_number: true, feature: feature!("mds") },
        }
    }

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

    /// The feature of the crate without which it is not read, if there is one.
    pub const fn feature(self) -> Option<&'static str> {
        match self.facts().feature {
            Some((name, _)) => Some(name),
            None => None,
        }
    }

    /// Whether this build reads it.
    pub const fn is_built(self) -> bool {
        matches!(self.facts().feature, None | Some((_, true)))
    }

    /// Whether records can be read by number.
    pub const fn has_random_access(self) -> bool {
        self.facts().by_number
    }

    /// That this build lacks [`feature`](Self::feature), and how to get one that does not.
    pub(crate) fn lacking(self) -> Error {
        let feature = self.feature().unwrap_or_default();
        let what = if feature == "compress" { "compressed" } else { self.as_str() };
        Error::unsupported(format!("{what} files need the feature `{feature}`, which this build lacks"))
            .help(format!("build with `--features {feature}`"))
    }

    /// The format that the ending of a lower-case name promises: the longest ending counts.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        let ending =
            |format: &Self| format.endings().iter().filter(|ending| name.ends_with(*ending)).map(|e| e.len()).max();
        let longest = Self::ALL.iter().rev().filter_map(|format| Some((ending(format)?, *format)));
        longest.max_by_key(|(len, _)| *len).map(|(_, format)| format)
    }
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
