//! Notes of pipelines.
#![cfg(feature = "array_record")]

use super::*;
use crate::MapDatasetExt;
use crate::dataset::map::{Range, Source};
use crate::source::{ArrayRecord, ArrayRecordWriter, Compression};

#[test]
fn a_source_that_random_order_makes_dear_is_noted_where_it_is_shuffled() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.array_record");
    let mut writer =
        ArrayRecordWriter::options().group_size(100).compression(Compression::Zstd(1)).create(&path).unwrap();
    (0..1000u64).for_each(|i| writer.write(&i.to_le_bytes().repeat(100)).unwrap());
    writer.finish().unwrap();
    let open = |bytes: usize| Source::new(ArrayRecord::options().cache_bytes(bytes).open(&path).unwrap());
    let note = "array_record (stage 1): 10 units of about 100 records are 781 KiB decoded, of which 9.77 KiB are kept: \
                in random order each is decoded about 100 times an epoch, by worker processes more often; ";
    let numbers = || Range::new(0, 1000).shuffle(2);
    let shuffled = Range::new(0, 1000).zip(open(10_000)).shuffle(1).zip(numbers());
    assert_eq!(orders(&shuffled), [format!("{note}{}", remedy())]);
    assert!(orders(&Range::new(0, 1000).zip(open(10_000)).zip(numbers())).is_empty());
    assert!(orders(&open(1 << 20).shuffle(1)).is_empty());
}
