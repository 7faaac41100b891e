//! The `.idx` file: positions of sequences and documents.

use std::ops::Range;

use super::super::content::Content;
use crate::element::{Array, Buffer, DType};
use crate::error::{Error, Result};

/// Start of a Megatron-Core index. Version, number type and two counts follow, then the lengths and positions of the
/// sequences, the document boundaries, and optional modes.
const MAGIC: &[u8] = b"MMIDIDX\0\0";
const HEADER: u64 = 34;
/// Start of a legacy index. Version, number type and its size follow, then three counts (two in fairseq's index, which
/// has no documents), two lists of positions, dimensions, and document boundaries. The first list of positions is
/// unused.
const LEGACY_MAGIC: &[u8] = b"TNTIDX\0\0";
const LEGACY_HEADER: u64 = 48;

/// Returns true if a file with this start is an index.
pub(crate) fn is_index(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || head.starts_with(LEGACY_MAGIC)
}

/// An index. Only its header has been checked.
pub(crate) struct Index {
    pub(super) dtype: DType,
    pub(super) sequences: u64,
    /// Lengths of sequences in numbers, `i32`. A legacy index has none: each sequence ends at the start of the next.
    lengths: Option<List>,
    /// Starts of sequences, `i64`: in bytes, or in numbers for a legacy index.
    places: List,
    /// First sequence of each document and end of the last document, `i64`.
    documents: List,
    modes: Option<Array>,
}

/// A packed list of numbers of equal size.
struct List {
    /// Byte offset of the list in the file.
    at: u64,
    bytes: Buffer,
}

impl Index {
    pub(super) fn open(content: &Content) -> Result<Self> {
        let head = content.read(0..content.len().min(HEADER))?;
        if head.as_bytes().starts_with(LEGACY_MAGIC) {
            return Self::legacy(content);
        }
        if !head.as_bytes().starts_with(MAGIC) {
            let text = format!("not an index of Megatron's: its first bytes are not {}", MAGIC.escape_ascii());
            return Err(Error::data(text).offset(0));
        }
        let mut fields = Fields { content, at: MAGIC.len() as u64 };
        fields.version()?;
        let code = fields.take(1)?.as_bytes()[0];
        let dtype = number_type(code.into(), None).map_err(|e| e.offset(fields.at - 1))?;
        let (sequences, documents) = (fields.number()?, fields.number()?);
        let lengths = Some(fields.list(sequences, 4)?);
        let places = fields.list(sequences, 8)?;
        let documents = fields.list(documents, 8)?;
        let rest = fields.rest();
        let modes = match rest {
            0 => None,
            _ if rest == sequences => Some(Array::new(DType::I8, &[sequences as usize], fields.take(rest)?)?),
            _ => {
                let text = format!("{rest} bytes behind the documents, where {sequences} modes or nothing could be");
                return Err(Error::data(text).offset(fields.at));
            }
        };
        Ok(Self { dtype, sequences, lengths, places, documents, modes })
    }

    fn legacy(content: &Content) -> Result<Self> {
        let mut fields = Fields { content, at: LEGACY_MAGIC.len() as u64 };
        fields.version()?;
        let (code, size) = (fields.number()?, fields.number()?);
        let dtype = number_type(code, Some(size)).map_err(|e| e.offset(fields.at - 16))?;
        let (sequences, dimensions) = (fields.number()?, fields.number()?);
        // Two lists with the start of each sequence and the end of the last, and the dimensions.
        let numbers = sequences.checked_add(1).and_then(|places| places.checked_mul(2)?.checked_add(dimensions));
        let without = numbers.and_then(|numbers| numbers.checked_mul(8)?.checked_add(LEGACY_HEADER));
        let documents = if without == Some(content.len()) { 0 } else { fields.number()? };
        let places = sequences.saturating_add(1);
        fields.list(places, 8)?;
        let places = fields.list(places, 8)?;
        fields.list(dimensions, 8)?;
        let documents = fields.list(documents, 8)?;
        if fields.rest() != 0 {
            return Err(Error::data(format!("{} bytes behind the documents", fields.rest())).offset(fields.at));
        }
        Ok(Self { dtype, sequences, lengths: None, places, documents, modes: None })
    }

    /// Returns the lengths of the sequences, `i32` each. Returns `None` for a legacy index.
    pub(super) fn lengths(&self) -> Option<&[[u8; 4]]> {
        self.lengths.as_ref().map(|lengths| lengths.bytes.as_bytes().as_chunks().0)
    }

    /// Returns the number of documents. Without document boundaries, each sequence is a document.
    pub(super) fn documents(&self) -> u64 {
        match self.documents.bytes.len() as u64 / 8 {
            0 => self.sequences,
            ends => ends - 1,
        }
    }

    /// Modes of the sequences, if the index has any.
    pub(super) fn modes(&self) -> Option<&Array> {
        self.modes.as_ref()
    }

