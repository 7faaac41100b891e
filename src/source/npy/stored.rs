//! The array of a file: all of it, or as much as its rows are asked for.

use std::ops::Range;

use super::decode;
use super::header::Header;
use crate::element::{Array, Buffer, DType};
use crate::error::{Error, Result};
use crate::source::content::Content;

/// An array in a file.
pub(super) enum Stored {
    /// Mapped, or turned into a copy.
    Here(Array),
    /// Its rows are read where they lie.
    Far(Header),
}

/// A header that is longer is read with all of the file.
const HEAD: u64 = 64 << 10;

impl Stored {
    /// Leaves of the file what is still to be read of it.
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

    /// Records of it.
    pub(super) fn rows(&self) -> u64 {
        self.shape().first().map_or(1, |&rows| rows as u64)
    }

    /// Row `row`, below [`rows`](Self::rows).
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

    /// Finds a row, if it lies far away.
    pub(super) fn far(&self, row: u64) -> Option<Range<u64>> {
        let Self::Far(header) = self else { return None };
        let size = (header.len as u64).checked_div(self.rows()).filter(|_| row < self.rows())?;
        let start = header.start as u64 + row * size;
        Some(start..start + size)
    }

    /// All of it.
    pub(super) fn whole(&self, file: &Content) -> Result<Array> {
        match self {
            Self::Here(array) => Ok(array.clone()),
            Self::Far(_) => file.whole().and_then(decode),
        }
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.dtype(), self.shape())
    }
}
