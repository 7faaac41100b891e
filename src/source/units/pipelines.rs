//! Chunked formats in random order, with less memory than the data.

use std::path::Path;

use crate::dataset::map::{Decoded, RandomAccess, Source};
use crate::element::Stack;
use crate::sink::{Compression, Sink, SinkFormat, SinkOptions};
use crate::source::{ArrayRecord, ArrayRecordWriter, Arrow, Mds, Parquet};
use crate::{Array, Element, Executor, Load, MapDatasetExt, Stage};

const RECORDS: u64 = 16_384;
/// Number of records in a unit.
const TOGETHER: u64 = 64;
/// Number of blocks that are shuffled together. Two windows fit in the budget.
const WINDOW: usize = 12;
/// Budget in bytes: about a third of the records, and more than the threads read at a time.
const ROOM: usize = 512 << 10;

fn element(i: u64) -> Element {
    // Numbers that are compressible.
    let numbers = (0..8u64).map(|n| i * 8 + n).collect();
    Element::new().with("i", Array::scalar(i)).with("x", Array::from_vec(numbers))
}

fn write(options: SinkOptions, folder: &Path) {
    let mut sink = options.open(folder).unwrap();
    (0..RECORDS).for_each(|i| sink.write(element(i)).unwrap());
    sink.finish().unwrap();
}

/// Returns the counts of decodings of the only source.
fn decoded(notes: &[(String, u64)]) -> Decoded {
    Decoded::noted(notes).next().unwrap().1
}

/// Checks that every executor yields the records in shuffled order, and that a decoding serves several records. Returns
/// the records.
fn shuffled<S: RandomAccess<Record: PartialEq + Send> + 'static>(name: &str, open: impl Fn() -> S) -> Vec<S::Record> {
    let order = MapDatasetExt::collect(&crate::dataset::map::Range::new(0, RECORDS as i64).shuffle(1)).unwrap();
    let twin = open();
    let expected: Vec<_> = order.iter().map(|&index| twin.read(index as u64).unwrap()).collect();
    let alone = twin.take_decoded().unwrap();
    assert!(2 * alone.units > RECORDS, "{name}: one by one, {alone:?}");
    for executor in [Executor::Inline, Executor::Threads(3)] {
        let mut loader = Source::new(open()).shuffle(1).to_iter().loader().executor(executor).build().unwrap();
        let read: Vec<_> = loader.by_ref().collect::<Result<_, _>>().unwrap();
        assert!(read == expected, "{name}, {executor}");
        let decoded = decoded(&loader.report().notes);
        // A third of 64 rows per decoding, minus rows that are announced late: at least 4.
        assert!(4 * decoded.units < RECORDS, "{name}, {executor}: {decoded:?}");
    }
    expected
}

/// Checks that each unit is decoded once if blocks are shuffled.
fn in_blocks<S: RandomAccess<Record: PartialEq + Send> + 'static>(name: &str, open: impl Fn() -> S) {
    let all = {
        let twin = open();
        move |order: &[u64]| order.iter().map(|&at| twin.read(at).unwrap()).collect::<Vec<_>>()
    };
    let blocks = open().blocks().unwrap();
    assert_eq!((blocks.count() as u64, blocks.elements()), (RECORDS / TOGETHER, RECORDS), "{name}");
    let order = crate::dataset::map::Range::new(0, RECORDS as i64).block_shuffle(WINDOW, 1).block_size(TOGETHER);
    let expected = all(&order.collect().unwrap().into_iter().map(|at| at as u64).collect::<Vec<_>>());
    for executor in [Executor::Inline, Executor::Threads(3)] {
        let dataset = Source::new(open()).block_shuffle(WINDOW, 1);
        let mut loader = dataset.to_iter().loader().executor(executor).build().unwrap();
        let read: Vec<_> = loader.by_ref().collect::<Result<_, _>>().unwrap();
        assert!(read == expected, "{name}, {executor}");
        let decoded = decoded(&loader.report().notes);
        assert_eq!(decoded.units, RECORDS / TOGETHER, "{name}, {executor}");
    }
    let refused = Source::new(open()).block_shuffle(1000, 1).node().describe.check().unwrap_err();
    let help = refused.help_text().unwrap();
    assert!(help.ends_with("or less, or raise the source's cache_bytes"), "{name}: {help}");
}

/// Checks batches that are made from columns.
fn batched<S: RandomAccess<Record = Element> + 'static>(name: &str, open: impl Fn() -> S, expected: &[Element]) {
    for executor in [Executor::Inline, Executor::Threads(3)] {
        let batched = Source::new(open()).shuffle(1).to_iter().batch(32);
        let mut loader = batched.loader().executor(executor).build().unwrap();
        let batches: Vec<_> = loader.by_ref().collect::<Result<_, _>>().unwrap();
        let stacked: Vec<_> = expected.chunks(32).map(|some| Stack::stack(some.to_vec()).unwrap()).collect();
        assert!(batches == stacked, "{name}, {executor}, in batches");
        let decoded = decoded(&loader.report().notes);
        assert!(4 * decoded.units < RECORDS, "{name}, {executor}, in batches: {decoded:?}");
    }
}

#[test]
fn parquet_in_random_order_decodes_a_row_group_for_many_rows() {
    let temp = tempfile::tempdir().unwrap();
    write(Sink::options(SinkFormat::Parquet).group(TOGETHER), temp.path());
    let open = || Parquet::options().cache_bytes(ROOM).open(temp.path()).unwrap();
    batched("parquet", open, &shuffled("parquet", open));
    in_blocks("parquet", open);
    let shuffled = open().if_shuffled().unwrap();
    assert_eq!((shuffled.units, shuffled.records, shuffled.budget), (RECORDS / TOGETHER, TOGETHER, ROOM as u64));
    // A decoding serves many of the 64 rows in a unit.
    assert!((2.0..8.0).contains(&shuffled.times), "{shuffled:?}");
    assert_eq!(Parquet::open(temp.path()).unwrap().if_shuffled(), None);
}

#[test]
fn arrow_in_random_order_decodes_a_record_batch_for_many_rows() {
    let temp = tempfile::tempdir().unwrap();
    write(Sink::options(SinkFormat::Arrow).group(TOGETHER).compression(Compression::Lz4), temp.path());
    let open = || Arrow::options().cache_bytes(ROOM).open(temp.path()).unwrap();
    batched("arrow", open, &shuffled("arrow", open));
    in_blocks("arrow", open);
}

#[test]
fn mds_in_random_order_decompresses_a_shard_for_many_samples() {
    let temp = tempfile::tempdir().unwrap();
    write(Sink::options(SinkFormat::Mds).shard_records(TOGETHER).compression(Compression::Zstd(1)), temp.path());
    let open = || Mds::options().cache_bytes(ROOM).open(temp.path()).unwrap();
    shuffled("mds", open);
    in_blocks("mds", open);
}

#[test]
fn array_record_in_random_order_decodes_a_chunk_for_many_records() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a.array_record");
    let options = ArrayRecordWriter::options().group_size(TOGETHER).compression(crate::source::Compression::Zstd(1));
    let mut writer = options.create(&path).unwrap();
    for i in 0..RECORDS {
        writer.write(element(i).array("x").unwrap().bytes()).unwrap();
    }
    writer.finish().unwrap();
    let open = || ArrayRecord::options().cache_bytes(ROOM).open(&path).unwrap();
    shuffled("array_record", open);
    in_blocks("array_record", open);
}
