//! Fuzz targets.

use super::ArrayRecordOptions;
use crate::dataset::map::RandomAccess;
use crate::element::Buffer;
use crate::source::fuzzing::some;

/// Opens and reads an ArrayRecord file. Hashes are not checked, because random input would never pass a hash check.
pub(crate) fn array_record(data: &[u8]) {
    let contents = vec![("x.array_record".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = ArrayRecordOptions::default().open_contents(contents) {
        some(&source);
    }
}

/// Recovers an ArrayRecord file without its index: each recovered record is read, or refused as damaged.
pub(crate) fn array_record_recovery(data: &[u8]) {
    let contents = vec![("x.array_record".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = ArrayRecordOptions::default().recover(true).open_contents(contents) {
        let found: u64 = source.recovered().map(|(_, recovery)| recovery.records).sum();
        let lost: u64 = source.recovered().map(|(_, recovery)| recovery.lost_bytes).sum();
        assert!(lost <= data.len() as u64 && (found == 0 || found == source.len()));
        (0..source.len().min(100)).for_each(|record| drop(source.read(record)));
    }
}
