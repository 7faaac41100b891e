//! The array of a file, in memory or read row by row.

use std::ops::Range;

use super::decode;
use super::header::Header;
use crate::element::{Array, Buffer, DType};
use crate::error::{Error, Result};
use crate::source::content::Content;

/// An array in a file.
pub(super) enum Stored {
    /// Mapped, or converted to a copy.
    Here(Array),
    /// In a store. Each row is read on demand.
    Far(Header),
}

/// Number of bytes read for a header. If a header is longer, the whole file is read.
const HEAD: u64 = 64 << 10;

impl Stored {
    /// Opens the array. Replaces `file` with an empty buffer if the array is now in memory.
    pub(super) fn open(file: &mut Content) -> Result<Self> {
        if file.here().is_none() {
            let head = file.read(0..file.len().min(HEAD))?;
            let size = usize::try_from(file.len()).unwrap_or(usize::MAX);
            let header = Header::of(head.as_bytes(), size).ok();
            if let Some(header) = header.filter(|header| header.is_plain() && !header.shape.is_empty()) {
                return Ok(Self::Far(header));
            }
        }
        let whole = std::mem::replace(file, Buffer::EMPTY.into()).whole()?;
        decode(whole).map(Self::Here)
    }

    pub(super) fn dtype(&self) -> DType {
        match self {
            Self::Here(array) => array.dtype(),
            Self::Far(header) => header.dtype,
        }
    }

    pub(super) fn shape(&self) -> &[usize] {
        match self {
            Self::Here(array) => array.shape(),
            Self::Far(header) => &header.shape,
        }
    }

    /// Returns the number of rows; 1 for a scalar.
    pub(super) fn rows(&self) -> u64 {
        self.shape().first().map_or(1, |&rows| rows as u64)
    }

    /// Returns row `row`, which must be below [`rows`](Self::rows).
    pub(super) fn row(&self, file: &Content, row: u64) -> Result<Array> {
        let missing = || Error::data(format!("no row {row}: there are {}", self.rows()));
        match self {
            Self::Here(array) if array.shape().is_empty() => Ok(array.clone()),
            Self::Here(array) => usize::try_from(row).ok().and_then(|row| array.row(row)).ok_or_else(missing),
            Self::Far(header) => {
                let bytes = file.read(self.far(row).ok_or_else(missing)?)?;
                Array::new(header.dtype, &header.shape[1..], bytes)
            }
        }
    }

    /// Returns the byte range of a row. Returns `None` if the array is in memory or has no such row.
    pub(super) fn far(&self, row: u64) -> Option<Range<u64>> {
        let Self::Far(header) = self else { return None };
        let size = (header.len as u64).checked_div(self.rows()).filter(|_| row < self.rows())?;
        let start = header.start as u64 + row * size;
        Some(start..start + size)
    }

    /// Returns the whole array.
    pub(super) fn whole(&self, file: &Content) -> Result<Array> {
        match self {
            Self::Here(array) => Ok(array.clone()),
            Self::Far(_) => file.whole().and_then(decode),
        }
    }
}

debug_as!(Stored, |self, f| write!(f, "{}{:?}", self.dtype(), self.shape()));
