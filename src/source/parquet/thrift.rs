//! Limits the work of parsing Parquet headers and footers to their size in bytes.
//!
//! The `parquet` crate (60.1.0) skips unknown fields, and trusts the length of a skipped list (`skip_till_depth` in
//! `src/parquet_thrift.rs`). Each double past the end of a file costs a step, and booleans take no bytes at all. A few
//! bytes can therefore keep the crate busy for minutes.
//!
//! For known lists, the crate compares the length with the remaining bytes before it allocates. It omits this check in
//! page indices (`try_from_fast` in `src/file/page_index/offset_index.rs`) and in headers of pages. This module
//! therefore walks each header before the crate reads it, until <https://github.com/apache/arrow-rs/issues/9874> is
//! closed. A test checks that the crate still has the problem.
//!
//! Encoding: [Thrift's compact protocol].
//!
//! [Thrift's compact protocol]: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md

use std::io::{self, Read};

use super::fields::Field;
use super::fields::Type::{self, List, Struct};

/// Maximum nesting of structs and lists, as in the `parquet` crate.
const MAX_DEPTH: usize = 64;

/// Integers in the first fields of a struct, indexed by field number; 0 if absent.
pub(super) type Numbers = [i64; 4];

/// Checks that `input` starts with a complete struct. Every item must take at least a byte, and `known` fields must
/// have the types that the crate reads. Returns the integers in the first fields.
///
/// # Errors
/// If a check fails or `input` cannot be read.
pub(super) fn check(input: impl Read, known: &[Field]) -> io::Result<Numbers> {
    let mut walk = Walk { input, numbers: Numbers::default() };
    walk.fields(known, MAX_DEPTH)?;
    Ok(walk.numbers)
}

struct Walk<R> {
    input: R,
    /// Integers of the outermost struct.
    numbers: Numbers,
}

impl<R: Read> Walk<R> {
    fn fields(&mut self, known: &[Field], depth: usize) -> io::Result<()> {
        let mut number = 0i16;
        loop {
            let head = self.byte()?;
            let (step, kind) = (head >> 4, head & 0x0f);
            if kind == 0 {
                return Ok(());
            }
            number = if step == 0 { zigzag(self.number()?) as i16 } else { number.wrapping_add(step.into()) };
            let known = known.iter().find(|(known, _)| *known == number).map(|(_, known)| *known);
            if known.is_some_and(|known| !known.is(kind)) {
                return Err(io::Error::other(format!("field {number} is of type {kind}, which it cannot be")));
            }
            let place = usize::try_from(number).ok().filter(|place| *place < self.numbers.len());
            match place.filter(|_| depth == MAX_DEPTH && matches!(kind, 4..=6)) {
                Some(place) => self.numbers[place] = zigzag(self.number()?),
                None => self.value(kind, known, depth)?,
            }
        }
    }

