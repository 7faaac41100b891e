//! Strings of JSON: found, checked and decoded in one pass over the bytes.
//!
//! Text corpora are mostly one long string a record, with an escape every few dozen bytes. The scan tests 8 bytes at a
//! time in a register, after *Bit Twiddling Hacks* by S. E. Anderson ("determine if a word has a byte less than n").

use std::borrow::Cow;

/// What is wrong with a record, and at which byte of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Fault {
    #[cold]
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Bit 7 of the first byte that is a quote, a backslash or below 0x20; bits above it may be wrong, bits below are 0.
#[inline]
fn special_mask(word: u64) -> u64 {
    let quote = word ^ (LOW * b'"' as u64);
    let backslash = word ^ (LOW * b'\\' as u64);
    let has = |x: u64| x.wrapping_sub(LOW) & !x;
    let control = word.wrapping_sub(LOW * 0x20) & !word;
    (has(quote) | has(backslash) | control) & HIGH
}

/// Where the next quote, backslash or control character is, from `at` on; the length if there is none.
#[inline]
fn next_special(bytes: &[u8], mut at: usize) -> usize {
    while let Some(word) = bytes.get(at..at + 8) {
        let mask = special_mask(u64::from_le_bytes(word.try_into().expect("8 bytes")));
        if mask != 0 {
            return at + (mask.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&b| b >= 0x20 && b != b'"' && b != b'\\') {
        at += 1;
    }
    at
}

/// The string whose first character is at `at`, decoded, and the place behind its closing quote.
#[inline]
pub(super) fn string(line: &str, at: usize) -> Result<(Cow<'_, str>, usize), Fault> {
    let end = next_special(line.as_bytes(), at);
    if line.as_bytes().get(end) == Some(&b'"') {
        return Ok((Cow::Borrowed(&line[at..end]), end + 1));
    }
    let mut text = String::with_capacity(line.len() - at);
    let end = walk(line, at, |piece| match piece {
        Piece::Run(run) => text.push_str(run),
        Piece::Escape(c) => text.push(c),
    })?;
    Ok((Cow::Owned(text), end))
}

/// Checks the string whose first character is at `at`, and gives the place behind its closing quote.
pub(super) fn skip_string(line: &str, at: usize) -> Result<usize, Fault> {
    walk(line, at, |_| ())
}

/// A part of a string.
enum Piece<'a> {
    Run(&'a str),
    Escape(char),
}

/// Goes through a string as runs of plain text and decoded escapes.
#[inline]
fn walk<'a>(line: &'a str, mut at: usize, mut piece: impl FnMut(Piece<'a>)) -> Result<usize, Fault> {
    loop {
        let end = next_special(line.as_bytes(), at);
        piece(Piece::Run(&line[at..end]));
        match line.as_bytes().get(end) {
            Some(b'"') => return Ok(end + 1),
            Some(b'\\') => {
                let (c, next) = unescape(line.as_bytes(), end)?;
                piece(Piece::Escape(c));
                at = next;
            }
            Some(&byte) => return Err(Fault::new(end, format!("control character 0x{byte:02x} inside a string"))),
            None => return Err(Fault::new(end, "the line ends inside a string")),
        }
    }
}

/// The character of the escape whose backslash is at `at`, and the place behind it.
#[inline]
fn unescape(bytes: &[u8], at: usize) -> Result<(char, usize), Fault> {
    let c = match bytes.get(at + 1) {
        Some(b'n') => '\n',
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\x08',
        Some(b'f') => '\x0c',
        Some(b'u') => return unicode(bytes, at),
        _ => return Err(Fault::new(at, "a backslash is followed by none of \"\\/bfnrtu")),
    };
    Ok((c, at + 2))
}

/// The character of `\uXXXX`, or of two of them that are a surrogate pair.
fn unicode(bytes: &[u8], at: usize) -> Result<(char, usize), Fault> {
    let high = unit(bytes, at)?;
    if let Some(c) = char::from_u32(high) {
        return Ok((c, at + 6));
    }
    let lone = || Fault::new(at, format!("\\u{high:04x} is a lone surrogate, which is no character"));
    if high >= 0xdc00 || bytes.get(at + 6..at + 8) != Some(b"\\u") {
        return Err(lone());
    }
    let low = unit(bytes, at + 6)?;
    if !(0xdc00..0xe000).contains(&low) {
        return Err(lone());
    }
    let c = char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or_else(lone)?;
    Ok((c, at + 12))
}

fn unit(bytes: &[u8], at: usize) -> Result<u32, Fault> {
    let wrong = || Fault::new(at, "\\u is not followed by 4 hexadecimal digits");
    let digits = bytes.get(at + 2..at + 6).ok_or_else(wrong)?;
    digits.iter().try_fold(0, |n, &d| Some(n * 16 + (d as char).to_digit(16)?)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(line: &str) -> Result<String, Fault> {
        let (text, end) = string(line, 1)?;
        assert_eq!(skip_string(line, 1), Ok(end));
        if end == line.len() { Ok(text.into_owned()) } else { Err(Fault::new(end, "rest")) }
    }

    proptest! {
        #[test]
        fn decodes_what_serde_json_writes(text in any::<String>()) {
            prop_assert_eq!(decode(&serde_json::to_string(&text).unwrap()).unwrap(), text);
        }

        /// Escapes that are right and wrong, in all mixtures: the same answer as serde_json, or an error from both.
        #[test]
        fn agrees_with_serde_json(inner in r#"([a-zé𝔘 ]{0,9}|\\["\\/bfnrtu]|\\u[dD][89abcdAB][0-9a]{2}|\\u[0-9a-f]{4}|\\u00|["\x01\t\\]){0,8}"#) {
            let line = format!("\"{inner}\"");
            prop_assert_eq!(decode(&line).ok(), serde_json::from_str::<String>(&line).ok());
        }
    }

    #[test]
    fn faults_say_where() {
        let at = |line: &str| decode(line).unwrap_err().at;
        assert_eq!(at("\"abcdefghijklmno"), 16);
        assert_eq!(at("\"abcdefghi\u{1}\""), 10);
        assert_eq!(at(r#""ab\ud800x""#), 3);
        assert_eq!(at(r#""ab\q""#), 3);
    }

    #[test]
    fn every_byte_is_classified() {
        for byte in 0..=255u8 {
            for place in 0..8 {
                let mut bytes = [b'x'; 8];
                bytes[place] = byte;
                let special = byte < 0x20 || byte == b'"' || byte == b'\\';
                assert_eq!(next_special(&bytes, 0), if special { place } else { 8 }, "{byte} at {place}");
            }
        }
    }
}
