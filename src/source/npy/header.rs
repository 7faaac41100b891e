//! The header of a `.npy` file, versions 1 to 3, for plain number types.
//!
//! Format: `numpy.lib.format`. The header is a Python literal. The parser accepts only the dictionary that NumPy
//! writes, and does not recurse, so that no header can exhaust the stack or the heap.

use crate::element::DType;
use crate::error::{Error, Result};

/// The first bytes of a file.
pub(in crate::source) const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy's limit.
const MAX_DIMS: usize = 64;

/// Layout and position of the array in a `.npy` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) dtype: DType,
    pub(crate) big_endian: bool,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
    /// Byte offset of the first number.
    pub(crate) start: usize,
    /// Size of all numbers in bytes.
    pub(crate) len: usize,
}

impl Header {
    /// Parses the header of a whole file, and checks that the rest of the file is exactly the array.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for types other than plain numbers.
    pub(crate) fn parse(file: &[u8]) -> Result<Self> {
        Self::of(file, file.len())
    }

    /// Like [`parse`](Self::parse), for a file of `size` bytes that starts with `file`.
    pub(crate) fn of(file: &[u8], size: usize) -> Result<Self> {
        if !file.starts_with(MAGIC) {
            return Err(Error::data("not an npy file: its first bytes are not \\x93NUMPY").offset(0));
        }
        let cut = || Error::data(format!("the file ends inside its header, after {} bytes", file.len()));
        let version = *file.get(6).ok_or_else(|| cut().offset(6))?;
        let (text_at, text_len) = match version {
            1 => (10, file.get(8..10).map(|b| u16::from_le_bytes([b[0], b[1]]) as usize)),
            2 | 3 => (12, file.get(8..12).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize)),
            _ => return Err(Error::data(format!("npy version {version}, versions 1 to 3 are known")).offset(6)),
        };
        let text_len = text_len.ok_or_else(|| cut().offset(8))?;
        let start = text_at + text_len;
        let text = file.get(text_at..start).ok_or_else(|| {
            let rest = file.len().saturating_sub(text_at);
            Error::data(format!(
                "the header has a length of {text_len} bytes, but only {rest} bytes follow in the file"
            ))
            .offset(8)
        })?;
        let fields = Parser { text, at: 0 }.dict().map_err(|(at, error)| error.offset((text_at + at) as u64))?;
        fields.header(start, size.saturating_sub(start)).map_err(|error| error.offset(text_at as u64))
    }
}

impl Header {
    /// Returns true if the data is row-major and little-endian, as in an [`Array`](crate::Array).
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_swapped() && !self.is_transposed()
    }

    pub(super) fn is_swapped(&self) -> bool {
        self.big_endian && self.dtype.size() > 1
    }

    pub(super) fn is_transposed(&self) -> bool {
        self.fortran && self.shape.iter().filter(|&&d| d > 1).count() > 1
    }
}

/// The three entries of the dictionary.
struct Fields {
    dtype: DType,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

impl Fields {
    fn header(self, start: usize, available: usize) -> Result<Header> {
        let Self { dtype, big_endian, fortran, shape } = self;
        let len = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d));
        let len = len.ok_or_else(|| Error::data(format!("the shape {shape:?} of {dtype} has too many numbers")))?;
        if len != available {
            let text =
                format!("the array {dtype}{shape:?} needs {len} bytes, the file has {available} after the header");
            return Err(Error::data(text).offset((start + len.min(available)) as u64));
        }
        Ok(Header { dtype, big_endian, fortran, shape, start, len })
    }
}

