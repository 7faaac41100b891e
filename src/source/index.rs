//! Index of the lines of a text file, built once, in parallel.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

use super::starts::{Facts, Starts, StartsBuilder};
use crate::cores;

/// Number of bytes that a task searches. Divides 2^32, so a chunk never spans two pages.
const CHUNK: usize = 4 << 20;
/// The byte order mark of UTF-8, which is not part of the first line.
pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Start of every line of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineIndex(pub(super) Starts);

impl LineIndex {
    /// Finds the lines of `bytes`. Skips lines of only white space, unless `keep_blank` is set.
    ///
    /// # Cost
    /// One pass over the bytes on all threads of rayon. Holds 8 bytes per line during the pass and 4 bytes after it.
    pub(crate) fn build(bytes: &[u8], keep_blank: bool) -> Self {
        let find = |i| Chunk::find(bytes, i * CHUNK, bytes.len().min((i + 1) * CHUNK), keep_blank);
        let chunks = 0..bytes.len().div_ceil(CHUNK);
        let chunks: Vec<Chunk> = cores::map(chunks, find);
        let mut starts = StartsBuilder::with_capacity(chunks.iter().map(|c| c.starts.len()).sum());
        for (i, chunk) in chunks.iter().enumerate() {
            starts.extend((i * CHUNK) as u64, &chunk.starts);
        }
        let blanks = chunks.iter().map(|chunk| chunk.blanks).sum();
        Self(starts.finish(Facts { size: bytes.len() as u64, keep_blank, blanks }))
    }

    /// Returns the number of lines, without skipped lines.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns the number of bytes in memory or mapped.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    /// Returns the start of line `line`, and its bytes without the line end. Returns `None` if there is no such line,
    /// or if the index belongs to other bytes.
    pub(crate) fn line<'a>(&self, line: u64, bytes: &'a [u8]) -> Option<(usize, &'a [u8])> {
        let place = self.place(line, bytes.len() as u64)?;
        let start = usize::try_from(place.start).ok()?;
        let end = usize::try_from(place.end).ok()?;
        let span = bytes.get(start..end)?;
        let line = self.cut(span);
        let is_line = begins_line(bytes, start) && is_one_line(span, line, end == bytes.len());
        is_line.then_some((start, line))
    }

    /// Returns the range of line `line` in a file of `size` bytes. The range includes the line end and skipped lines
    /// that follow.
    pub(crate) fn place(&self, line: u64, size: u64) -> Option<Range<u64>> {
        let start = self.0.get(line)?;
        Some(start..self.0.get(line + 1).unwrap_or(size))
    }

    /// Removes the line end and skipped lines from `span`, the bytes at the [`place`](Self::place) of a line.
    pub(crate) fn cut<'a>(&self, span: &'a [u8]) -> &'a [u8] {
        // If blank lines were skipped, some may follow.
        let end = if self.0.facts.blanks > 0 { memchr(b'\n', span) } else { span.len().checked_sub(1) };
        let span = match end {
            Some(end) if span[end] == b'\n' => &span[..end],
            _ => span,
        };
        span.strip_suffix(b"\r").unwrap_or(span)
    }

    /// Returns the number of a line in the file, from 1, including blank lines. Reads the file up to the line if blank
    /// lines were skipped.
    pub(crate) fn line_number(&self, line: u64, bytes: &[u8]) -> u64 {
        match self.line(line, bytes) {
            Some((start, _)) if self.has_gaps() => memchr_iter(b'\n', &bytes[..start]).count() as u64 + 1,
            _ => line + 1,
        }
    }

    /// Returns true if lines were skipped. The number of a line in the file then differs from its index.
    pub(crate) fn has_gaps(&self) -> bool {
        self.0.facts.blanks > 0
    }
}

/// Returns true if a line begins at `start`: at the beginning of the text, or after a line end.
pub(super) fn begins_line(bytes: &[u8], start: usize) -> bool {
    match start.checked_sub(1) {
        None => true,
        Some(before) => bytes[before] == b'\n' || (start == BOM.len() && bytes.starts_with(BOM)),
    }
}

/// Returns true if `line`, at the beginning of `span`, contains no line end, and only blank lines follow it. A line end
/// must follow, unless the line is the last.
fn is_one_line(span: &[u8], line: &[u8], is_last: bool) -> bool {
    let rest = &span[line.len()..];
    let ends = is_last || rest.contains(&b'\n');
    ends && memchr(b'\n', line).is_none() && rest.iter().all(|&byte| byte == b'\n' || is_space(byte))
}

/// Lines that start in a chunk.
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
        // A line starts after each line end, except after the last byte of the file.
        let before = from.saturating_sub(1);
        memchr_iter(b'\n', &bytes[before..to - 1]).for_each(|at| add(before + at + 1));
        chunk
    }
}

/// Returns true if the line that starts here contains only white space. Inspects one byte of most lines.
fn is_blank(bytes: &[u8]) -> bool {
    if let Some(&b) = bytes.iter().find(|&&b| b == b'\n' || !is_space(b)) { b == b'\n' } else { true }
}

/// Returns true for ASCII white space within a line.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference implementation: splits, then drops blank lines.
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
        assert_eq!((index.len(), index.0.facts.blanks), (3, 2));
        assert_eq!(index.line_number(1, bytes), 4);
        assert_eq!(LineIndex::build(bytes, true).line_number(3, bytes), 4);
    }

    #[test]
    fn an_index_of_another_file_finds_nothing() {
        let index = LineIndex::build(b"a\nlonger\nfile\n", true);
        assert!(index.line(2, b"a").is_none());
        // Files of equal size with different lines.
        let lines = |bytes: &[u8]| [0, 1, 2].map(|line| index.line(line, bytes).is_some());
        assert_eq!(lines(b"a\nlonger\nfile\n"), [true; 3]);
        assert_eq!(lines(b"a\nlo\nger\nfile\n"), [true, false, true]);
        assert_eq!(lines(b"ab\nonger\nfil\ne"), [false, false, false]);
        let gaps = LineIndex::build(b"a\n\nbc\n", false);
        assert!(gaps.line(0, b"a\n\nbc\n").is_some() && gaps.line(0, b"a\nxbc\n").is_none());
    }
}