    /// Walks a value of type `kind`. `known` is the type that the crate reads, if it reads the value.
    fn value(&mut self, kind: u8, known: Option<Type>, depth: usize) -> io::Result<()> {
        match kind {
            // The type code contains the value.
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => self.number().map(drop),
            7 => self.skip(8),
            8 => self.number().and_then(|length| self.skip(length)),
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
                let item = if let Some(List(item)) = known { Some(*item) } else { None };
                self.items(count, &[head & 0x0f], item, depth)
            }
            11 => match self.number()? {
                0 => Ok(()),
                count => {
                    let kinds = self.byte()?;
                    self.items(count, &[kinds >> 4, kinds & 0x0f], None, depth)
                }
            },
            12 => self.fields(if let Some(Struct(fields)) = known { fields } else { &[] }, deeper(depth)?),
            13 => self.skip(16),
            other => Err(io::Error::other(format!("a value of type {other}, which there is not"))),
        }
    }

    /// Walks `count` items, each with a value of every type in `kinds`.
    fn items(&mut self, count: u64, kinds: &[u8], known: Option<Type>, depth: usize) -> io::Result<()> {
        let depth = deeper(depth)?;
        for &kind in kinds.iter().filter(|_| count > 0) {
            if matches!(kind, 1 | 2) {
                let text = format!("a list of {count} booleans, of which no header of Parquet has any");
                return Err(io::Error::other(text));
            }
            if known.is_some_and(|known| !known.is(kind)) {
                return Err(io::Error::other(format!("a list of items of type {kind}, which they cannot be")));
            }
        }
        (0..count).try_for_each(|_| kinds.iter().try_for_each(|&kind| self.value(kind, known, depth)))
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.input.read_exact(&mut byte).map_err(cut)?;
        Ok(byte[0])
    }

    /// Reads a varint. Drops bits above 64, like the crate.
    fn number(&mut self) -> io::Result<u64> {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.input.by_ref().take(bytes), &mut io::sink())?;
        if skipped < bytes { Err(cut(io::ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
    }
}

fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn deeper(depth: usize) -> io::Result<usize> {
    depth.checked_sub(1).ok_or_else(|| io::Error::other(format!("more than {MAX_DEPTH} nested lists")))
}

/// Replaces the error for a truncated input with a description.
fn cut(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::other("it ends before all is there of which it speaks"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fields::{FOOTER, PAGE};
    use super::*;

    #[test]
    fn whole_structs_of_every_type_pass() {
        // Fields 1 to 12: true, a byte, integers, a double, text, lists, a map, a struct, a UUID; then a field with a
        // long number.
        let mut bytes = vec![0x11, 0x13, 9, 0x14, 2, 0x15, 0x80, 1, 0x16, 4, 0x17];
        bytes.extend([0; 8]);
        bytes.extend([0x18, 2, b'o', b'k', 0x19, 0x25, 1, 2, 0x19, 0, 0x1a, 0x1c, 0, 0x1b, 0, 0x1b, 1, 0x58, 7, 0]);
        bytes.extend([0x1c, 0x15, 1, 0, 0x1d]);
        bytes.extend([0; 16]);
        bytes.extend([0x05, 0x90, 3, 1, 0]);
        check(&*bytes, &[]).unwrap();
        for cut in 0..bytes.len() {
            assert!(check(&bytes[..cut], &[]).is_err(), "{cut}");
        }
    }

    #[test]
    fn lists_are_not_believed() {
        let told = |bytes: &[u8]| check(bytes, &[]).unwrap_err().to_string();
        assert!(told(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0]).contains("a list of 2147483647 booleans"));
        assert!(told(&[0x1b, 0xff, 0xff, 3, 0x52, 0]).contains("booleans"));
        for kind in [3, 5, 7, 8, 12, 13] {
            assert!(
                told(&[0x19, 0xf0 | kind, 0xff, 0xff, 0xff, 0xff, 7, 0, 0, 0]).contains("it ends before"),
                "{kind}"
            );
        }
        assert!(told(&[0x19; 200]).contains("nested lists"));
        assert!(told(&[0x1e, 0]).contains("of type 14"));
    }

    #[test]
    fn fields_of_pages_are_what_they_are_read_as() {
        let told = |bytes: &[u8]| check(bytes, PAGE).err().map(|e| e.to_string()).unwrap_or_default();
        // A data page: type, sizes, four integers, and statistics, which are unknown. Then a dictionary and a data page
        // of v2.
        let data = [0x15, 0, 0x15, 8, 0x15, 8, 0x2c, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c, 0x18, 1, 9, 0, 0, 0];
        assert_eq!(told(&data), "");
        assert_eq!(told(&[0x15, 4, 0x15, 8, 0x15, 8, 0x4c, 0x15, 2, 0x15, 4, 0x11, 0, 0]), "");
        assert_eq!(told(&[0x15, 6, 0x15, 8, 0x15, 8, 0x5c, 0x15, 2, 0x55, 2, 0x12, 0, 0]), "");
        assert!(told(&[0x15, 0, 0x19, 0xf1]).contains("field 2 is of type 9"));
        assert!(told(&[0x05, 2, 0, 0x09, 2, 0]).contains("field 1 is of type 9"));
        assert!(told(&[0x5c, 0x15, 2, 0x1c, 0]).contains("field 2 is of type 12"));
    }

    /// Each case hides bytes that the crate would parse in the value of a field, or in the items of a list.
    #[test]
    fn fields_of_footers_are_what_they_are_read_as() {
        let told = |bytes: &[u8]| check(bytes, FOOTER).err().map(|e| e.to_string()).unwrap_or_default();
        // The version, a schema with one element and a logical type, no rows, a row group without columns, a key and
        // its value.
        let mut good = vec![0x15, 2, 0x19, 0x1c, 0x48, 1, b'a', 0x6c, 0x8c, 0x11, 0x1c, 0x1c, 0, 0, 0, 0, 0];
        good.extend([
            0x16, 0, 0x19, 0x1c, 0x19, 0x0c, 0x16, 0, 0x16, 0, 0, 0x19, 0x1c, 0x18, 1, b'k', 0x18, 1, b'v', 0, 0,
        ]);
        assert_eq!(told(&good), "");
        assert_eq!(told(&[0x19, 0, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "field 1 is of type 9, which it cannot be");
        for (at, kind, error) in [
            (0, 0x18, "field 1 is of type 8"),
            (2, 0x1c, "field 2 is of type 12"),
            (3, 0x18, "a list of items of type 8"),
            (4, 0x41, "field 4 is of type 1"),
            (8, 0x81, "field 8 is of type 1"),
            (9, 0x13, "field 1 is of type 3"),
            (10, 0x15, "field 2 is of type 5"),
            (11, 0x11, "field 1 is of type 1"),
            (21, 0x1b, "field 1 is of type 11"),
            (30, 0x1a, "field 1 is of type 10"),
        ] {
            let mut bad = good.clone();
            bad[at] = kind;
            assert!(told(&bad).starts_with(error), "{at}: {}", told(&bad));
        }
    }
}
