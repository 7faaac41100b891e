//! Seeking to a record of a file by its offset alone.

use std::path::Path;

use super::super::content::Content;
use super::frame::{self, FOOT, HEAD};
use super::reader::Reader;
use crate::error::{Error, Result};
use crate::mmap::Access;

impl Reader {
    pub(crate) fn open_path(path: &Path, access: Access) -> Result<Self> {
        Self::open(&Content::open(&path.into(), access)?).map_err(|e| e.path(path))
    }

    /// Moves to the record that begins at `byte`. Counts the previous records by their lengths.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if no record begins there; the reader then keeps its position.
    pub(crate) fn seek(&mut self, byte: u64) -> Result<()> {
        let mut reader = Self::open(&self.file)?;
        let missing = || Error::state(format!("no record begins at byte {byte}"));
        if reader.is_compressed() {
            while reader.byte < byte {
                reader.next().map_err(|_| missing())?.ok_or_else(missing)?;
            }
        } else {
            let record = records_before(&self.file, byte).map_err(|_| missing())?;
            reader.skip_to(byte, record)?;
        }
        if reader.byte != byte {
            return Err(missing());
        }
        *self = reader;
        Ok(())
    }
}

/// Returns the number of records before `byte`, which must be the start of a record or the end of the last.
fn records_before(file: &Content, byte: u64) -> Result<u64> {
    let (mut at, mut records) = (0u64, 0);
    while at < byte {
        let head = file.read(at..at + HEAD as u64)?;
        let length = frame::length(head.as_bytes())?;
        at = at.saturating_add(length).saturating_add((HEAD + FOOT) as u64);
        records += 1;
    }
    if at != byte || byte > file.len() { Err(Error::data("in the middle of a record")) } else { Ok(records) }
}
