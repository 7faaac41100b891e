//! Transposed chunks: messages stored field by field, which the crate `riegeli` reassembles.

use std::io::Cursor;

use riegeli::{ReaderOptions, RecordReader, RiegeliError};

use super::super::contained::contained;
use super::blocks::Blocks;
use super::chunk::{Chunk, SIGNATURE, TRANSPOSED};
use crate::error::{Error, Result};

/// Decodes a chunk whose hashes were checked. Returns the end of each record, and the records one after the other.
///
/// The crate reads only files, so it gets a file that holds just this chunk.
pub(super) fn decode(chunk: &Chunk<'_>) -> Result<(Vec<u64>, Vec<u8>)> {
    check_codec(chunk)?;
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

/// Checks that the crate supports the codec: it reads transposed chunks uncompressed or compressed by zstd.
fn check_codec(chunk: &Chunk<'_>) -> Result<()> {
    let data = chunk.data();
    let name = match chunk.span.read(data.start..data.end.min(data.start + 1)).first() {
        Some(b'b') => "brotli",
        Some(b's') => "snappy",
        _ => return Ok(()),
    };
    Err(Error::unsupported(format!("a transposed chunk compressed by {name}"))
        .offset(chunk.begin)
        .help("write the file with zstd, or without the option `transpose`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::source::pieces::Pieces;

    #[test]
    fn a_codec_that_is_not_read_is_no_damage() {
        for (codec, kind, text) in [
            (b'b', ErrorKind::Unsupported, "a transposed chunk compressed by brotli"),
            (b's', ErrorKind::Unsupported, "a transposed chunk compressed by snappy"),
            (b'z', ErrorKind::Data, "the transposed chunk cannot be decoded"),
        ] {
            let mut file = Blocks::new(Vec::new());
            file.chunk(SIGNATURE, 0, 0, &[]).unwrap();
            let begin = file.chunk(TRANSPOSED, 3, 30, &[&[codec, 1, 2, 3]]).unwrap();
            let file = file.finish().unwrap();
            let pieces = Pieces::All(&file);
            let error = decode(&Chunk::at(&pieces, begin, file.len() as u64).unwrap()).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
