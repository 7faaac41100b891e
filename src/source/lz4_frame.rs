//! Sequential decoder of LZ4 frames, with bounded memory.
//!
//! Source: `lz4_Frame_format.md` of the reference implementation, version 1.6.4.
//!
//! Only the block decoder of `lz4_flex` is used, because its `FrameDecoder` accepts a file that is cut between two
//! blocks. `read_block` (`src/frame/decompress.rs` of 0.14.0) treats an `UnexpectedEof` at the start of a block as the
//! end of the stream (<https://github.com/PSeitz/lz4_flex/issues/110>). A test checks that this is still the case.

use std::io::{self, ErrorKind, Read};

use lz4_flex::block::decompress_into_with_dict;
use xxhash_rust::xxh32::Xxh32;

/// Magic number of a frame.
pub(super) const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Number of bytes before a linked block that the block may refer to.
const WINDOW: usize = 64 << 10;

/// Decodes consecutive frames and verifies their checksums.
pub(super) struct Lz4Decoder<R> {
    input: R,
    frame: Option<Frame>,
    packed: Vec<u8>,
    /// The end of the previous blocks, followed by the current block.
    out: Vec<u8>,
    from: usize,
    /// True if a frame has begun.
    began: bool,
}

/// Header of a frame, and the progress in the frame.
struct Frame {
    linked: bool,
    block_checksums: bool,
    checksum: Option<Box<Xxh32>>,
    /// Maximum size of a block in bytes.
    most: usize,
    size: Option<u64>,
    read: u64,
}

impl<R: Read> Lz4Decoder<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, frame: None, packed: Vec::new(), out: Vec::new(), from: 0, began: false }
    }

    pub(super) fn get_ref(&self) -> &R {
        &self.input
    }

    /// Reads the next block, from this frame or the next frame. Returns false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        loop {
            let Some(mut frame) = self.frame.take() else {
                if !self.begin()? {
                    return Ok(false);
                }
                continue;
            };
            if self.block(&mut frame)? {
                self.frame = Some(frame);
                return Ok(true);
            }
            self.end(frame)?;
        }
    }

    /// Reads the header of a frame, or skips a skippable frame. Returns false at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        let mut magic = [0; 4];
        let got = read_up_to(&mut self.input, &mut magic)?;
        match (got, magic) {
            (0, _) if self.began => return Ok(false),
            (4, MAGIC) => {}
            (4, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) => {
                let size = u64::from(self.number()?);
                let skipped = io::copy(&mut self.input.by_ref().take(size), &mut io::sink())?;
                return if skipped == size { Ok(true) } else { Err(ErrorKind::UnexpectedEof.into()) };
            }
            (4, _) => return Err(damaged("no frame begins here")),
            _ => return Err(ErrorKind::UnexpectedEof.into()),
        }
        self.frame = Some(self.header()?);
        self.out.clear();
        (self.from, self.began) = (0, true);
        Ok(true)
    }

    fn header(&mut self) -> io::Result<Frame> {
        // Flags, block size, content size, dictionary, checksum.
        let mut header = [0; 15];
        self.input.read_exact(&mut header[..2])?;
        let (flags, blocks) = (header[0], header[1]);
        if flags >> 6 != 1 {
            return Err(damaged("a frame of another version"));
        }
        if flags & 1 != 0 {
            return Err(damaged("the frame needs a dictionary, which nobody has"));
        }
        let length = if flags & 8 != 0 { 10 } else { 2 };
        self.input.read_exact(&mut header[2..=length])?;
        if (xxhash_rust::xxh32::xxh32(&header[..length], 0) >> 8) as u8 != header[length] {
            return Err(damaged("the checksum of a header is wrong"));
        }
        let power = (blocks >> 4) & 7;
        if power < 4 {
            return Err(damaged("blocks of a size that there is not"));
        }
        let size = header[2..10].first_chunk().map(|&bytes| u64::from_le_bytes(bytes));
        Ok(Frame {
            linked: flags & 0x20 == 0,
            block_checksums: flags & 0x10 != 0,
            checksum: (flags & 4 != 0).then(|| Box::new(Xxh32::new(0))),
            most: 1 << (8 + 2 * power),
            size: size.filter(|_| length == 10),
            read: 0,
        })
    }

    /// Reads a block. Returns false at the end of the frame.
    fn block(&mut self, frame: &mut Frame) -> io::Result<bool> {
        let word = self.number()?;
        if word == 0 {
            return Ok(false);
        }
        let (is_plain, length) = (word >> 31 == 1, (word & 0x7fff_ffff) as usize);
        if length > frame.most {
            return Err(damaged("a block is longer than its frame says"));
        }
        self.packed.resize(length, 0);
        self.input.read_exact(&mut self.packed)?;
        if frame.block_checksums && self.number()? != xxhash_rust::xxh32::xxh32(&self.packed, 0) {
            return Err(damaged("the checksum of a block is wrong"));
        }
        let keep = if frame.linked { self.out.len().min(WINDOW) } else { 0 };
        self.out.drain(..self.out.len() - keep);
        if is_plain {
            self.out.extend_from_slice(&self.packed);
        } else {
            // A byte of a block expands to at most 255 bytes.
            self.out.resize(keep + frame.most.min(self.packed.len().saturating_mul(255)), 0);
            let (window, block) = self.out.split_at_mut(keep);
            let length = decompress_into_with_dict(&self.packed, block, window).map_err(|e| damaged(&e.to_string()))?;
            self.out.truncate(keep + length);
        }
        self.from = keep;
        let block = &self.out[keep..];
        frame.read += block.len() as u64;
        if let Some(checksum) = &mut frame.checksum {
            checksum.update(block);
        }
        Ok(true)
    }

    fn end(&mut self, frame: Frame) -> io::Result<()> {
        if let Some(size) = frame.size.filter(|&size| size != frame.read) {
            return Err(damaged(&format!("a frame holds {} bytes, and says {size}", frame.read)));
        }
        if let Some(checksum) = frame.checksum
            && self.number()? != checksum.digest()
        {
            return Err(damaged("the checksum of a frame is wrong"));
        }
        Ok(())
    }

    fn number(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.input.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

impl<R: Read> Read for Lz4Decoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.from == self.out.len() {
            if out.is_empty() || !self.fill()? {
                return Ok(0);
            }
        }
        let read = out.len().min(self.out.len() - self.from);
        out[..read].copy_from_slice(&self.out[self.from..self.from + read]);
        self.from += read;
        Ok(read)
    }
}

