//! Decompression of data that was compressed in one piece: chunks, frames, shards.
//!
//! Memory grows with the output, not with the size that a file claims.

use std::cell::RefCell;
use std::io::{self, Read};

use zstd::bulk::Decompressor;

use crate::units::Bytes;

/// Bytes of a claimed size that are allocated at once, in addition to `AT_ONCE_RATIO` times the compressed size. More
/// is allocated only as output arrives.
const AT_ONCE: usize = 16 << 20;
const AT_ONCE_RATIO: usize = 256;
/// 32 MiB: the maximum window of every zstd level without `--long`.
const WINDOW_LOG: u32 = 25;

/// Codec of compressed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Brotli,
    Bzip2,
    Gzip,
    Snappy,
    Zstd,
}

impl Codec {
    /// Decompresses `packed` into `length` bytes.
    ///
    /// # Errors
    /// An error with a message if `packed` is damaged or has another decompressed length.
    pub(crate) fn unpack(self, packed: &[u8], length: u64) -> io::Result<Vec<u8>> {
        let want = usize::try_from(length);
        let want = want.map_err(|_| io::Error::other(format!("{} are more than can be held", Bytes(length))))?;
        let out = match self {
            Self::Brotli => brotli(packed, want),
            Self::Bzip2 => drain(bzip2::read::MultiBzDecoder::new(packed), want, believed(packed)),
            Self::Gzip => drain(flate2::bufread::MultiGzDecoder::new(packed), want, believed(packed)),
            Self::Snappy => snappy(packed, want),
            Self::Zstd => zstd(packed, want),
        }?;
        if out.len() != want {
            return Err(io::Error::other(format!("{} bytes or more, where {want} should come out", out.len())));
        }
        Ok(out)
    }
}

/// Returns the number of bytes that may be allocated at once for `packed`, regardless of a larger claimed size.
fn believed(packed: &[u8]) -> usize {
    packed.len().saturating_mul(AT_ONCE_RATIO).saturating_add(AT_ONCE)
}

/// Reads `stream` to the end, but at most `most + 1` bytes. The extra byte reveals a stream that is too long.
pub(super) fn drain(stream: impl Read, most: usize, at_once: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(at_once.min(most));
    stream.take((most as u64).saturating_add(1)).read_to_end(&mut out)?;
    Ok(out)
}

/// Decompresses a zstd frame whose header states `length` bytes.
pub(crate) fn zstd(frame: &[u8], length: usize) -> io::Result<Vec<u8>> {
    match believed(frame) {
        believed if length > believed => drain(zstd_stream(frame)?, length, believed),
        _ => zstd_at_once(frame, length),
    }
}

/// Decompresses with a context that each thread keeps. Creating a context takes longer than decompressing a small
/// frame.
fn zstd_at_once(frame: &[u8], length: usize) -> io::Result<Vec<u8>> {
    thread_local!(static CONTEXT: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) });
    CONTEXT.with_borrow_mut(|kept| {
        let context = if let Some(context) = kept { context } else { kept.insert(Decompressor::new()?) };
        let mut out = Vec::with_capacity(length);
        context.decompress_to_buffer(frame, &mut out)?;
        Ok(out)
    })
}

pub(super) fn zstd_stream(frame: &[u8]) -> io::Result<impl Read + '_> {
    let mut stream = zstd::stream::read::Decoder::with_buffer(frame)?;
    stream.window_log_max(WINDOW_LOG)?;
    Ok(stream)
}

fn brotli(packed: &[u8], want: usize) -> io::Result<Vec<u8>> {
    // An extension of the format allows windows as large as memory.
    if packed.first().is_some_and(|byte| byte & 0x7f == 0x11) {
        return Err(io::Error::other("a window larger than brotli allows"));
    }
    drain(brotli::Decompressor::new(packed, 4096), want, believed(packed))
}

fn snappy(packed: &[u8], want: usize) -> io::Result<Vec<u8>> {
    // Snappy expands 3 bytes to at most 64, so a rejected size is always damage.
    if snap::raw::decompress_len(packed)? != want || want > believed(packed) {
        return Err(io::Error::other(format!("not a snappy block of {want} bytes")));
    }
    let mut out = vec![0; want];
    let written = snap::raw::Decoder::new().decompress(packed, &mut out)?;
    out.truncate(written);
    Ok(out)
}
