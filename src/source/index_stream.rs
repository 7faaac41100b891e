//! Line index of a text that arrives in pieces. A remote file is read once, and never held whole.

use std::io::{self, BufRead};

use memchr::memchr;

use super::index::{BOM, LineIndex, is_space};
use super::starts::{Facts, StartsBuilder};

/// Finds lines. The result equals [`LineIndex::build`].
pub(super) fn build(mut text: impl BufRead, keep_blank: bool) -> io::Result<LineIndex> {
    let mut finder = Finder::begin(&mut text, keep_blank)?;
    loop {
        let piece = text.fill_buf()?;
        if piece.is_empty() {
            return Ok(finder.finish());
        }
        finder.feed(piece);
        let len = piece.len();
        text.consume(len);
    }
}

struct Finder {
    starts: StartsBuilder,
    blanks: u64,
    keep_blank: bool,
    /// Number of bytes processed.
    at: u64,
    /// Start of the current line, if only white space was found in it.
    begun: Option<u64>,
}

impl Finder {
    /// Skips a byte order mark, unless the text ends after it.
    fn begin(text: &mut impl BufRead, keep_blank: bool) -> io::Result<Self> {
        let mut finder = Self { starts: StartsBuilder::default(), blanks: 0, keep_blank, at: 0, begun: Some(0) };
        let mut first = Vec::new();
        let mark = BOM.len() as u64;
        io::Read::read_to_end(&mut io::Read::take(&mut *text, mark), &mut first)?;
        if first == BOM && !text.fill_buf()?.is_empty() {
            (finder.at, finder.begun) = (mark, Some(mark));
        } else {
            finder.feed(&first);
        }
        Ok(finder)
    }

    fn feed(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while !rest.is_empty() {
            let passed = match self.begun {
                Some(start) => self.see_if_blank(start, rest),
                None => self.pass_line(rest),
            };
            self.at += passed as u64;
            rest = &rest[passed..];
        }
    }

    /// Moves to the first byte that is not white space, or past the end of a blank line.
    fn see_if_blank(&mut self, start: u64, rest: &[u8]) -> usize {
        match rest.iter().position(|&byte| byte == b'\n' || !is_space(byte)) {
            None => rest.len(),
            Some(at) if rest[at] == b'\n' => {
                self.blank(start);
                self.begun = Some(self.at + at as u64 + 1);
                at + 1
            }
            Some(at) => {
                self.starts.push(start);
                self.begun = None;
                at
            }
        }
    }

    fn pass_line(&mut self, rest: &[u8]) -> usize {
        let Some(end) = memchr(b'\n', rest) else { return rest.len() };
        self.begun = Some(self.at + end as u64 + 1);
        end + 1
    }

    fn blank(&mut self, start: u64) {
        if self.keep_blank { self.starts.push(start) } else { self.blanks += 1 }
    }

    fn finish(mut self) -> LineIndex {
        // The last line end is followed by a line only if bytes follow.
        if let Some(start) = self.begun.filter(|&start| start < self.at) {
            self.blank(start);
        }
        // Every byte needs a page, even if no line starts on that page.
        if let Some(last) = self.at.checked_sub(1) {
            self.starts.extend(last, &[]);
        }
        LineIndex(self.starts.finish(Facts { size: self.at, keep_blank: self.keep_blank, blanks: self.blanks }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_have_the_lines_of_the_whole(
            text in "(\u{feff})?[ab \r\n\t]{0,60}",
            keep in any::<bool>(),
            piece in 1usize..9,
        ) {
            let index = build(BufReader::with_capacity(piece, text.as_bytes()), keep).unwrap();
            prop_assert_eq!(index, LineIndex::build(text.as_bytes(), keep));
        }
    }
}
