use proptest::prelude::*;

use super::*;
use crate::dataset::map::RandomAccess;

fn write(path: &std::path::Path, records: &[Vec<u8>], options: ArrayRecordWriterOptions) {
    let mut writer = options.create(path).unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    assert_eq!(writer.len(), records.len() as u64);
    writer.finish().unwrap();
}

fn compression() -> impl Strategy<Value = Compression> {
    prop_oneof![
        Just(Compression::None),
        (1..6).prop_map(Compression::Zstd),
        (0..6u32).prop_map(Compression::Brotli),
        Just(Compression::Snappy)
    ]
}

/// Generates a record: mostly short, some longer than one block, some longer than several blocks.
fn record() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![4 => 0..100usize, 2 => 0..5000usize, 1 => 60_000..70_000usize, 1 => 130_000..200_000usize];
    (len, any::<u8>(), any::<bool>()).prop_map(|(len, first, even)| {
        let byte = |i: usize| if even { first } else { (i.wrapping_mul(0x9e37_79b9) >> 13) as u8 ^ first };
        (0..len).map(byte).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_written_is_read(
        records in prop::collection::vec(record(), 0..40),
        group_size in 1..12u64,
        compression in compression(),
        seed: u64,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.array_record");
        write(&path, &records, ArrayRecordWriter::options().group_size(group_size).compression(compression));
        // The cache is tiny, to be filled and emptied during the test.
        let source = ArrayRecord::options().cache_bytes((seed % 100_000) as usize).open(&path).unwrap();
        prop_assert_eq!(source.len(), records.len() as u64);
        prop_assert!(source.read(source.len()).is_err());
        let mut indices: Vec<u64> = (0..source.len()).chain(0..source.len() / 2).collect();
        indices.sort_by_key(|i| (i + 1).wrapping_mul(seed | 1));
        for &i in &indices {
            prop_assert!(source.read(i).unwrap().as_bytes() == records[i as usize], "record {}", i);
        }
        let together = source.read_many(&indices).dense().unwrap();
        for (record, &i) in together.iter().zip(&indices) {
            prop_assert!(record.as_bytes() == records[i as usize], "record {} among many", i);
        }
    }
}

fn ten(dir: &Path, compression: Compression) -> (std::path::PathBuf, Vec<u8>) {
    let path = dir.join("ten.array_record");
    let records: Vec<Vec<u8>> = (0..10).map(|i| format!("record number {i}").into_bytes()).collect();
    write(&path, &records, ArrayRecordWriter::options().group_size(2).compression(compression));
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

fn open(bytes: &[u8]) -> Result<ArrayRecord> {
    ArrayRecord::options().open_contents(vec![("x.array_record".into(), Buffer::copy_from(bytes).into())])
}

#[test]
fn records_that_are_not_compressed_are_views_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes) = ten(dir.path(), Compression::None);
    let source = open(&bytes).unwrap();
    let mapped = source.0.files()[0].content.here().unwrap().as_ptr_range();
    for i in 0..10 {
        assert!(mapped.contains(&source.read(i).unwrap().as_bytes().as_ptr()), "record {i}");
    }
}

#[test]
fn damage_of_a_chunk_costs_its_records_and_says_where() {
    let dir = tempfile::tempdir().unwrap();
    for compression in [Compression::None, Compression::Zstd(3), Compression::Brotli(5), Compression::Snappy] {
        let (_, mut bytes) = ten(dir.path(), compression);
        let place = open(&bytes).unwrap().0.files()[0].index.chunks.find(4).unwrap();
        bytes[place.begin as usize + 45] ^= 4;
        let source = open(&bytes).unwrap();
        let read = |i| source.read(i).map_err(|e| e.to_string());
        assert!((0..10).filter(|i| ![4, 5].contains(i)).all(|i| read(i).is_ok()));
        // Repeated reads fail too: a damaged chunk is not marked as checked.
        for i in [5, 4, 5] {
            let want = format!("x.array_record: record {i}: byte {}: the hash of the chunk is", place.begin);
            assert!(read(i).unwrap_err().starts_with(&want), "{:?}", read(i));
        }
        let many = source.read_many(&[9, 4, 0]).into_iter().map(|slot| slot.is_ok()).collect::<Vec<_>>();
        assert_eq!(many, [true, false, true]);
    }
}

