//! Fuzz targets.

use super::ArrayRecordOptions;
use crate::dataset::map::RandomAccess;
use crate::source::fuzzing::{Target, contents, opened};

pub(in crate::source) const TARGETS: &[Target] =
    &[("array_record", array_record), ("array_record_recovery", array_record_recovery)];

/// Opens and reads an ArrayRecord file. Hashes are not checked, because random input would never pass a hash check.
fn array_record(data: &[u8]) {
    opened(ArrayRecordOptions::default().open_contents(contents("x.array_record", data)));
}

/// Recovers an ArrayRecord file without its index: each recovered record is read, or refused as damaged.
fn array_record_recovery(data: &[u8]) {
    let options = ArrayRecordOptions::default().recover(true);
    if let Ok(source) = options.open_contents(contents("x.array_record", data)) {
        let found: u64 = source.recovered().map(|(_, recovery)| recovery.records).sum();
        let lost: u64 = source.recovered().map(|(_, recovery)| recovery.lost_bytes).sum();
        assert!(lost <= data.len() as u64 && (found == 0 || found == source.len()));
        (0..source.len().min(100)).for_each(|record| drop(source.read(record)));
    }
}
