//! Parsing of JSON strings: finds the end, checks and decodes in one pass over the bytes.
//!
//! Most records of text corpora are one long string with an escape every few dozen bytes. A block of bytes is therefore
//! compared with all special characters at once, and copied in the same step.

use std::borrow::Cow;
use std::cell::Cell;

use wide::u8x32;

use crate::element::Text;

/// An error in a record, and its byte position.
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

/// Number of bytes compared at once.
const BLOCK: usize = 32;

/// Returns a bit mask of the bytes that are a quote, a backslash or below 0x20.
#[inline]
fn specials(block: [u8; BLOCK]) -> u32 {
    let bytes = u8x32::new(block);
    let is = |byte| bytes.simd_eq(u8x32::splat(byte));
    let control = bytes.min(u8x32::splat(0x1f)).simd_eq(bytes);
    (is(b'"') | is(b'\\') | control).to_bitmask()
}

/// Returns the block of bytes at `at`, padded with quotes past the end.
#[inline]
fn block(bytes: &[u8], at: usize) -> [u8; BLOCK] {
    match bytes.get(at..at + BLOCK) {
        Some(block) => block.try_into().expect("it is a block"),
        None => last_block(bytes, at),
    }
}

#[cold]
fn last_block(bytes: &[u8], at: usize) -> [u8; BLOCK] {
    let mut block = [b'"'; BLOCK];
    let rest = bytes.get(at..).unwrap_or_default();
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Finds the next quote, backslash or control character, at `at` or later. Returns the length if there is none.
#[inline]
fn next_special(bytes: &[u8], mut at: usize) -> usize {
    loop {
        let found = specials(block(bytes, at));
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += BLOCK;
    }
}

/// Decodes the string whose first character is at `at`. Returns the text and the position after its closing quote.
#[inline]
pub(super) fn string(line: &str, at: usize) -> Result<(Cow<'_, str>, usize), Fault> {
    let end = next_special(line.as_bytes(), at);
    if line.as_bytes().get(end) == Some(&b'"') {
        return Ok((Cow::Borrowed(&line[at..end]), end + 1));
    }
    decode(line, at, |text| text.to_owned()).map(|(text, end)| (Cow::Owned(text), end))
}

/// Like [`string`], but always copies the text.
#[inline]
pub(super) fn own_string(line: &str, at: usize) -> Result<(Text, usize), Fault> {
    decode(line, at, |text| Text::new(text))
}

/// Decodes a string into a buffer of the thread, passes it to `take`, and returns the position after the closing quote.
fn decode<T>(line: &str, at: usize, take: impl FnOnce(&str) -> T) -> Result<(T, usize), Fault> {
    thread_local! {
        static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    /// A larger buffer is freed, so that one long record does not occupy memory.
    const KEPT: usize = 1 << 20;
    let mut out = SCRATCH.take();
    // Decoding never lengthens a string, but whole blocks are written.
    let need = line.len() - at + BLOCK;
    if out.len() < need {
        out.resize(need, 0);
    }
    let result = decode_into(line.as_bytes(), at, &mut out).and_then(|(len, end)| {
        // Never fails, because all parts are complete characters. The check is cheap.
        let text = simdutf8::basic::from_utf8(&out[..len]).map_err(|_| Fault::new(at, "the string is not UTF-8"))?;
        Ok((take(text), end))
    });
    if out.len() <= KEPT {
        SCRATCH.set(out);
    }
    result
}

/// Decodes into the start of `out`. Returns the decoded length and the position after the closing quote.
fn decode_into(bytes: &[u8], start: usize, out: &mut [u8]) -> Result<(usize, usize), Fault> {
    let (mut at, mut len) = (start, 0);
    loop {
        let block = block(bytes, at);
        // The last block of a run copies excess bytes, which the next write overwrites.
        out[len..len + BLOCK].copy_from_slice(&block);
        let found = specials(block);
        if found == 0 {
            (at, len) = (at + BLOCK, len + BLOCK);
            continue;
        }
        let run = found.trailing_zeros() as usize;
        (at, len) = (at + run, len + run);
        match bytes.get(at) {
            Some(b'"') => return Ok((len, at + 1)),
            Some(b'\\') => {
                let simple = bytes.get(at + 1).map_or(0, |&b| SIMPLE[usize::from(b)]);
                if simple != 0 {
                    out[len] = simple;
                    (at, len) = (at + 2, len + 1);
                } else {
                    let (c, next) = unescape(bytes, at)?;
                    len += c.encode_utf8(&mut out[len..]).len();
                    at = next;
                }
            }
            other => return Err(no_text(at, other.copied())),
        }
    }
}

/// Returns the error for a string that has `byte` at `at`, or ends there.
#[cold]
fn no_text(at: usize, byte: Option<u8>) -> Fault {
    match byte {
        Some(byte) => Fault::new(at, format!("control character 0x{byte:02x} inside a string")),
        None => Fault::new(at, "the line ends inside a string"),
    }
}

/// Unescaped characters, indexed by the byte after the backslash; 0 for `u` and for invalid escapes.
const SIMPLE: [u8; 256] = {
    let mut table = [0; 256];
    let pairs = [
        (b'n', b'\n'),
        (b'"', b'"'),
        (b'\\', b'\\'),
        (b'/', b'/'),
        (b't', b'\t'),
        (b'r', b'\r'),
        (b'b', 8),
        (b'f', 12),
    ];
    let mut i = 0;
    while i < pairs.len() {
        table[pairs[i].0 as usize] = pairs[i].1;
        i += 1;
    }
    table
};

/// Checks the string whose first character is at `at`, and returns the position after its closing quote.
#[inline]
pub(super) fn skip_string(line: &str, mut at: usize) -> Result<usize, Fault> {
    let bytes = line.as_bytes();
    loop {
        at = next_special(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = unescape(bytes, at)?.1,
            other => return Err(no_text(at, other.copied())),
        }
    }
}

/// Decodes the escape whose backslash is at `at`. Returns the character and the position after it.
#[inline]
fn unescape(bytes: &[u8], at: usize) -> Result<(char, usize), Fault> {
    match bytes.get(at + 1) {
        Some(b'u') => unicode(bytes, at),
        Some(&b) if SIMPLE[usize::from(b)] != 0 => Ok((SIMPLE[usize::from(b)].into(), at + 2)),
        _ => Err(Fault::new(at, "a backslash is followed by none of \"\\/bfnrtu")),
    }
}

/// Decodes `\uXXXX`, or a surrogate pair of two such escapes.
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
        assert_eq!(own_string(line, 1)?, (Text::new(&text), end));
        if end == line.len() { Ok(text.into_owned()) } else { Err(Fault::new(end, "rest")) }
    }

    proptest! {
        #[test]
        fn decodes_what_serde_json_writes(text in any::<String>()) {
            prop_assert_eq!(decode(&serde_json::to_string(&text).unwrap()).unwrap(), text);
        }

        /// Mixtures of valid and invalid escapes: results equal those of serde_json, or both fail.
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
            for place in 0..40 {
                let mut bytes = [b'x'; 40];
                bytes[place] = byte;
                let special = byte < 0x20 || byte == b'"' || byte == b'\\';
                assert_eq!(next_special(&bytes, 0), if special { place } else { 40 }, "{byte} at {place}");
            }
        }
    }
}
