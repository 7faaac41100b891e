//! Where the lines of a text file start: found once, in parallel, 4 bytes a line.

use memchr::{memchr, memchr_iter};
use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3;

use crate::element::Buffer;

/// Bytes that one task searches. A divisor of 2^32, so that a chunk never spans two pages.
const CHUNK: usize = 4 << 20;
/// UTF-8's byte order mark: not part of the first line.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Start of every line of a file.
///
/// The file is seen as pages of 2^32 bytes. `starts` holds the low 32 bits of every start, `pages` the number of lines
/// that start before each page, so a line costs 4 bytes in a file of any size, and finding it a search over pages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineIndex {
    /// Lines that start before page k.
    pub(super) pages: Vec<u64>,
    /// Low half of the start of every line, `u32`: on the heap, or mapped from a cache file.
    pub(super) starts: Buffer,
    /// Lines that were left out because they are blank.
    pub(super) blanks: u64,
    /// Whether blank lines are kept.
    pub(super) keep_blank: bool,
    /// Size of the file.
    pub(super) size: u64,
    /// A hash of all of the above.
    pub(super) hash: u64,
}

impl LineIndex {
    /// Finds the lines of `bytes`. Lines of nothing but white space are left out unless `keep_blank`.
    ///
    /// # Cost
    /// One pass over the bytes on all threads of rayon; 8 bytes a line while it runs, 4 after.
    pub(crate) fn build(bytes: &[u8], keep_blank: bool) -> Self {
        let chunks: Vec<Chunk> = (0..bytes.len().div_ceil(CHUNK))
            .into_par_iter()
            .map(|i| Chunk::find(bytes, i * CHUNK, bytes.len().min((i + 1) * CHUNK), keep_blank))
            .collect();
        let mut starts = Vec::with_capacity(chunks.iter().map(|c| c.starts.len()).sum());
        let (mut pages, mut blanks) = (Vec::new(), 0);
        for (i, chunk) in chunks.iter().enumerate() {
            if (i * CHUNK).trailing_zeros() >= u32::BITS {
                pages.push(starts.len() as u64);
            }
            starts.extend_from_slice(&chunk.starts);
            blanks += chunk.blanks;
        }
        Self::new(pages, Buffer::from_vec(starts), blanks, keep_blank, bytes.len() as u64)
    }

    /// An index of these parts, with its hash computed.
    pub(super) fn new(pages: Vec<u64>, starts: Buffer, blanks: u64, keep_blank: bool, size: u64) -> Self {
        let mut hasher = Xxh3::new();
        for number in [size, u64::from(keep_blank), blanks, pages.len() as u64] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(bytemuck::cast_slice(&pages));
        hasher.update(starts.as_bytes());
        Self { pages, starts, blanks, keep_blank, size, hash: hasher.digest() }
    }

    /// Number of lines, without those left out.
    pub(crate) fn len(&self) -> u64 {
        (self.starts.len() / 4) as u64
    }

    /// A hash of every line's place: equal where the lines of two files are of equal lengths.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Bytes it holds in memory, or maps.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.starts.len() + self.pages.len() * 8) as u64
    }

    /// Where line `line` starts, and its bytes without the line end; `None` if there is none, or if the index is not of these bytes.
    pub(crate) fn line<'a>(&self, line: u64, bytes: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let starts = self.starts.as_slice::<u32>()?;
        let start = self.start(starts, line)?;
        // The last line has no next one; a start is never 0 for any other.
        let next = self.start(starts, line + 1).unwrap_or(bytes.len());
        let span = bytes.get(start..next)?;
        // Where blank lines were left out, some may follow.
        let end = if self.blanks > 0 { memchr(b'\n', span) } else { span.len().checked_sub(1) };
        let span = match end {
            Some(end) if span[end] == b'\n' => &span[..end],
            _ => span,
        };
        Some((start, span.strip_suffix(b"\r").unwrap_or(span)))
    }

    /// Where a record starts.
    #[cfg(feature = "tf_record")]
    #[inline]
    pub(crate) fn start_of(&self, record: u64) -> Option<usize> {
        self.start(self.starts.as_slice::<u32>()?, record)
    }

    #[inline]
    fn start(&self, starts: &[u32], line: u64) -> Option<usize> {
        let low = *starts.get(usize::try_from(line).ok()?)? as usize;
        let page = match self.pages.len() {
            1 => 0,
            _ => self.pages.partition_point(|&first| first <= line).checked_sub(1)?,
        };
        (page << 32).checked_add(low)
    }

    /// The number of a line in the file, from 1, blank ones counted. Reads the file up to it where some were left out.
    pub(crate) fn line_number(&self, line: u64, bytes: &[u8]) -> u64 {
        match self.line(line, bytes) {
            Some((start, _)) if self.blanks > 0 => memchr_iter(b'\n', &bytes[..start]).count() as u64 + 1,
            _ => line + 1,
        }
    }
}

