//! Positions of the items of a JSON array.

use std::io::BufRead;

use memchr::memchr2;

use crate::error::{Error, Result};
use crate::source::content::{Content, untold};
use crate::source::index::BOM;
use crate::source::lines::check_text;
use crate::source::starts::{Facts, Starts, StartsBuilder};

/// Finds the start of every item in a file.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the offset if the file is not an array or ends within it.
pub(super) fn starts(file: &Content) -> Result<Starts> {
    check_text(file, "decompress it, or convert it to JSON Lines, which is also read compressed")?;
    let (mut scan, mut text) = (Scan::default(), file.stream());
    loop {
        let piece = text.fill_buf().map_err(untold)?;
        if piece.is_empty() {
            return scan.finish();
        }
        scan.feed(piece)?;
        let len = piece.len();
        text.consume(len);
    }
}

/// Returns the item at the start of `span`, which extends to the next item or to the end of the file. Returns `None` if
/// no comma or bracket ends the item.
pub(super) fn value(span: &[u8]) -> Option<&[u8]> {
    let span = span.trim_ascii_end();
    let item = span.strip_suffix(b",").or_else(|| span.strip_suffix(b"]"))?;
    Some(item.trim_ascii_end())
}

/// Scanner of a file that arrives in pieces. Strings are skipped, and brackets are counted: the parser of the records
/// checks everything else.
#[derive(Default)]
struct Scan {
    starts: StartsBuilder,
    /// Number of items found.
    items: u64,
    /// Number of bytes processed.
    at: u64,
    /// Start of the latest item.
    begun: u64,
    state: State,
}

/// Position in the grammar of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// Before the array, after this number of bytes of a byte order mark.
    #[default]
    Before,
    Mark(usize),
    /// After `[`.
    Open,
    /// After a comma.
    Comma,
    /// In an item, inside this number of brackets.
    Item(u64),
    /// In a string of an item; true after a backslash.
    Text(u64, bool),
    /// After `]`.
    End,
}

impl Scan {
    fn feed(&mut self, piece: &[u8]) -> Result<()> {
        let mut rest = piece;
        while let Some(&byte) = rest.first() {
            let passed = match self.state {
                State::Text(depth, false) => match memchr2(b'"', b'\\', rest) {
                    None => rest.len(),
                    Some(at) => {
                        self.state = if rest[at] == b'"' { State::Item(depth) } else { State::Text(depth, true) };
                        at + 1
                    }
                },
                State::Text(depth, true) => {
                    self.state = State::Text(depth, false);
                    1
                }
                State::Item(depth) if depth > 0 => {
                    match rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')) {
                        None => rest.len(),
                        Some(at) => {
                            self.state = match rest[at] {
                                b'"' => State::Text(depth, false),
                                b'{' | b'[' => State::Item(depth.saturating_add(1)),
                                _ => State::Item(depth - 1),
                            };
                            at + 1
                        }
                    }
                }
                _ => {
                    self.step(byte)?;
                    1
                }
            };
            self.at += passed as u64;
            rest = &rest[passed..];
        }
        Ok(())
    }

    /// Processes a byte outside of brackets and strings of items.
    fn step(&mut self, byte: u8) -> Result<()> {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.state = match (self.state, byte) {
            (State::Before, 0xef) if self.at == 0 => State::Mark(1),
            (State::Mark(seen), _) if BOM.get(seen) == Some(&byte) => match seen + 1 {
                all if all == BOM.len() => State::Before,
                seen => State::Mark(seen),
            },
            (State::Before, b'[') => State::Open,
            (State::Open, b']') => State::End,
            (State::Item(_), b',') => State::Comma,
            (State::Item(_), b']') => State::End,
            (state, _) if is_space => state,
            (State::Open | State::Comma, b',' | b']' | b'}' | b':') => return Err(self.unexpected(byte, "an item")),
            (State::Open | State::Comma, _) => {
                self.begun = self.at;
                self.items += 1;
                self.starts.push(self.at);
                match byte {
                    b'{' | b'[' => State::Item(1),
                    b'"' => State::Text(0, false),
                    _ => State::Item(0),
                }
            }
            // Bytes of a number or a word. The parser refuses other bytes, and says where the item is.
            (State::Item(depth), _) => State::Item(depth),
            (State::End, _) => return Err(self.unexpected(byte, "the end of the file after the array")),
            (State::Before | State::Mark(_), _) => {
                let help = "the source `json` reads an array of records; `jsonl` reads a record per line";
                return Err(self.unexpected(byte, "an array: [").help(help));
            }
            (State::Text(..), _) => return Err(Error::state("a string is skipped as a whole")),
        };
        Ok(())
    }

    #[cold]
    fn unexpected(&self, byte: u8, expected: &str) -> Error {
        Error::data(format!("expected {expected}, found {:?}", char::from(byte))).offset(self.at)
    }

    fn finish(self) -> Result<Starts> {
        let facts = Facts { size: self.at, ..Facts::default() };
        match self.state {
            State::End => Ok(self.starts.finish(facts)),
            State::Before | State::Mark(_) => {
                Err(Error::data("expected an array: [, found the end of the file").offset(self.at))
            }
            State::Item(_) | State::Text(..) => {
                let text = format!("the file ends within item {}, which begins at byte {}", self.items - 1, self.begun);
                Err(Error::data(text).offset(self.at))
            }
            State::Open | State::Comma => Err(Error::data("the file ends within the array").offset(self.at)),
        }
    }
}
