//! Inputs for the bytes of an archive.

use super::super::content::Content;
use super::super::inflate::Decoder;
use crate::element::Buffer;
use crate::error::Result;

/// Sequential input of bytes.
pub(super) trait Input {
    /// Returns the offset of the next byte.
    fn position(&self) -> u64;

    /// Returns the next `bytes` bytes; fewer at the end.
    fn take(&mut self, bytes: u64) -> Result<Buffer>;

    /// Skips the next `bytes` bytes; fewer at the end. Returns the number of bytes skipped.
    fn skip(&mut self, bytes: u64) -> Result<u64>;
}

/// An uncompressed file, read as views of a window at a time.
pub(super) struct Window<'a> {
    content: &'a Content,
    window: Buffer,
    /// Offset of the window in the file.
    from: u64,
    at: u64,
}

/// Size of a window in bytes. A window contains the headers of many small members.
const WINDOW: u64 = 64 << 10;

impl<'a> Window<'a> {
    pub(super) fn new(content: &'a Content) -> Self {
        Self { content, window: Buffer::EMPTY, from: 0, at: 0 }
    }
}

impl Input for Window<'_> {
    fn position(&self) -> u64 {
        self.at
    }

    fn take(&mut self, bytes: u64) -> Result<Buffer> {
        let end = self.at.saturating_add(bytes).min(self.content.len());
        if end > self.from + self.window.len() as u64 {
            let most = self.at.saturating_add(WINDOW).min(self.content.len());
            self.window = self.content.read(self.at..end.max(most))?;
            self.from = self.at;
        }
        let within = |place: u64| (place - self.from) as usize;
        let taken = self.window.slice(within(self.at)..within(end)).unwrap_or(Buffer::EMPTY);
        self.at = end;
        Ok(taken)
    }

    fn skip(&mut self, bytes: u64) -> Result<u64> {
        let skipped = bytes.min(self.content.len() - self.at);
        self.at += skipped;
        Ok(skipped)
    }
}

/// A part of a file, in memory.
pub(super) struct Part {
    pub(super) bytes: Buffer,
    pub(super) at: usize,
    /// Offset of the part in the file.
    pub(super) start: u64,
}

impl Input for Part {
    fn position(&self) -> u64 {
        self.start + self.at as u64
    }

    fn take(&mut self, bytes: u64) -> Result<Buffer> {
        let from = self.at;
        self.skip(bytes)?;
        Ok(self.bytes.slice(from..self.at).unwrap_or(Buffer::EMPTY))
    }

    fn skip(&mut self, bytes: u64) -> Result<u64> {
        let left = self.bytes.len() - self.at;
        let skipped = usize::try_from(bytes).map_or(left, |bytes| bytes.min(left));
        self.at += skipped;
        Ok(skipped as u64)
    }
}

/// A file that is decompressed sequentially.
pub(super) struct Inflated {
    decoder: Decoder,
    at: u64,
}

/// Maximum number of bytes allocated at once for a claimed size.
const STEP: u64 = 1 << 20;

impl Inflated {
    pub(super) fn open(content: &Content) -> Result<Self> {
        Ok(Self { decoder: Decoder::new(content, None)?, at: 0 })
    }

    /// Returns true if positions refer to the decompressed data.
    pub(super) fn is_compressed(&self) -> bool {
        self.decoder.codec().is_some()
    }

    fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        let got = self.decoder.fill(out)?;
        self.at += got as u64;
        Ok(got)
    }
}

impl Input for Inflated {
    fn position(&self) -> u64 {
        self.at
    }

    fn take(&mut self, bytes: u64) -> Result<Buffer> {
        let mut data = Vec::new();
        while (data.len() as u64) < bytes {
            let (from, step) = (data.len(), (bytes - data.len() as u64).min(STEP));
            data.resize(from + step as usize, 0);
            let got = self.fill(&mut data[from..])?;
            data.truncate(from + got);
            if (got as u64) < step {
                break;
            }
        }
        Ok(Buffer::from_vec(data))
    }

    fn skip(&mut self, bytes: u64) -> Result<u64> {
        let (mut skipped, mut scratch) = (0, Vec::new());
        while skipped < bytes {
            let step = (bytes - skipped).min(STEP);
            scratch.resize(step as usize, 0);
            let got = self.fill(&mut scratch)? as u64;
            skipped += got;
            if got < step {
                break;
            }
        }
        Ok(skipped)
    }
}