/// The lines that start in one chunk.
struct Chunk {
    starts: Vec<u32>,
    blanks: u64,
}

impl Chunk {
    fn find(bytes: &[u8], from: usize, to: usize, keep_blank: bool) -> Self {
        let mut chunk = Self { starts: Vec::new(), blanks: 0 };
        let mut add = |start: usize| {
            if keep_blank || !is_blank(&bytes[start..]) {
                chunk.starts.push(start as u32);
            } else {
                chunk.blanks += 1;
            }
        };
        if from == 0 {
            add(if bytes.starts_with(BOM) && bytes.len() > BOM.len() { BOM.len() } else { 0 });
        }
        // A line starts behind each line end, except the one that ends the file.
        let before = from.saturating_sub(1);
        memchr_iter(b'\n', &bytes[before..to - 1]).for_each(|at| add(before + at + 1));
        chunk
    }
}

/// Whether the line that starts here has nothing but white space. Looks at one byte of most lines.
fn is_blank(bytes: &[u8]) -> bool {
    match bytes.iter().find(|&&b| b == b'\n' || !is_space(b)) {
        Some(&b) => b == b'\n',
        None => true,
    }
}

/// ASCII white space within a line.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The obvious way: split, then drop.
    fn naive(bytes: &[u8], keep_blank: bool) -> Vec<(usize, Vec<u8>)> {
        let (mut at, mut lines) = (0, Vec::new());
        let skip = if bytes.starts_with(BOM) && bytes.len() > 3 { 3 } else { 0 };
        for piece in bytes.split_inclusive(|&b| b == b'\n') {
            let start = if at == 0 { skip } else { at };
            let mut line = &bytes[start..at + piece.len()];
            line = line.strip_suffix(b"\n").unwrap_or(line);
            if keep_blank || !line.iter().all(|&b| is_space(b)) {
                lines.push((start, line.strip_suffix(b"\r").unwrap_or(line).to_vec()));
            }
            at += piece.len();
        }
        lines
    }

    fn ours(bytes: &[u8], keep_blank: bool) -> Vec<(usize, Vec<u8>)> {
        let index = LineIndex::build(bytes, keep_blank);
        let line = |i| index.line(i, bytes).map(|(start, line)| (start, line.to_vec()));
        assert!(line(index.len()).is_none());
        (0..index.len()).map(|i| line(i).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn equals_splitting(text in "(\u{feff})?[ab \r\n\t]{0,60}", keep in any::<bool>()) {
            prop_assert_eq!(ours(text.as_bytes(), keep), naive(text.as_bytes(), keep));
        }
    }

    #[test]
    fn lines_across_chunks() {
        let mut text = vec![b'x'; 2 * CHUNK + 10];
        for at in [5, CHUNK - 2, CHUNK - 1, CHUNK, 2 * CHUNK - 1, 2 * CHUNK + 3] {
            text[at] = b'\n';
        }
        for keep in [true, false] {
            assert_eq!(ours(&text, keep), naive(&text, keep));
        }
    }

    #[test]
    fn numbers_count_blank_lines() {
        let bytes = b"a\n\n  \nb\nc";
        let index = LineIndex::build(bytes, false);
        assert_eq!((index.len(), index.blanks), (3, 2));
        assert_eq!(index.line_number(1, bytes), 4);
        assert_eq!(LineIndex::build(bytes, true).line_number(3, bytes), 4);
    }

    #[test]
    fn pages_hold_the_upper_half_of_a_start() {
        // Two lines in page 0, none in page 1, one in page 2.
        let starts = Buffer::from_vec(vec![0u32, 9, 7]);
        let index = LineIndex::new(vec![0, 2, 2], starts, 0, true, 0);
        let starts = index.starts.as_slice::<u32>().unwrap();
        assert_eq!([0, 1, 2].map(|i| index.start(starts, i).unwrap()), [0, 9, (2 << 32) + 7]);
        assert!(index.line(1, b"a line of another file").is_none());
    }
}