/// A result whose error has its position in the header.
type Parsed<T> = Result<T, (usize, Error)>;

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn dict(mut self) -> Parsed<Fields> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while self.peek() != Some(b'}') {
            let at = self.at;
            let repeated = match self.string()? {
                b"descr" => {
                    self.expect(b':')?;
                    descr.replace(self.descr()?).is_some()
                }
                b"fortran_order" => {
                    self.expect(b':')?;
                    fortran.replace(self.boolean()?).is_some()
                }
                b"shape" => {
                    self.expect(b':')?;
                    shape.replace(self.shape()?).is_some()
                }
                _ => return Err((at, Error::data("the header has a name other than descr, fortran_order and shape"))),
            };
            if repeated {
                return Err((at, Error::data("the header has a name twice")));
            }
            if self.peek() == Some(b',') {
                self.at += 1;
            } else if self.peek() != Some(b'}') {
                return Err(self.fault(", or }"));
            }
        }
        self.expect(b'}')?;
        if self.peek().is_some() {
            return Err(self.fault("nothing"));
        }
        let missing = |name| (0, Error::data(format!("the header lacks {name}")));
        let (dtype, big_endian) = descr.ok_or_else(|| missing("descr"))?;
        let fortran = fortran.ok_or_else(|| missing("fortran_order"))?;
        Ok(Fields { dtype, big_endian, fortran, shape: shape.ok_or_else(|| missing("shape"))? })
    }

    /// Skips white space and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Parsed<()> {
        if self.peek() != Some(byte) {
            return Err(self.fault(&(byte as char).to_string()));
        }
        self.at += 1;
        Ok(())
    }

    fn fault(&self, want: &str) -> (usize, Error) {
        let found = match self.text.get(self.at) {
            Some(&byte) => format!("{:?}", byte as char),
            None => "the end of the header".to_owned(),
        };
        (self.at, Error::data(format!("expected {want}, found {found}")))
    }

    fn string(&mut self) -> Parsed<&'a [u8]> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.fault("a quoted name")),
        };
        let rest = &self.text[self.at + 1..];
        let len = rest.iter().position(|&b| b == quote).ok_or_else(|| self.fault("a quoted name with an end"))?;
        self.at += len + 2;
        Ok(&rest[..len])
    }

    fn descr(&mut self) -> Parsed<(DType, bool)> {
        if self.peek() == Some(b'[') {
            return Err((self.at, Error::unsupported("the array has a structured dtype, plain numbers are read")));
        }
        let at = self.at;
        let descr = self.string()?;
        plain(descr).map_err(|error| (at, error))
    }

    fn boolean(&mut self) -> Parsed<bool> {
        self.peek();
        for (word, value) in [(b"True".as_slice(), true), (b"False", false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.fault("True or False"))
    }

    fn shape(&mut self) -> Parsed<Vec<usize>> {
        self.expect(b'(')?;
        let mut shape = Vec::new();
        while self.peek() != Some(b')') {
            if shape.len() == MAX_DIMS {
                return Err((self.at, Error::data(format!("more than {MAX_DIMS} dimensions"))));
            }
            shape.push(self.dimension()?);
            if self.peek() == Some(b',') {
                self.at += 1;
            } else if self.peek() != Some(b')') {
                return Err(self.fault(", or )"));
            }
        }
        self.expect(b')')?;
        Ok(shape)
    }

    fn dimension(&mut self) -> Parsed<usize> {
        let (at, mut number) = (self.at, None);
        while let Some(digit) = self.text.get(self.at).filter(|b| b.is_ascii_digit()) {
            let next = number.unwrap_or(0usize).checked_mul(10).and_then(|n| n.checked_add(usize::from(digit - b'0')));
            number = Some(next.ok_or_else(|| (at, Error::data("a dimension does not fit in 64 bits")))?);
            self.at += 1;
        }
        number.ok_or_else(|| self.fault("a dimension of 0 or more"))
    }
}

/// NumPy's codes of the number types.
const CODES: [(DType, &str); 12] = [
    (DType::Bool, "b1"),
    (DType::U8, "u1"),
    (DType::I8, "i1"),
    (DType::U16, "u2"),
    (DType::I16, "i2"),
    (DType::F16, "f2"),
    (DType::U32, "u4"),
    (DType::I32, "i4"),
    (DType::F32, "f4"),
    (DType::U64, "u8"),
    (DType::I64, "i8"),
    (DType::F64, "f8"),
];

/// Returns the `descr` of a number type in little-endian order.
fn descr_of(dtype: DType) -> Option<String> {
    let (_, code) = CODES.iter().find(|(known, _)| *known == dtype)?;
    Some(format!("{}{code}", if dtype.size() == 1 { '|' } else { '<' }))
}

