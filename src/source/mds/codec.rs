//! How whole shards are compressed.

use std::io::{self, Read, Write};

use crate::error::{Error, Result};

/// A codec, by the name that streaming has for it, which is also the ending of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Brotli,
    Bzip2,
    Gzip,
    Snappy,
    Zstd,
}

/// Name, codec, and the level that streaming has by default.
const CODECS: [(&str, Codec, u32); 5] = [
    ("br", Codec::Brotli, 11),
    ("bz2", Codec::Bzip2, 9),
    ("gz", Codec::Gzip, 9),
    ("snappy", Codec::Snappy, 0),
    ("zstd", Codec::Zstd, 3),
];

/// Believed of a size at once; more as it comes.
const AT_ONCE: usize = 16 << 20;

impl Codec {
    /// Codec and level of `zstd` or `zstd:7`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for another one.
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

    /// The ending of files.
    pub(super) fn ending(self) -> &'static str {
        CODECS.iter().find(|(_, codec, _)| *codec == self).map_or("", |(name, ..)| name)
    }

    /// The `length` bytes that `packed` was made of. What is taken meanwhile grows with what comes out, not with what is said.
    pub(super) fn decompress(self, packed: &[u8], length: u64) -> Result<Vec<u8>> {
        let want = usize::try_from(length).map_err(|_| Error::data(format!("{length} bytes do not fit in memory")))?;
        let at_once = want.min(packed.len().saturating_mul(256).saturating_add(AT_ONCE));
        let out = match self {
            Self::Brotli => brotli_stream(packed).and_then(|stream| drain(stream, want, at_once)),
            Self::Bzip2 => drain(bzip2::read::MultiBzDecoder::new(packed), want, at_once),
            Self::Gzip => drain(flate2::bufread::MultiGzDecoder::new(packed), want, at_once),
            Self::Snappy => snappy(packed, want, at_once),
            Self::Zstd if at_once == want => zstd::bulk::decompress(packed, want),
            Self::Zstd => zstd_stream(packed).and_then(|stream| drain(stream, want, at_once)),
        };
        let out = out.map_err(|e| Error::data(format!("the {} data are damaged: {e}", self.ending())))?;
        if out.len() != want {
            let text = format!("{} bytes or more, where {want} should come out", out.len());
            return Err(Error::data(format!("the {} data are damaged: {text}", self.ending())));
        }
        Ok(out)
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

fn drain(stream: impl Read, want: usize, at_once: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(at_once);
    stream.take(want as u64 + 1).read_to_end(&mut out)?;
    Ok(out)
}

fn zstd_stream(packed: &[u8]) -> io::Result<impl Read + '_> {
    let mut stream = zstd::stream::read::Decoder::with_buffer(packed)?;
    stream.window_log_max(25)?;
    Ok(stream)
}

fn brotli_stream(packed: &[u8]) -> io::Result<impl Read + '_> {
    // An extension of the format, whose windows are as large as memory.
    if packed.first().is_some_and(|byte| byte & 0x7f == 0x11) {
        return Err(io::Error::other("a window larger than brotli allows"));
    }
    Ok(brotli::Decompressor::new(packed, 4096))
}

fn snappy(packed: &[u8], want: usize, at_once: usize) -> io::Result<Vec<u8>> {
    // Three bytes stand for 64 at most, so what is refused here is damage.
    if snap::raw::decompress_len(packed)? != want || at_once < want {
        return Err(io::Error::other(format!("not a snappy block of {want} bytes")));
    }
    let mut out = vec![0; want];
    let written = snap::raw::Decoder::new().decompress(packed, &mut out)?;
    out.truncate(written);
    Ok(out)
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
