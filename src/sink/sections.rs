//! Files compressed in independent sections of a fixed size, by several threads if available. The bytes do not depend
//! on the number of threads.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::ThreadPool;
use xxhash_rust::xxh32::{Xxh32, xxh32};

use super::compression::Compression;

/// A writer of consecutive compressed sections.
pub(super) struct Sections<W> {
    out: W,
    codec: Codec,
    pool: Option<Arc<ThreadPool>>,
    /// Bytes that are not compressed yet.
    section: Vec<u8>,
    /// Sections that are being compressed, in order.
    in_flight: VecDeque<Receiver<io::Result<Vec<u8>>>>,
    is_begun: bool,
    /// Hash of all bytes, which LZ4 requires.
    hash: Xxh32,
}

/// Compression of a section.
#[derive(Clone, Copy)]
enum Codec {
    /// A frame per section.
    Zstd(i32),
    /// A member per section.
    Gzip(u32),
    /// A block per section in a single frame, because some readers do not support a second frame.
    Lz4,
}

impl<W: Write> Sections<W> {
    /// Starts a file.
    pub(super) fn new(mut out: W, compression: Compression, pool: Option<Arc<ThreadPool>>) -> io::Result<Self> {
        let codec = match compression {
            Compression::Zstd(level) => Codec::Zstd(level),
            Compression::Gzip(level) => Codec::Gzip(level),
            Compression::Lz4 => Codec::Lz4,
            other => return Err(io::Error::other(format!("compression {other} is not available for whole files"))),
        };
        if let Codec::Lz4 = codec {
            out.write_all(&lz4_header())?;
        }
        let (section, in_flight) = (Vec::new(), VecDeque::new());
        Ok(Self { out, codec, pool, section, in_flight, is_begun: false, hash: Xxh32::new(0) })
    }

    /// Ends the file and returns the underlying writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        // Readers require a frame or a member even in an empty file.
        if !self.section.is_empty() || !self.is_begun {
            self.send()?;
        }
        self.wait_for(0)?;
        if let Codec::Lz4 = self.codec {
            let [end, hash] = [0, self.hash.digest()].map(u32::to_le_bytes);
            self.out.write_all(&[end, hash].concat())?;
        }
        Ok(self.out)
    }

    /// Starts to compress the current section.
    fn send(&mut self) -> io::Result<()> {
        self.is_begun = true;
        let codec = self.codec;
        if let Codec::Lz4 = codec {
            self.hash.update(&self.section);
        }
        let Some(pool) = self.pool.clone() else {
            self.out.write_all(&codec.pack(&self.section)?)?;
            self.section.clear();
            return Ok(());
        };
        self.wait_for(pool.current_num_threads() - 1)?;
        let section = mem::replace(&mut self.section, Vec::with_capacity(codec.section()));
        let (done, wait) = sync_channel(1);
        // The receiver is gone if the shard was given up.
        pool.spawn(move || done.send(codec.pack(&section)).unwrap_or_default());
        self.in_flight.push_back(wait);
        Ok(())
    }

    /// Writes finished sections until at most `count` sections are in flight.
    fn wait_for(&mut self, count: usize) -> io::Result<()> {
        while self.in_flight.len() > count {
            let Some(section) = self.in_flight.pop_front() else { break };
            let panicked = |_| io::Error::other("the codec panicked; this is a bug");
            self.out.write_all(&section.recv().map_err(panicked)??)?;
        }
        Ok(())
    }
}

impl<W: Write> Write for Sections<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let now = bytes.len().min(self.codec.section() - self.section.len());
        self.section.extend_from_slice(&bytes[..now]);
        if self.section.len() == self.codec.section() {
            self.send()?;
        }
        Ok(now)
    }

    /// Does nothing, because a flush must not end a section early.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Codec {
    /// Returns the bytes of a section: many times the reach of matches, so that few matches are lost between sections.
    fn section(self) -> usize {
        match self {
            Self::Zstd(..=2) | Self::Gzip(_) | Self::Lz4 => LZ4_BLOCK,
            Self::Zstd(3..=8) => 8 << 20,
            Self::Zstd(9..=16) => 16 << 20,
            Self::Zstd(_) => 32 << 20,
        }
    }

    fn pack(self, section: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            // Omits the content size. A reader that takes the first frame for the whole file then fails.
            Self::Zstd(level) => {
                let mut encoder = zstd::Encoder::new(Vec::new(), level)?;
                encoder.include_checksum(true)?;
                encoder.write_all(section)?;
                encoder.finish()
            }
            // Omits the name and the time, so that equal content gives equal files.
            Self::Gzip(level) => {
                let mut encoder = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::new(level));
                encoder.write_all(section)?;
                encoder.finish()
            }
            Self::Lz4 => Ok(lz4_block(section)),
        }
    }
}

