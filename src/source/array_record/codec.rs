//! Compression of chunks by the writer.

use std::borrow::Cow;
use std::io;

use crate::varint::put_varint;

/// Codec with which [`ArrayRecordWriter`](crate::source::ArrayRecordWriter) compresses chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Uncompressed: records are read as views of the file.
    None,
    /// Zstandard at this level.
    Zstd(i32),
    /// Brotli at this quality, 0 to 11.
    Brotli(u32),
    /// Snappy.
    Snappy,
}

// Formats the codec as in the options string of the format's own writer.
display_as!(Compression, |self, f| {
    match self {
        Self::None => f.write_str("uncompressed"),
        Self::Zstd(level) => write!(f, "zstd:{level}"),
        Self::Brotli(quality) => write!(f, "brotli:{quality}"),
        Self::Snappy => f.write_str("snappy"),
    }
});

/// Compressor of the parts of chunks; each part becomes a separate frame.
pub(super) enum Compressor {
    None,
    Zstd(zstd::bulk::Compressor<'static>),
    Brotli(brotli::enc::BrotliEncoderParams),
    Snappy(Box<snap::raw::Encoder>),
}

impl Compressor {
    pub(super) fn none() -> Self {
        Self::None
    }

    pub(super) fn new(compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None,
            Compression::Zstd(level) => Self::Zstd(zstd::bulk::Compressor::new(level)?),
            Compression::Brotli(quality) => {
                Self::Brotli(brotli::enc::BrotliEncoderParams { quality: quality.min(11) as i32, ..Default::default() })
            }
            Compression::Snappy => Self::Snappy(Box::new(snap::raw::Encoder::new())),
        })
    }

    /// Returns the codec's byte, the first byte of a chunk's data.
    pub(super) fn byte(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Zstd(_) => b'z',
            Self::Brotli(_) => b'b',
            Self::Snappy(_) => b's',
        }
    }

    /// Returns one part of a chunk: its decompressed size and its frame, or the bytes unchanged if there is no codec.
    pub(super) fn part<'a>(&mut self, bytes: &'a [u8]) -> io::Result<Cow<'a, [u8]>> {
        let frame = match self {
            Self::None => return Ok(Cow::Borrowed(bytes)),
            Self::Zstd(compressor) => compressor.compress(bytes)?,
            Self::Brotli(params) => {
                let mut frame = Vec::new();
                brotli::BrotliCompress(&mut &*bytes, &mut frame, params)?;
                frame
            }
            Self::Snappy(encoder) => encoder.compress_vec(bytes)?,
        };
        let mut part = Vec::with_capacity(frame.len() + 10);
        put_varint(&mut part, bytes.len() as u64);
        part.extend_from_slice(&frame);
        Ok(part.into())
    }
}
