//! Compression of whole shards.

use std::io::{self, Write};

pub(super) use super::super::decompress::Codec;
use crate::error::{Error, Result};

/// Each codec's name in streaming, which is also its file extension, and its default level.
const CODECS: [(&str, Codec, u32); 5] = [
    ("br", Codec::Brotli, 11),
    ("bz2", Codec::Bzip2, 9),
    ("gz", Codec::Gzip, 9),
    ("snappy", Codec::Snappy, 0),
    ("zstd", Codec::Zstd, 3),
];

impl Codec {
    /// Parses a codec with an optional level, such as `zstd` or `zstd:7`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for an unknown codec or level.
    pub(super) fn parse(text: &str) -> Result<(Self, u32)> {
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
        let known = CODECS.iter().find(|(known, ..)| *known == name);
        let level = level.map_or_else(|| known.map(|(_, _, level)| *level), |level| level.parse().ok());
        match (known, level) {
            (Some((_, codec, _)), Some(level)) if codec.levels().contains(&level) => Ok((*codec, level)),
            _ => Err(Error::unsupported(format!("the compression {text:?}"))
                .help(format!("known are {}, with `:LEVEL`", CODECS.map(|(name, ..)| name).join(", ")))),
        }
    }

    fn levels(self) -> std::ops::RangeInclusive<u32> {
        match self {
            Self::Brotli => 0..=11,
            Self::Bzip2 => 1..=9,
            Self::Gzip => 0..=9,
            Self::Snappy => 0..=0,
            Self::Zstd => 1..=22,
        }
    }

    /// Returns the extension of compressed files.
    pub(super) fn ending(self) -> &'static str {
        CODECS.iter().find(|(_, codec, _)| *codec == self).map_or("", |(name, ..)| name)
    }

    /// Decompresses `packed` into exactly `length` bytes.
    pub(super) fn decompress(self, packed: &[u8], length: u64) -> Result<Vec<u8>> {
        self.unpack(packed, length).map_err(|e| Error::data(format!("the {} data are damaged: {e}", self.ending())))
    }

    pub(super) fn compress(self, bytes: &[u8], level: u32) -> io::Result<Vec<u8>> {
        match self {
            Self::Brotli => {
                let params = brotli::enc::BrotliEncoderParams { quality: level as i32, ..Default::default() };
                let mut packed = Vec::new();
                brotli::BrotliCompress(&mut &*bytes, &mut packed, &params)?;
                Ok(packed)
            }
            Self::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(level));
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Self::Snappy => Ok(snap::raw::Encoder::new().compress_vec(bytes)?),
            Self::Zstd => zstd::bulk::compress(bytes, level as i32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gives_back_what_it_was_given() {
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i / 50 * 7) as u8).collect();
        for (name, codec, level) in CODECS {
            assert_eq!(Codec::parse(name).unwrap(), (codec, level));
            let packed = codec.compress(&bytes, level.min(5)).unwrap();
            assert!(packed.len() < bytes.len());
            assert!(codec.decompress(&packed, bytes.len() as u64).unwrap() == bytes, "{name}");
            for wrong in [0, 99_999, 100_001, 1 << 40] {
                assert!(codec.decompress(&packed, wrong).is_err(), "{name} {wrong}");
            }
            assert!(codec.decompress(&packed[..packed.len() / 2], bytes.len() as u64).is_err(), "{name}");
        }
        assert_eq!(Codec::parse("zstd:7").unwrap(), (Codec::Zstd, 7));
        for wrong in ["zip", "zstd:23", "zstd:", "snappy:1", "gz:x"] {
            assert!(Codec::parse(wrong).is_err(), "{wrong}");
        }
    }
}
