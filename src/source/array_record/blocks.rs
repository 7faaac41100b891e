//! Writer of chunks, which inserts the block headers between their bytes.

use std::io::{self, Write};

use super::chunk::{HEADER, PADDING, hash};
use super::layout::{BLOCK, BLOCK_HEADER, end_of, round_up};

/// Returns the end of a chunk of `size` bytes of data. The next chunk cannot start earlier.
///
/// A chunk takes at least one byte of the file per record. Returns `None` if the end overflows `u64`.
pub(super) fn end_of_chunk(begin: u64, size: u64, records: u64) -> Option<u64> {
    let end = end_of(begin, size.checked_add(HEADER)?)?;
    Some(end.max(round_up(begin.checked_add(records)?)?))
}

/// File that is written chunk by chunk.
pub(super) struct Blocks<W> {
    out: W,
    at: u64,
}

impl<W: Write> Blocks<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, at: 0 }
    }

    /// Writes a chunk whose data is the concatenation of `parts`, and returns its offset.
    pub(super) fn chunk(&mut self, kind: u8, records: u64, decoded: u64, parts: &[&[u8]]) -> io::Result<u64> {
        let begin = self.at;
        let size = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let end = end_of_chunk(begin, size, records);
        let end = end.ok_or_else(|| io::Error::other("a file of 2^64 bytes"))?;
        let header = header(kind, records, decoded, size, hash(parts.iter().copied()));
        self.put(&header, begin, end)?;
        parts.iter().try_for_each(|part| self.put(part, begin, end))?;
        // A chunk with more records than bytes is filled up with zeros.
        while self.at < end {
            let zeros = [0; 256];
            let room = (end - self.at).min(BLOCK - self.at % BLOCK).min(zeros.len() as u64);
            match self.at.is_multiple_of(BLOCK) {
                true => self.block_header(begin, end)?,
                false => self.put(&zeros[..room as usize], begin, end)?,
            }
        }
        Ok(begin)
    }

    /// Pads to the end of the block, or to the end of the next block if this block has no room for a chunk header.
    pub(super) fn pad(&mut self) -> io::Result<()> {
        let rest = self.at.wrapping_neg() % BLOCK;
        let size = match rest {
            0 => return Ok(()),
            HEADER.. => rest - HEADER,
            _ => rest + BLOCK - BLOCK_HEADER - HEADER,
        };
        self.chunk(PADDING, 0, 0, &[&vec![0; size as usize]]).map(drop)
    }

    /// Flushes the inner writer and returns it.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, mut bytes: &[u8], begin: u64, end: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.at.is_multiple_of(BLOCK) {
                self.block_header(begin, end)?;
            }
            let room = (BLOCK - self.at % BLOCK).min(bytes.len() as u64);
            let (now, later) = bytes.split_at(room as usize);
            self.out.write_all(now)?;
            self.at += room;
            bytes = later;
        }
        Ok(())
    }

    /// Writes a block header: the distances to the start and to the end of the interrupted chunk.
    fn block_header(&mut self, begin: u64, end: u64) -> io::Result<()> {
        let (before, after) = ((self.at - begin).to_le_bytes(), (end - self.at).to_le_bytes());
        let hash = hash([before.as_slice(), &after]).to_le_bytes();
        [hash, before, after].iter().try_for_each(|word| self.out.write_all(word))?;
        self.at += BLOCK_HEADER;
        Ok(())
    }
}

fn header(kind: u8, records: u64, decoded: u64, size: u64, data_hash: u64) -> Vec<u8> {
    let words = [size, data_hash, u64::from(kind) | records << 8, decoded];
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    [hash([words.as_slice()]).to_le_bytes().as_slice(), &words].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_ends_at_a_block_from_anywhere() {
        for before in (0..70).chain([BLOCK - 200, BLOCK - 65, BLOCK - 64]) {
            let mut blocks = Blocks::new(Vec::new());
            let data = vec![1; (BLOCK - BLOCK_HEADER - HEADER - before.min(BLOCK - 64)) as usize];
            blocks.chunk(b'r', 0, 0, &[&data]).unwrap();
            blocks.pad().unwrap();
            assert!(blocks.at.is_multiple_of(BLOCK), "{before} bytes before the end of a block");
            assert_eq!(blocks.out.len() as u64, blocks.at);
        }
    }

    #[test]
    fn a_chunk_is_as_long_as_it_has_records() {
        let mut blocks = Blocks::new(Vec::new());
        blocks.chunk(b'r', 200_000, 0, &[b"x"]).unwrap();
        assert_eq!(Some(blocks.at), round_up(200_000));
        assert_eq!(blocks.out.len() as u64, blocks.at);
    }
}