/// Damages each single byte: reading neither panics nor returns a different record.
#[test]
fn no_flipped_byte_changes_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let (_, good) = ten(dir.path(), Compression::Zstd(3));
    let whole = open(&good).unwrap();
    let end = good.len() - good[..65_536].iter().rev().take_while(|&&b| b == 0).count();
    for at in (0..800).chain(65_536..65_536 + 200).filter(|&at| at < end) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        let Ok(source) = open(&bytes) else { continue };
        for i in 0..source.len() {
            assert!(
                source.read(i).is_err() || source.read(i).unwrap() == whole.read(i).unwrap(),
                "byte {at}, record {i}"
            );
        }
    }
}

#[test]
fn a_file_that_is_cut_or_another_says_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes) = ten(dir.path(), Compression::None);
    let message = |bytes: &[u8]| open(bytes).unwrap_err().to_string();
    assert_eq!(
        message(&[]),
        "x.array_record: byte 0: 0 bytes, where an ArrayRecord has a multiple of 65536 and at least 131072"
    );
    assert!(message(&bytes[..bytes.len() - 1]).contains("byte 131071: 131071 bytes"));
    let mut other = bytes.clone();
    other[65_536..].fill(0);
    assert!(message(&other).contains("byte 65536: the hash of the chunk header is"), "{}", message(&other));
}

fn encoded(records: &[Vec<u8>], options: ArrayRecordWriterOptions) -> Vec<u8> {
    let mut writer = ArrayRecordWriter::new(Vec::new(), options).unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    writer.finish().unwrap()
}

#[test]
fn padded_chunks_begin_at_blocks() {
    let records: Vec<Vec<u8>> = (0..7).map(|i| vec![i; 30_000 * usize::from(i % 3)]).collect();
    let options = ArrayRecordWriter::options().group_size(2).compression(Compression::None);
    let bytes = encoded(&records, options.pad_to_block_boundary(true));
    let source = open(&bytes).unwrap();
    assert_eq!(all(&source), records);
    // The first chunk follows the signature.
    let begins: Vec<u64> =
        (0..4).map(|chunk| source.0.files()[0].index.chunks.find(2 * chunk).unwrap().begin).collect();
    assert_eq!((begins[0], begins[1..].iter().all(|begin| begin.is_multiple_of(65_536))), (64, true), "{begins:?}");
    assert_eq!(all(&recover(&bytes[..bytes.len() - 65_536]).unwrap()), records);
}

/// Another Riegeli reader finds these records, followed by the records of the index.
#[cfg(feature = "riegeli")]
#[test]
fn another_reader_reads_what_is_written() {
    let some: Vec<Vec<u8>> = (0..3000u32).map(|i| vec![i as u8; (i * 37 % 2000) as usize]).collect();
    let options = ArrayRecordWriter::options;
    for options in [
        options(),
        options().group_size(7),
        options().group_size(64).compression(Compression::None),
        options().group_size(5).pad_to_block_boundary(true),
    ] {
        for records in [&some[..0], &some[..1], &some] {
            let file = std::io::Cursor::new(encoded(records, options));
            let mut reader = riegeli::RecordReader::new(file, riegeli::ReaderOptions::new()).unwrap();
            for record in records {
                assert!(reader.read_record().unwrap().as_ref() == Some(record));
            }
        }
    }
}

fn recover(bytes: &[u8]) -> Result<ArrayRecord> {
    let contents = vec![("x.array_record".into(), Buffer::copy_from(bytes).into())];
    ArrayRecord::options().recover(true).open_contents(contents)
}

fn all(source: &ArrayRecord) -> Vec<Vec<u8>> {
    (0..source.len()).map(|i| source.read(i).unwrap().as_bytes().to_vec()).collect()
}

fn what_was_lost(source: &ArrayRecord) -> Recovery {
    source.recovered().next().unwrap().1
}

