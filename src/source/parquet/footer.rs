//! Reading of the footer of a file and the page indices it refers to.

use std::sync::{Arc, Mutex};

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::chunk::{Chunks, TAIL};
use super::fields::{FOOTER, OFFSET_INDEX};
use super::thrift;
use crate::error::{Error, Result};
use crate::fork::OwnLock;
use crate::source::contained::contained;
use crate::source::content::Content;
use crate::store::Bounded;

/// Reads the footer and the page indices.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset of the damage.
pub(super) fn read(chunks: &Chunks) -> Result<ArrowReaderMetadata> {
    let Some(key) = chunks.content.known_as() else { return decoded(chunks) };
    if let Some(footer) = FOOTERS.lock().get(key) {
        return Ok(footer.clone());
    }
    let footer = decoded(chunks)?;
    FOOTERS.lock().put(key, footer.clone(), footer.metadata().memory_size() as u64);
    Ok(footer)
}

/// Memory for cached footers of objects, in bytes.
const KEPT: u64 = 64 << 20;

/// Cache of footers of objects, by URL and version.
static FOOTERS: OwnLock<Bounded<u64, ArrowReaderMetadata>> = OwnLock::new(|| Mutex::new(Bounded::new(KEPT)));

fn decoded(chunks: &Chunks) -> Result<ArrowReaderMetadata> {
    check(&chunks.content)?;
    let damaged = |e: parquet::errors::ParquetError| Error::data(format!("footer: {e}"));
    let load = || {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(chunks).map_err(damaged)?;
        check_page_indices(&chunks.content, &metadata)?;
        let indices = ParquetMetaDataReader::new_with_metadata(metadata);
        let mut indices = indices.with_offset_index_policy(PageIndexPolicy::Optional);
        indices.read_page_indexes(chunks).map_err(damaged)?;
        let metadata = indices.finish().map_err(damaged)?;
        ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new()).map_err(damaged)
    };
    contained(load).map_err(|e| chunks.failure().unwrap_or(e).offset(chunks.content.len() - TAIL))
}

/// Checks the last 8 bytes, so that damage there is reported with its position. Limits the work to parse the footer.
fn check(file: &Content) -> Result<()> {
    let size = file.len();
    // The end is read first, because a store then returns the footer along with it.
    let tail = file.read(size.saturating_sub(8)..size)?;
    let is_magic = |bytes: &[u8]| [b"PAR1", b"PARE"].iter().any(|magic| bytes == *magic);
    // Reading the start of a large object would take a separate request.
    let ends = file.here().is_none() && tail.as_bytes().get(4..).is_some_and(is_magic);
    let begins = ends || is_magic(file.read(0..size.min(4))?.as_bytes());
    let Some(body) = size.checked_sub(12).filter(|_| begins) else {
        let why = if begins { ", and the smallest has 12" } else { " that do not begin with PAR1" };
        return Err(Error::data(format!("not a parquet file: {size} bytes{why}")).offset(0));
    };
    let (length, magic) = tail.as_bytes().split_at(4);
    if magic == b"PARE" {
        return Err(Error::unsupported("the footer is encrypted").offset(body + 8));
    }
    if magic != b"PAR1" {
        return Err(Error::data("does not end with PAR1: the file is cut or damaged").offset(body + 8));
    }
    let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
    if length == 0 || length > body {
        let text = format!("a footer of {length} bytes, there is room for {body}");
        return Err(Error::data(text).offset(body + 4));
    }
    let begin = size - TAIL - length;
    let footer = file.read(begin..size - TAIL)?;
    let checked = thrift::check(footer.as_bytes(), FOOTER);
    checked.map(drop).map_err(|e| Error::data(format!("footer: {e}")).offset(begin))
}

/// Limits the work to parse the page indices. Each index is stored once, so their total size is at most the file size.
///
/// Ranges outside of the file are ignored; the decoder reports them.
fn check_page_indices(file: &Content, metadata: &ParquetMetaData) -> Result<()> {
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    let ranges = columns.filter_map(|column| {
        let start = u64::try_from(column.offset_index_offset()?).ok()?;
        Some(start..start.checked_add(u64::try_from(column.offset_index_length()?).ok()?)?)
    });
    let ranges: Vec<_> = ranges.filter(|range| range.end <= file.len()).collect();
    let (Some(start), Some(end)) = (ranges.iter().map(|r| r.start).min(), ranges.iter().map(|r| r.end).max()) else {
        return Ok(());
    };
    let total = ranges.iter().fold(0u64, |total, range| total.saturating_add(range.end - range.start));
    if total > file.len() {
        let text = format!("page indices of {total} bytes together, in a file of {}", file.len());
        return Err(Error::data(text).offset(start));
    }
    // Page indices are contiguous in most files. Otherwise, the decoder also reads their whole range at once.
    let bytes = file.read(start..end)?;
    for range in ranges {
        let index = &bytes.as_bytes()[(range.start - start) as usize..(range.end - start) as usize];
        thrift::check(index, OFFSET_INDEX).map_err(|e| Error::data(format!("page index: {e}")).offset(range.start))?;
    }
    Ok(())
}
