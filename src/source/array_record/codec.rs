//! How the data of a chunk is compressed.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read};

use zstd::bulk::Decompressor;

use super::super::varint::put_varint;

/// What compresses a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Brotli,
    Zstd,
    Snappy,
}

impl Codec {
    pub(super) fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::None,
            b'b' => Self::Brotli,
            b'z' => Self::Zstd,
            b's' => Self::Snappy,
            _ => return None,
        })
    }

    /// The `size` bytes that `frame` was made of. What is taken meanwhile grows with what comes out, not with what is said.
    pub(super) fn decompress(self, frame: &[u8], size: u64) -> Result<Vec<u8>, String> {
        let length = usize::try_from(size).map_err(|_| format!("{size} bytes are more than can be held"))?;
        if length == 0 && frame.is_empty() {
            return Ok(Vec::new());
        }
        // So much is taken at once; more is believed only as it comes.
        let at_once = length.min(frame.len().saturating_mul(256).saturating_add(AT_ONCE));
        let out = match self {
            Self::None => Ok(frame.to_vec()),
            Self::Zstd if at_once == length => zstd_at_once(frame, length),
            Self::Zstd => zstd_stream(frame).and_then(|stream| drain(stream, length, at_once)),
            Self::Brotli => brotli_stream(frame).and_then(|stream| drain(stream, length, at_once)),
            Self::Snappy => snappy(frame, length, at_once),
        };
        let out = out.map_err(|e| e.to_string())?;
        if out.len() != length {
            return Err(format!("{} bytes or more, where {length} should come out", out.len()));
        }
        Ok(out)
    }
}

const AT_ONCE: usize = 16 << 20;

/// By a context that each thread keeps: making one takes longer than a small frame.
fn zstd_at_once(frame: &[u8], length: usize) -> io::Result<Vec<u8>> {
    thread_local!(static CONTEXT: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) });
    CONTEXT.with_borrow_mut(|kept| {
        let context = match kept {
            Some(context) => context,
            None => kept.insert(Decompressor::new()?),
        };
        let mut out = Vec::with_capacity(length);
        context.decompress_to_buffer(frame, &mut out)?;
        Ok(out)
    })
}

fn zstd_stream(frame: &[u8]) -> io::Result<impl Read + '_> {
    let mut stream = zstd::stream::read::Decoder::with_buffer(frame)?;
    stream.window_log_max(25)?;
    Ok(stream)
}

fn brotli_stream(frame: &[u8]) -> io::Result<impl Read + '_> {
    // An extension of the format, whose windows are as large as memory.
    if frame.first().is_some_and(|byte| byte & 0x7f == 0x11) {
        return Err(io::Error::other("a window larger than brotli allows"));
    }
    Ok(brotli::Decompressor::new(frame, 4096))
}

fn drain(stream: impl Read, length: usize, at_once: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(at_once);
    stream.take(length as u64 + 1).read_to_end(&mut out)?;
    Ok(out)
}

fn snappy(frame: &[u8], length: usize, at_once: usize) -> io::Result<Vec<u8>> {
    // Three bytes stand for 64 at most, so what is refused here is damage.
    if snap::raw::decompress_len(frame)? != length || at_once < length {
        return Err(io::Error::other(format!("not a snappy block of {length} bytes")));
    }
    let mut out = vec![0; length];
    let written = snap::raw::Decoder::new().decompress(frame, &mut out)?;
    out.truncate(written);
    Ok(out)
}

/// How the chunks of an ArrayRecord are compressed when it is written.
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
