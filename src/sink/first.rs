//! First records of a folder, kept beside the shards if there are too few to settle the columns.
//!
//! A resume infers the columns from more records. The file is little-endian: a mark, the number of records, the
//! records, and the 64-bit XXH3 hash of all preceding bytes.

use xxhash_rust::xxh3::xxh3_64;

use crate::element::{Array, Buffer, DType, Element, Value};
use crate::error::{Error, Result};

/// Name of the file; hidden, because the file is not part of the data set.
pub(super) const FILE: &str = ".first-records";
const MARK: &[u8] = b"gristmill first records 1\n";
/// Maximum nesting depth of lists and trees.
const MAX_DEPTH: usize = 64;

const NULL: u8 = 0;
const ARRAY: u8 = 1;
const TEXT: u8 = 2;
const BYTES: u8 = 3;
const LIST: u8 = 4;
const TREE: u8 = 5;

/// Encodes records as the bytes of the file.
pub(super) fn encode(records: &[Element]) -> Vec<u8> {
    let mut out = MARK.to_vec();
    number(&mut out, records.len());
    records.iter().for_each(|record| put_element(&mut out, record));
    let hash = xxh3_64(&out);
    out.extend(hash.to_le_bytes());
    out
}

fn number(out: &mut Vec<u8>, n: usize) {
    out.extend((n as u64).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    number(out, bytes.len());
    out.extend(bytes);
}

fn put_element(out: &mut Vec<u8>, element: &Element) {
    number(out, element.len());
    for (name, value) in element.iter() {
        put_bytes(out, name.as_bytes());
        put_value(out, value);
    }
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(NULL),
        Value::Array(array) => {
            out.push(ARRAY);
            put_bytes(out, array.dtype().name().as_bytes());
            number(out, array.shape().len());
            array.shape().iter().for_each(|&dim| number(out, dim));
            put_bytes(out, array.bytes());
        }
        Value::Str(text) => {
            out.push(TEXT);
            put_bytes(out, text.as_bytes());
        }
        Value::Bytes(bytes) => {
            out.push(BYTES);
            put_bytes(out, bytes.as_bytes());
        }
        Value::List(items) => {
            out.push(LIST);
            number(out, items.len());
            items.iter().for_each(|item| put_value(out, item));
        }
        Value::Tree(tree) => {
            out.push(TREE);
            put_element(out, tree);
        }
    }
}

/// Decodes the first `records` records of a file.
///
/// # Errors
/// [`ErrorKind::State`](crate::ErrorKind::State) if the file is damaged or holds fewer records.
pub(super) fn decode(bytes: &[u8], records: u64) -> Result<Vec<Element>> {
    let damaged = || Error::state("the first records of the folder are damaged").help("write to another folder");
    let read = || {
        let (content, hash) = bytes.split_last_chunk::<8>()?;
        if xxh3_64(content) != u64::from_le_bytes(*hash) {
            return None;
        }
        let mut from = From(content.strip_prefix(MARK)?);
        let count = from.number()?;
        let wanted = usize::try_from(records).ok().filter(|&wanted| wanted <= count)?;
        (0..wanted).map(|_| from.element(0)).collect::<Option<Vec<_>>>()
    };
    read().ok_or_else(damaged)
}

/// Bytes that remain to be decoded.
struct From<'a>(&'a [u8]);

impl<'a> From<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.take(8)?.try_into().ok()?)).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.number()?;
        self.take(n)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn element(&mut self, depth: usize) -> Option<Element> {
        let fields = self.number()?;
        let mut element = Element::new();
        for _ in 0..fields {
            let name = self.text()?;
            element.insert(name, self.value(depth)?);
        }
        Some(element)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        Some(match *self.take(1)?.first()? {
            NULL => Value::Null,
            ARRAY => Value::Array(self.array()?),
            TEXT => self.text()?.into(),
            BYTES => Value::Bytes(Buffer::copy_from(self.bytes()?)),
            LIST => {
                let items = self.number()?;
                Value::List((0..items).map(|_| self.value(depth + 1)).collect::<Option<_>>()?)
            }
            TREE => Value::Tree(self.element(depth + 1)?),
            _ => return None,
        })
    }

    fn array(&mut self) -> Option<Array> {
        let dtype = DType::from_name(self.text()?)?;
        let rank = self.number()?;
        let shape = (0..rank).map(|_| self.number()).collect::<Option<Vec<_>>>()?;
        Array::new(dtype, &shape, Buffer::copy_from(self.bytes()?)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Element> {
        let tree = Element::new().with("a", "text").with("b", Value::Null);
        let list =
            Value::List(vec![Value::Bytes(Buffer::copy_from(&[0, 255])), "longer than what lies in a value".into()]);
        let all = Element::new()
            .with("x", Array::from_vec(vec![1.5f32, 2.0]))
            .with("tree", Value::Tree(tree))
            .with("l", list);
        vec![all, Element::new(), Element::new().with("n", Array::scalar(7i64))]
    }

    #[test]
    fn records_come_back_as_they_were() {
        let bytes = encode(&records());
        assert_eq!(decode(&bytes, 3).unwrap(), records());
        assert_eq!(decode(&bytes, 1).unwrap(), records()[..1]);
        assert!(decode(&bytes, 4).is_err());
    }

    #[test]
    fn damage_anywhere_is_an_error() {
        let bytes = encode(&records());
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at], 3).is_err());
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(decode(&bad, 3).is_err(), "{at}");
            // With a valid hash, the worst results of damage are an error or a different record.
            let end = bad.len() - 8;
            let hash = xxh3_64(&bad[..end]);
            bad[end..].copy_from_slice(&hash.to_le_bytes());
            drop(decode(&bad, 3));
        }
    }
}