/// Reads until `out` is full or the input ends. Returns the number of bytes read.
fn read_up_to(input: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < out.len() {
        match input.read(&mut out[got..]) {
            Ok(0) => break,
            Ok(read) => got += read,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

#[cold]
fn damaged(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use proptest::prelude::*;

    use super::*;

    fn frame(data: &[u8], linked: bool, checks: bool, size: bool) -> Vec<u8> {
        let mode = if linked { BlockMode::Linked } else { BlockMode::Independent };
        let info = FrameInfo::new().block_mode(mode).block_checksums(checks).content_checksum(checks);
        let info = info.block_size(BlockSize::Max64KB).content_size(size.then_some(data.len() as u64));
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn read(file: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Lz4Decoder::new(file).read_to_end(&mut out)?;
        Ok(out)
    }

    fn text(bytes: usize) -> Vec<u8> {
        (0..bytes as u32).flat_map(|i| (i / 7 * 3).to_le_bytes()).take(bytes).collect()
    }

    proptest! {
        #[test]
        fn frames_hold_what_was_put_in(bytes in 0usize..300_000, linked: bool, checks: bool, size: bool) {
            let data = text(bytes);
            prop_assert!(read(&frame(&data, linked, checks, size)).unwrap() == data);
        }

        #[test]
        fn bytes_that_are_other_ones_do_no_harm(at in 0usize..2000, bit in 0u8..8, data in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut file = frame(&text(9000), false, true, true);
            let at = at % file.len();
            file[at] ^= 1 << bit;
            prop_assert!(read(&file).is_err());
            let _ = read(&[MAGIC.as_slice(), &data].concat());
        }
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_not_whole() {
        let file = frame(&text(200_000), true, true, false);
        for cut in (0..file.len()).step_by(97).chain(file.len() - 9..file.len()) {
            assert_eq!(read(&file[..cut]).unwrap_err().kind(), ErrorKind::UnexpectedEof, "{cut}");
        }
    }

    /// If this test fails, the frame decoder of `lz4_flex` may be usable: see the head of this file.
    #[test]
    fn lz4_flex_takes_a_cut_file_for_whole() {
        let data = text(200_000);
        let file = frame(&data, false, false, false);
        // Cuts the file after the first block. The length of the block follows the header of 7 bytes.
        let length = u32::from_le_bytes(*file[7..].first_chunk().unwrap()) as usize;
        let (cut, mut out) = (&file[..7 + 4 + length], Vec::new());
        lz4_flex::frame::FrameDecoder::new(cut).read_to_end(&mut out).unwrap();
        assert!(!out.is_empty() && out.len() < data.len() && data.starts_with(&out));
        assert_eq!(read(cut).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn several_frames_are_one_stream() {
        let skipped = [&[0x57, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"any"].concat();
        let file =
            [&skipped[..], &frame(b"one, ", false, true, false), &skipped, &frame(b"two", true, false, true)].concat();
        assert_eq!(read(&file).unwrap(), b"one, two");
        assert!(read(b"").is_err() && read(&skipped).is_err());
        assert!(read(&[&file[..], b"rest"].concat()).is_err() && read(&skipped[..9]).is_err());
    }
}