/// Parses a plain `descr` into the number type and a flag for big-endian order.
fn plain(descr: &[u8]) -> Result<(DType, bool)> {
    let (&order, code) = descr.split_first().ok_or_else(|| Error::data("the dtype is empty"))?;
    let known = CODES.iter().find(|(_, known)| known.as_bytes() == code);
    let dtype = match (known, code) {
        (Some((dtype, _)), _) => *dtype,
        (None, [b'O', ..]) => return Err(Error::unsupported("object arrays are pickles, which can run code: refused")),
        (None, _) => {
            let text = format!("dtype {:?}, plain numbers are read", String::from_utf8_lossy(descr));
            return Err(Error::unsupported(text));
        }
    };
    match order {
        b'<' | b'|' | b'=' => Ok((dtype, false)),
        b'>' => Ok((dtype, true)),
        _ => Err(Error::data(format!("the dtype begins with {:?} instead of a byte order", order as char))),
    }
}

/// Encodes the start of a file up to the numbers, as NumPy's version 1, padded to a multiple of 64 bytes.
///
/// With `any_rows`, the length does not depend on the number of rows, so that the header can be overwritten.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for `bfloat16` and for more than 64 dimensions, which
/// NumPy does not support.
pub(super) fn encode(dtype: DType, shape: &[u64], any_rows: bool) -> Result<Vec<u8>> {
    let none = || Error::unsupported(format!("NumPy has no {dtype}"));
    let code = descr_of(dtype).ok_or_else(|| none().help("turn it into float32, or write safetensors"))?;
    if shape.len() > MAX_DIMS {
        return Err(Error::unsupported(format!("{} dimensions, NumPy has {MAX_DIMS}", shape.len())));
    }
    let text = |shape: &[u64]| {
        let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
        let dims = dims.join(", ") + if shape.len() == 1 { "," } else { "" };
        format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({dims}), }}")
    };
    let longest = match shape {
        [_, row @ ..] if any_rows => text(&[&[u64::MAX], row].concat()).len(),
        _ => text(shape).len(),
    };
    // The text follows magic, version and length, and ends with a newline.
    let length = (10 + longest + 1).next_multiple_of(64) - 10;
    let mut header = [MAGIC, &[1, 0], &(length as u16).to_le_bytes()].concat();
    header.extend_from_slice(format!("{:<width$}\n", text(shape), width = length - 1).as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend_from_slice(&(header.len() as u16).to_le_bytes());
        file.extend_from_slice(header.as_bytes());
        file.resize(file.len() + data, 0);
        file
    }

    #[test]
    fn headers_as_numpy_writes_them() {
        let parse = |text: &str, data| Header::parse(&file(text, data));
        let h = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }   \n", 60).unwrap();
        assert_eq!(
            (h.dtype, h.shape.as_slice(), h.fortran, h.big_endian, h.len),
            (DType::F32, [3, 5].as_slice(), false, false, 60)
        );
        assert_eq!(parse("{'shape': (), 'fortran_order': True, 'descr': '|b1'}", 1).unwrap().shape, [0usize; 0]);
        assert!(parse("{'descr': '>u2', 'fortran_order': False, 'shape': (4,), }", 8).unwrap().big_endian);
        let error = |text: &str, data| parse(text, data).unwrap_err().to_string();
        assert!(error("{'descr': '<f4', 'fortran_order': False, 'shape': (3, -5), }", 0).contains("found '-'"));
        assert!(error("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11).contains("byte 78: the array"));
        assert!(error("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 13).contains("has 13 after"));
        assert!(error("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", 13).contains("pickles"));
        assert!(error("{'descr': '<f4', 'descr': '<f4'}", 0).contains("twice"));
        assert!(error("{'descr': '<f4', 'shape': (1,)}", 4).contains("lacks fortran_order"));
    }

    proptest! {
        /// Every damaged file is an error, or its header fits the file.
        #[test]
        fn any_damage(at in 0usize..80, byte in any::<u8>(), cut in 0usize..100) {
            let mut bytes = file("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", 24);
            let len = bytes.len();
            bytes[at % len] = byte;
            bytes.truncate(cut.max(12));
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert_eq!(header.start + header.len, bytes.len());
            }
        }
    }
}