    /// Returns the byte range of a sequence in the data file.
    pub(super) fn sequence(&self, number: u64) -> Result<Range<u64>> {
        let size = self.dtype.size() as u64;
        let (place, at) = self.places.i64(number)?;
        let (length, unit, length_at) = match &self.lengths {
            Some(lengths) => (lengths.i32(number)?.into(), 1, lengths.at + number * 4),
            None => (self.places.i64(number + 1)?.0.saturating_sub(place), size, at),
        };
        let length =
            u64::try_from(length).map_err(|_| Error::data(format!("a length of {length}")).offset(length_at))?;
        let start = u64::try_from(place).ok().and_then(|place| place.checked_mul(unit));
        let range = start.and_then(|start| Some(start..start.checked_add(length.checked_mul(size)?)?));
        range.ok_or_else(|| Error::data(format!("{length} numbers from {place} on")).offset(at))
    }

    /// Returns the sequences of a document.
    pub(super) fn document(&self, number: u64) -> Result<Range<u64>> {
        if self.documents.bytes.is_empty() {
            return Ok(number..number + 1);
        }
        let ((first, at), (end, _)) = (self.documents.i64(number)?, self.documents.i64(number + 1)?);
        match (u64::try_from(first), u64::try_from(end)) {
            (Ok(first), Ok(end)) if first <= end && end <= self.sequences => Ok(first..end),
            _ => {
                let text = format!("the document has sequences {first} to {end} of {}", self.sequences);
                Err(Error::data(text).offset(at))
            }
        }
    }
}

impl List {
    /// Returns a number and its byte offset in the file.
    fn i64(&self, number: u64) -> Result<(i64, u64)> {
        let value = self.chunk::<8>(number).map(i64::from_le_bytes)?;
        Ok((value, self.at + number * 8))
    }

    fn i32(&self, number: u64) -> Result<i32> {
        self.chunk::<4>(number).map(i32::from_le_bytes)
    }

    fn chunk<const N: usize>(&self, number: u64) -> Result<[u8; N]> {
        let (chunks, _) = self.bytes.as_bytes().as_chunks::<N>();
        let chunk = usize::try_from(number).ok().and_then(|at| chunks.get(at));
        chunk.copied().ok_or_else(|| Error::data(format!("no entry {number}: there are {}", chunks.len())))
    }
}

/// Sequential reader of an index.
struct Fields<'a> {
    content: &'a Content,
    at: u64,
}

impl Fields<'_> {
    fn take(&mut self, bytes: u64) -> Result<Buffer> {
        let end = self.at.checked_add(bytes).filter(|&end| end <= self.content.len());
        let end = end.ok_or_else(|| {
            let text = format!("{bytes} bytes are missing, {} are left in the index", self.rest());
            Error::data(text).offset(self.at).help("the index is cut or damaged")
        })?;
        let taken = self.content.read(self.at..end)?;
        self.at = end;
        Ok(taken)
    }

    fn rest(&self) -> u64 {
        self.content.len().saturating_sub(self.at)
    }

    fn number(&mut self) -> Result<u64> {
        let bytes = self.take(8)?;
        Ok(bytes.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes))
    }

    fn list(&mut self, count: u64, size: u64) -> Result<List> {
        let (at, bytes) = (self.at, count.checked_mul(size));
        let overflow = || Error::data(format!("{count} entries of {size} bytes are no list of a file")).offset(at);
        Ok(List { at, bytes: self.take(bytes.ok_or_else(overflow)?)? })
    }

    fn version(&mut self) -> Result<()> {
        let at = self.at;
        match self.number()? {
            1 => Ok(()),
            other => Err(Error::data(format!("version {other} of the index, 1 is known")).offset(at)),
        }
    }
}

/// Returns the number type for a code. The stored size decides the width of floats, because writers have used either
/// width for Python's `float`.
fn number_type(code: u64, size: Option<u64>) -> Result<DType> {
    let dtype = match (code, size) {
        (1, _) => DType::U8,
        (2, _) => DType::I8,
        (3, _) => DType::I16,
        (4, _) => DType::I32,
        (5, _) => DType::I64,
        (6 | 7, Some(4)) | (7, None) => DType::F32,
        (6 | 7, Some(_)) | (6, None) => DType::F64,
        (8, _) => DType::U16,
        (9, Some(_)) => DType::U32,
        (10, Some(_)) => DType::U64,
        _ => return Err(Error::data(format!("code {code} of a number type is unknown"))),
    };
    match size {
        Some(size) if size != dtype.size() as u64 => {
            Err(Error::data(format!("numbers of {size} bytes, code {code} is {dtype}, of {}", dtype.size())))
        }
        _ => Ok(dtype),
    }
}

/// Returns the code of a number type in a Megatron-Core index.
pub(super) fn code_of(dtype: DType) -> Option<u8> {
    (1..=8).find(|&code| number_type(code.into(), None).is_ok_and(|known| known == dtype))
}

/// Encodes the header of a Megatron-Core index.
pub(super) fn head(code: u8, sequences: u64, documents: u64) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&1u64.to_le_bytes());
    head.push(code);
    head.extend_from_slice(&sequences.to_le_bytes());
    head.extend_from_slice(&documents.to_le_bytes());
    head
}
