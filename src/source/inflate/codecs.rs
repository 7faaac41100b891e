//! Decoders of compressed files.

use std::io::{self, BufRead, Read};

use flate2::bufread::{GzDecoder, ZlibDecoder};

use super::{Codec, Decoder, first};
use crate::error::{Error, Result};
use crate::source::content::{Content, Stream};
use crate::source::lz4_frame::Lz4Decoder;

macro_rules! codecs {
    ($($decoder:ty),*) => {
        $(impl Codec for $decoder {
            fn file(&self) -> &Stream {
                self.get_ref()
            }
        })*
    };
}
codecs!(zstd::stream::read::Decoder<'static, Stream>, Lz4Decoder<Stream>, ZlibDecoder<Stream>);

impl Codec for Members {
    fn file(&self) -> &Stream {
        self.member.get_ref()
    }
}

/// The members of a gzip file. Zeros after a member are padding, as in GNU gzip and Python.
struct Members {
    member: GzDecoder<Stream>,
}

impl Read for Members {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.member.read(out)?;
            if read > 0 || out.is_empty() || !self.next_member()? {
                return Ok(read);
            }
        }
    }
}

impl Members {
    /// Moves to the next member. Returns false if there is none.
    fn next_member(&mut self) -> io::Result<bool> {
        let stream = self.member.get_mut();
        loop {
            let ahead = stream.fill_buf()?;
            if ahead.is_empty() {
                return Ok(false);
            }
            let zeros = ahead.iter().take_while(|&&byte| byte == 0).count();
            if zeros == 0 {
                break;
            }
            stream.consume(zeros);
        }
        self.member = GzDecoder::new(stream.take_over());
        Ok(true)
    }
}

/// Opens a compressed file.
pub(super) fn packed(codec: &'static str, file: &Content, window_log: Option<u32>) -> Result<Decoder> {
    let stream = file.stream();
    Ok(Decoder::Packed(
        codec,
        match codec {
            "gzip" => Box::new(Members { member: GzDecoder::new(stream) }),
            "lz4" => Box::new(Lz4Decoder::new(stream)),
            _ => {
                // The default limit of the window is 32 MiB, more for a larger file, and at most the 128 MiB of
                // `zstd --long`. A small damaged file therefore cannot use much memory, and every file that `zstd`
                // writes by default can be read.
                let log = window_log.unwrap_or_else(|| file.len().saturating_add(32 << 20).ilog2().clamp(25, 27));
                let decoder = zstd::stream::read::Decoder::with_buffer(stream).and_then(|mut decoder| {
                    decoder.window_log_max(log)?;
                    Ok(decoder)
                });
                Box::new(decoder.map_err(|e| Error::data(e.to_string()).offset(0))?)
            }
        },
    ))
}

impl Decoder {
    /// Opens a zlib file. Other files may begin with its two magic bytes, so only a format can detect zlib.
    pub(in crate::source) fn zlib(file: &Content) -> Self {
        Self::Packed("zlib", Box::new(ZlibDecoder::new(file.stream())))
    }

    /// Fills `out`, or reads to the end. Returns the number of bytes read.
    pub(in crate::source) fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut got = 0;
        while got < out.len() {
            match self.read(&mut out[got..]) {
                Ok(0) => break,
                Ok(read) => got += read,
                Err(error) => return Err(self.fault(error)),
            }
        }
        Ok(got)
    }
}

/// Decompresses the beginning of a zlib file, up to `most` bytes.
pub(in crate::source) fn beginning_of_zlib(head: &[u8], most: usize) -> Vec<u8> {
    first(Decoder::zlib(&Content::from(crate::element::Buffer::copy_from(head))), most)
}