#[test]
fn a_cut_file_is_read_as_far_as_it_goes_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes) = ten(dir.path(), Compression::Zstd(3));
    let whole = open(&bytes).unwrap();
    let chunks: Vec<_> = (0..5).map(|chunk| whole.0.files()[0].index.chunks.find(2 * chunk).unwrap()).collect();
    for cut in [64, 65, chunks[0].limit - 1, chunks[0].limit, chunks[3].begin + 41, chunks[4].limit, 65_535, 65_536] {
        let bytes = &bytes[..cut as usize];
        assert!(open(bytes).unwrap_err().help_text().unwrap().contains("`recover`"));
        let source = recover(bytes).unwrap();
        let good = chunks.iter().filter(|chunk| chunk.limit <= cut).count() as u64;
        assert_eq!(all(&source), all(&whole)[..2 * good as usize], "cut at {cut}");
        let lost = what_was_lost(&source);
        assert_eq!((lost.records, lost.chunks), (2 * good, good));
        assert_eq!(lost.lost_bytes, if good < 5 { cut - chunks[good as usize].begin } else { 0 }, "cut at {cut}");
    }
    let nothing_lost = recover(&bytes).unwrap();
    assert!(nothing_lost.recovered().next().is_none());
    assert_eq!(nothing_lost.facts().identity, whole.facts().identity);
    let error = recover(&[0; 100]).unwrap_err().to_string();
    assert!(error.contains("x.array_record: byte 0: the hash of the chunk header is"), "{error}");
}

#[test]
fn what_is_damaged_besides_is_passed_over_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.array_record");
    let records: Vec<Vec<u8>> = (0..200).map(|i| vec![i; 1000]).collect();
    write(&path, &records, ArrayRecordWriter::options().group_size(4).compression(Compression::None));
    let mut bytes = std::fs::read(&path).unwrap();
    let source = open(&bytes).unwrap();
    let index = &source.0.files()[0].index.chunks;
    let (first, second) = (index.find(8).unwrap(), index.find(40).unwrap());
    let end = index.find(196).unwrap().limit as usize;
    let interrupted = (0..200).step_by(4).find(|&i| index.find(i).unwrap().limit > 65_536).unwrap();
    let known = interrupted + if index.find(interrupted).unwrap().begin == 65_536 { 0 } else { 4 };
    // Damages the data of the chunk of records 8 to 11, and the header of the chunk of records 40 to 43. A damaged
    // header loses all chunks up to the next block.
    bytes[first.begin as usize + 50] ^= 1;
    bytes[second.begin as usize + 3] ^= 1;
    let source = recover(&bytes[..end]).unwrap();
    let found: Vec<u64> = all(&source).iter().map(|record| record[0].into()).collect();
    assert_eq!(found, (0..8).chain(12..40).chain(known..200).collect::<Vec<_>>());
    let lost = what_was_lost(&source);
    assert_eq!((lost.records, lost.lost_chunks, lost.lost_records), (found.len() as u64, 2, 4));
    assert_eq!(lost.lost_bytes, first.limit - first.begin + index.find(known).unwrap().begin - second.begin);
    assert!(lost.to_string().contains("2 chunks or more of 4 records or more were lost"), "{lost}");
    // With the footer, all records keep their numbers.
    let source = recover(&bytes[..bytes.len() - 65_536]).unwrap();
    assert_eq!((source.len(), what_was_lost(&source).records), (200, 200));
    assert!((0..200).filter(|&i| source.read(i).is_err()).eq((8..12).chain(40..44)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn what_is_recovered_is_what_was_whole(
        records in prop::collection::vec(record(), 1..40),
        group_size in 1..6u64,
        compression in compression(),
        cut: u64,
        flip in prop::option::of(any::<u64>()),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.array_record");
        write(&path, &records, ArrayRecordWriter::options().group_size(group_size).compression(compression));
        let mut bytes = std::fs::read(&path).unwrap();
        let whole = open(&bytes).unwrap();
        bytes.truncate(64 + (cut % (bytes.len() as u64 - 64)) as usize);
        if let Some(flip) = flip.filter(|_| bytes.len() > 64) {
            let at = 64 + flip as usize % (bytes.len() - 64);
            bytes[at] ^= 4;
        }
        let source = recover(&bytes).unwrap();
        let found: Vec<Vec<u8>> = (0..source.len()).filter_map(|i| Some(source.read(i).ok()?.as_bytes().to_vec())).collect();
        // The recovered records are a subsequence of the written records.
        let mut rest = records.iter();
        prop_assert!(found.iter().all(|record| rest.any(|other| other == record)));
        if flip.is_none() {
            let ends = (0..whole.len()).filter(|&i| whole.0.files()[0].index.chunks.find(i).unwrap().limit <= bytes.len() as u64);
            prop_assert!(found.len() >= ends.count());
        }
    }
}
