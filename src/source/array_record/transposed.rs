//! Transposed chunks: messages taken apart field by field, which the crate `riegeli` puts together again.

use std::io::Cursor;

use riegeli::{ReaderOptions, RecordReader, RiegeliError};

use super::super::contained::contained;
use super::blocks::Blocks;
use super::chunk::{Chunk, SIGNATURE, TRANSPOSED};
use crate::error::{Error, Result};

/// The records of a chunk whose hashes are right: where each ends, and all of them one behind the other.
///
/// The crate reads files: it is given one of nothing but this chunk.
pub(super) fn decode(chunk: &Chunk<'_>) -> Result<(Vec<u64>, Vec<u8>)> {
    let mut file = Blocks::new(Vec::new());
    let parts: Vec<&[u8]> = chunk.span.pieces(chunk.data()).collect();
    let written = file.chunk(SIGNATURE, 0, 0, &[]);
    let written = written.and_then(|_| file.chunk(TRANSPOSED, chunk.records, chunk.decoded, &parts));
    let file = written.and_then(|_| file.finish()).map_err(|e| chunk.fault(e.to_string()))?;
    let fault = |e: RiegeliError| chunk.fault(format!("the transposed chunk cannot be decoded: {e}"));
    contained(|| {
        let mut reader = RecordReader::new(Cursor::new(file), ReaderOptions::new()).map_err(fault)?;
        let (mut ends, mut values) = (Vec::new(), Vec::new());
        while let Some(record) = reader.read_record().map_err(fault)? {
            values.extend_from_slice(&record);
            ends.push(values.len() as u64);
        }
        if (ends.len() as u64, values.len() as u64) != (chunk.records, chunk.decoded) {
            let (records, bytes) = (ends.len(), values.len());
            let text =
                format!("{records} records of {bytes} bytes, the header says {} of {}", chunk.records, chunk.decoded);
            return Err(chunk.fault(text));
        }
        Ok((ends, values))
    })
    .map_err(|e: Error| e.offset(chunk.begin))
}
