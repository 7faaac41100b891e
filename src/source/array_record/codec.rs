//! Compression of the data of chunks that are written.

use std::borrow::Cow;
use std::fmt;
use std::io;

use super::super::varint::put_varint;

/// Compression of the chunks of an ArrayRecord that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all: records are read as views of the file.
    None,
    /// By zstd, at this level.
    Zstd(i32),
    /// By brotli, at this quality, 0 to 11.
    Brotli(u32),
    /// By snappy.
    Snappy,
}

/// As the format's own writer has it among its options.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("uncompressed"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Brotli(quality) => write!(f, "brotli:{quality}"),
            Self::Snappy => f.write_str("snappy"),
        }
    }
}

/// Compresses parts of chunks, each as a frame of its own.
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

    /// As the first byte of a chunk says it.
    pub(super) fn byte(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Zstd(_) => b'z',
            Self::Brotli(_) => b'b',
            Self::Snappy(_) => b's',
        }
    }

    /// One part of a chunk: compressed, behind its size.
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
