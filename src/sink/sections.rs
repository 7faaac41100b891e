//! Files that are compressed in sections of a fixed size, each by itself: by several threads where there are some, and to the same
//! bytes by any number of them.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use rayon::ThreadPool;
use xxhash_rust::xxh32::{Xxh32, xxh32};

use super::compression::Compression;

/// A writer of compressed sections, one behind the other.
pub(super) struct Sections<W> {
    out: W,
    codec: Codec,
    pool: Option<Arc<ThreadPool>>,
    /// Bytes that are not compressed yet.
    section: Vec<u8>,
    /// Sections on their way, in their order.
    in_flight: VecDeque<Receiver<io::Result<Vec<u8>>>>,
    is_begun: bool,
    /// Of all bytes, which one of the codecs wants to know.
    hash: Xxh32,
}

/// The function that compresses a section.
#[derive(Clone, Copy)]
enum Codec {
    /// To a frame.
    Zstd(i32),
    /// To a member.
    Gzip(u32),
    /// To a block of the one frame that the file is: some readers know no second.
    Lz4,
}

impl<W: Write> Sections<W> {
    /// Begins a file.
    pub(super) fn new(mut out: W, compression: Compression, pool: Option<Arc<ThreadPool>>) -> io::Result<Self> {
        let codec = match compression {
            Compression::Zstd(level) => Codec::Zstd(level),
            Compression::Gzip(level) => Codec::Gzip(level),
            Compression::Lz4 => Codec::Lz4,
            other => return Err(io::Error::other(format!("whole files are not compressed by {other}"))),
        };
        if let Codec::Lz4 = codec {
            out.write_all(&lz4_header())?;
        }
        let (section, in_flight) = (Vec::new(), VecDeque::new());
        Ok(Self { out, codec, pool, section, in_flight, is_begun: false, hash: Xxh32::new(0) })
    }

    /// Ends the file, and gives back what it was written to.
    pub(super) fn finish(mut self) -> io::Result<W> {
        // Readers want a frame or a member of a file that is empty, too.
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

    /// Has the section compressed that is full.
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
        // Nobody waits where the shard was given up.
        pool.spawn(move || done.send(codec.pack(&section)).unwrap_or_default());
        self.in_flight.push_back(wait);
        Ok(())
    }

    /// Until no more than so many sections are on their way.
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

    /// Does nothing: what is compressed is not cut short for it.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Codec {
    /// Bytes of a section: many times what matches reach back, so that hardly any are lost between sections.
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
            // The size of what is in a frame is not said: who takes the first frame for all of the file is refused.
            Self::Zstd(level) => {
                let mut encoder = zstd::Encoder::new(Vec::new(), level)?;
                encoder.include_checksum(true)?;
                encoder.write_all(section)?;
                encoder.finish()
            }
            // Neither name nor time: the same content is the same file.
            Self::Gzip(level) => {
                let mut encoder = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::new(level));
                encoder.write_all(section)?;
                encoder.finish()
            }
            Self::Lz4 => Ok(lz4_block(section)),
        }
    }
}

/// The largest that the format has.
const LZ4_BLOCK: usize = 4 << 20;

/// Of a frame of version 1, with independent blocks of up to 4 MiB and a checksum of its content.
fn lz4_header() -> Vec<u8> {
    let descriptor = [0b0110_0100, 0b0111_0000];
    let check = (xxh32(&descriptor, 0) >> 8) as u8;
    [[0x04, 0x22, 0x4d, 0x18].as_slice(), &descriptor, &[check]].concat()
}

/// A block with its length, whose highest bit says that it is as it was. An empty one would be the end of the frame.
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

    /// Text that compresses, and some that does not.
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
