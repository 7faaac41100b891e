//! Fuzz targets.

use super::ArrayRecordOptions;
use crate::dataset::map::RandomAccess;
use crate::element::Buffer;
use crate::source::fuzzing::{Target, some};

pub(in crate::source) const TARGETS: &[Target] =
    &[("array_record", array_record), ("array_record_recovery", array_record_recovery)];

/// Opens and reads an ArrayRecord file. Hashes are not checked, because random input would never pass a hash check.
fn array_record(data: &[u8]) {
    let contents = vec![("x.array_record".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = ArrayRecordOptions::default().open_contents(contents) {
        some(&source);
    }
}

/// Recovers an ArrayRecord file without its index: each recovered record is read, or refused as damaged.
fn array_record_recovery(data: &[u8]) {
    let contents = vec![("x.array_record".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = ArrayRecordOptions::default().recover(true).open_contents(contents) {
        let found: u64 = source.recovered().map(|(_, recovery)| recovery.records).sum();
        let lost: u64 = source.recovered().map(|(_, recovery)| recovery.lost_bytes).sum();
        assert!(lost <= data.len() as u64 && (found == 0 || found == source.len()));
        (0..source.len().min(100)).for_each(|record| drop(source.read(record)));
    }
}