/// Largest block of the format.
const LZ4_BLOCK: usize = 4 << 20;

/// Returns the header of a frame of version 1, with independent blocks of up to 4 MiB and a checksum of the content.
fn lz4_header() -> Vec<u8> {
    let descriptor = [0b0110_0100, 0b0111_0000];
    let check = (xxh32(&descriptor, 0) >> 8) as u8;
    [[0x04, 0x22, 0x4d, 0x18].as_slice(), &descriptor, &[check]].concat()
}

/// Returns a block with its length, whose highest bit marks uncompressed bytes. Returns nothing for an empty section,
/// because an empty block would end the frame.
fn lz4_block(section: &[u8]) -> Vec<u8> {
    const PLAIN: u32 = 1 << 31;
    let packed = lz4_flex::block::compress(section);
    let (length, bytes) = match packed.len() < section.len() {
        true => (packed.len() as u32, packed.as_slice()),
        false => (section.len() as u32 | PLAIN, section),
    };
    if section.is_empty() { Vec::new() } else { [length.to_le_bytes().as_slice(), bytes].concat() }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const ALL: [Compression; 4] = [Compression::Zstd(1), Compression::Zstd(3), Compression::Gzip(1), Compression::Lz4];

    fn packed(text: &[u8], compression: Compression, threads: usize, piece: usize) -> Vec<u8> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut file = Sections::new(Vec::new(), compression, (threads > 0).then(|| Arc::new(pool))).unwrap();
        text.chunks(piece).for_each(|piece| file.write_all(piece).unwrap());
        file.finish().unwrap()
    }

    fn unpacked(bytes: &[u8], compression: Compression) -> Vec<u8> {
        let mut text = Vec::new();
        match compression {
            Compression::Zstd(_) => zstd::Decoder::new(bytes).unwrap().read_to_end(&mut text),
            Compression::Gzip(_) => flate2::bufread::MultiGzDecoder::new(bytes).read_to_end(&mut text),
            _ => lz4_flex::frame::FrameDecoder::new(bytes).read_to_end(&mut text),
        }
        .unwrap();
        text
    }

    /// Returns text that compresses in some parts and not in others.
    fn text(len: usize) -> Vec<u8> {
        (0..len as u64)
            .map(|i| if i % (9 << 20) < 5 << 20 { (i >> 7) as u8 } else { ((i * i * 31) >> 9) as u8 })
            .collect()
    }

    #[test]
    fn any_number_of_threads_writes_the_same_file() {
        let whole = text((17 << 20) + 5);
        for compression in ALL {
            let alone = packed(&whole, compression, 0, usize::MAX);
            assert!(unpacked(&alone, compression) == whole, "{compression}");
            for (threads, piece) in [(1, 70_001), (2, 4 << 20), (5, usize::MAX)] {
                assert!(packed(&whole, compression, threads, piece) == alone, "{compression}, {threads} threads");
            }
        }
    }

    #[test]
    fn files_end_where_a_section_does_and_where_there_is_none() {
        for (compression, len) in ALL.into_iter().flat_map(|codec| [0, 1, 4 << 20, 8 << 20].map(|len| (codec, len))) {
            let bytes = packed(&text(len), compression, 2, 1 << 20);
            assert!(!bytes.is_empty() && unpacked(&bytes, compression) == text(len), "{compression}, {len} bytes");
        }
    }

    #[test]
    fn a_file_of_lz4_is_one_frame() {
        let bytes = packed(&text(9 << 20), Compression::Lz4, 2, 1 << 20);
        let mut frame = lz4_flex::frame::FrameDecoder::new(bytes.as_slice());
        io::copy(&mut frame, &mut io::sink()).unwrap();
        assert!(frame.into_inner().is_empty());
        assert_eq!(bytes.windows(4).filter(|word| *word == [0x04, 0x22, 0x4d, 0x18]).count(), 1);
    }
}
