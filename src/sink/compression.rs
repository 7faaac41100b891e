//! Compression of shards.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Compression of a shard: of the whole file for text, tar and TFRecord, and inside the file for other formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    None,
    /// Zstandard, at a level from -7 to 22.
    Zstd(i32),
    /// Gzip, at a level from 0 to 9.
    Gzip(u32),
    /// LZ4.
    Lz4,
    /// Snappy.
    Snappy,
    /// Brotli, at a quality from 0 to 11.
    Brotli(u32),
}

impl Compression {
    /// Returns the name without a level.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zstd(_) => "zstd",
            Self::Gzip(_) => "gzip",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
            Self::Brotli(_) => "brotli",
        }
    }

    fn level(self) -> Option<i32> {
        match self {
            Self::Zstd(level) => Some(level),
            Self::Gzip(level) | Self::Brotli(level) => i32::try_from(level).ok(),
            _ => None,
        }
    }
}

// Formats as `zstd:3`, which `from_str` parses.
display_as!(Compression, |self, f| {
    if let Some(level) = self.level() { write!(f, "{}:{level}", self.name()) } else { f.write_str(self.name()) }
});

/// Parses `none`, `zstd`, `zstd:9`, `gzip`, `gzip:9`, `lz4`, `snappy`, `brotli` and `brotli:5`.
impl FromStr for Compression {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let level = |default: i32, least: i32, most: i32| match level {
            None => Ok(default),
            Some(level) => level
                .parse()
                .ok()
                .filter(|n| (least..=most).contains(n))
                .ok_or_else(|| Error::config(format!("`{level}` is not a level of {name}: use {least} to {most}"))),
        };
        Ok(match name {
            "zstd" | "zst" => Self::Zstd(level(3, -7, 22)?),
            "gzip" | "gz" => Self::Gzip(level(6, 0, 9)?.unsigned_abs()),
            "brotli" => Self::Brotli(level(5, 0, 11)?.unsigned_abs()),
            "none" | "lz4" | "snappy" if text.contains(':') => {
                return Err(Error::config(format!("`{name}` has no levels")));
            }
            "none" => Self::None,
            "lz4" => Self::Lz4,
            "snappy" => Self::Snappy,
            _ => {
                return Err(Error::config(format!("unknown compression `{text}`"))
                    .help("there are none, zstd:LEVEL, gzip:LEVEL, brotli:QUALITY, lz4 and snappy"));
            }
        })
    }
}

impl TryFrom<String> for Compression {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

from_as!(Compression => String, |compression| compression.to_string());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_levels() {
        for text in ["none", "zstd:-5", "zstd:22", "gzip:0", "lz4", "snappy", "brotli:11"] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), text);
        }
        assert_eq!("zst".parse::<Compression>().unwrap(), Compression::Zstd(3));
        for text in ["zstd:23", "gzip:-1", "lz4:1", "zip", "zstd:"] {
            assert!(text.parse::<Compression>().is_err(), "{text}");
        }
    }
}
