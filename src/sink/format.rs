//! Formats by name, with the formats and compressions that this build supports.

use std::str::FromStr;

use super::compression::Compression;
use super::writers::Facts;
pub use super::writers::SinkFormat;
use crate::error::{Error, Result};

impl SinkFormat {
    /// Returns the compression that a shard has by default; no compression if this build does not write the format.
    pub fn default_compression(self) -> Compression {
        self.built().map_or(Compression::None, |facts| facts.compressions[0].0)
    }

    /// Returns true if the number of records does not change between writing and reading. It is false for token ids,
    /// for example: a file is read as a single record.
    pub fn keeps_records(self) -> bool {
        self.built().map_or(true, |facts| facts.keeps_records)
    }

    /// Returns the facts of the format.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if this build does not write the format.
    pub(super) fn facts(self) -> Result<&'static Facts> {
        self.built().map_err(|feature| Error::lacking(self.as_str(), feature))
    }

    /// Checks that this build writes the format with `compression`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if this build does not write the format, or not with
    /// `compression`; [`ErrorKind::Config`](crate::ErrorKind::Config) if the format does not have this compression.
    pub(super) fn check(self, compression: Compression) -> Result<()> {
        let facts = self.facts()?;
        let known: Vec<&str> = facts.compressions.iter().map(|(known, _)| known.name()).collect();
        if !known.contains(&compression.name()) {
            return Err(Error::config(format!("{self} has no compression {}", compression.name()))
                .help(format!("it has {}", known.join(", "))));
        }
        if facts.packs_files && compression != Compression::None && !cfg!(feature = "compress") {
            return Err(Error::lacking("compressed", "compress"));
        }
        Ok(())
    }
}

display_as!(SinkFormat, |self, f| f.write_str(self.as_str()));

/// Parses a [name](SinkFormat::as_str).
impl FromStr for SinkFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|format| format.as_str() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|format| format.as_str()).collect();
            Error::config(format!("`{name}` is not a format that can be written"))
                .help(format!("there are {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of a text in backticks.
    fn quoted(text: &str) -> Vec<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    fn names() -> Vec<&'static str> {
        SinkFormat::ALL.iter().map(|format| format.as_str()).collect()
    }

    #[test]
    fn a_format_is_known_by_its_name_whether_this_build_writes_it_or_not() {
        for &format in SinkFormat::ALL {
            assert_eq!(format.to_string().parse::<SinkFormat>().unwrap(), format);
            match format.facts() {
                Ok(facts) => {
                    assert!(format.check(format.default_compression()).is_ok() || facts.packs_files, "{format}");
                    assert!(facts.ending.starts_with('.'), "{format}");
                }
                Err(error) => assert!(error.message().starts_with(format.as_str()), "{error}"),
            }
        }
        let error = "csv".parse::<SinkFormat>().unwrap_err();
        assert_eq!(error.help_text().unwrap(), format!("there are {}", names().join(", ")));
    }

    /// TFRecord has a different name in manifests.
    #[test]
    fn the_names_in_manifests_stay() {
        let names =
            "jsonl parquet array_record tf_record arrow hugging_face webdataset mds npy safetensors tokens megatron";
        for name in names.split(' ') {
            let json = format!("\"{name}\"");
            let format: SinkFormat = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&format).unwrap(), json);
            assert_eq!(format.as_str(), if name == "tf_record" { "tfrecord" } else { name });
        }
    }

    #[test]
    fn the_table_of_the_module_has_every_format() {
        let rows = include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
        let mut in_table: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        let mut all = names();
        in_table.sort_unstable();
        all.sort_unstable();
        assert_eq!(in_table, all);
    }

    /// The published package contains no stub.
    #[test]
    fn the_stub_of_python_has_every_format() {
        let Ok(stub) = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/python/gristmill/_gristmill.pyi"))
        else {
            return;
        };
        let (_, rest) = stub.split_once("_SinkFormat: TypeAlias = Literal[").unwrap();
        let (literal, rest) = rest.split_once(']').unwrap();
        let literal: Vec<&str> = literal.split('"').skip(1).step_by(2).collect();
        assert_eq!(literal, names());
        let (_, rest) = rest.split_once("format: The format of the shards: ").unwrap();
        assert_eq!(quoted(rest.split_once("compression:").unwrap().0), names());
    }
}
