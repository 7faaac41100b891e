//! The parsers of files, on bytes in memory: targets of [`fuzzing`](crate::fuzzing).
//!
//! Each takes any bytes. None may panic, hang or take much more memory than it is given; some hold the parser against a
//! second way to the same answer.

mod plain;
#[cfg(any(feature = "mds", feature = "webdataset"))]
mod shards;

#[cfg(feature = "bagz")]
pub(crate) use self::plain::bagz;
#[cfg(feature = "csv")]
pub(crate) use self::plain::csv;
pub(crate) use self::plain::megatron;
#[cfg(feature = "safetensors")]
pub(crate) use self::plain::safetensors;
#[cfg(feature = "mds")]
pub(crate) use self::shards::mds;
#[cfg(feature = "webdataset")]
pub(crate) use self::shards::webdataset;
use super::index::LineIndex;
use super::index_cache::{FolderIndex, decode, entry};
use super::inflate::{Bounds, LineReader};
use super::json::{RepeatedNames, Wanted, record};
use super::npz::Npz;
use super::tokens::{TokenLayout, TokenType, bin_layout};
use crate::element::{Buffer, Name};

/// A line of JSON: whatever serde_json refuses is refused, and one column is what it is among all.
pub(crate) fn jsonl(data: &[u8]) {
    let Ok(line) = std::str::from_utf8(data) else { return };
    let all = record(line, &Wanted::All, RepeatedNames::Last);
    if let Ok((element, _)) = &all {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "read {line:?}");
        for (name, value) in element.iter().take(4) {
            let one = record(line, &Wanted::Columns(vec![Name::new(name)]), RepeatedNames::Last);
            let (one, _) = one.unwrap_or_else(|e| panic!("{e:?} in {line:?}"));
            assert!(format!("{:?}", one.get(name)) == format!("{:?}", Some(value)), "{line:?}");
        }
    }
}

/// The lines of a text, and a cache file that claims to be its index.
pub(crate) fn line_index(data: &[u8]) {
    for keep_blank in [false, true] {
        let index = LineIndex::build(data, keep_blank);
        let lines: Vec<&[u8]> =
            (0..index.len()).map(|i| index.line(i, data).expect("a line that was found").1).collect();
        if keep_blank {
            let text = data.strip_prefix(b"\xef\xbb\xbf").filter(|rest| !rest.is_empty()).unwrap_or(data);
            let naive = text.split_inclusive(|&b| b == b'\n').map(|line| {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                line.strip_suffix(b"\r").unwrap_or(line)
            });
            assert!(naive.eq(lines));
        }
    }
    let file = Buffer::copy_from(data);
    let of_one = entry(data).and_then(|entry| decode(&file, &entry.key));
    let of_many = FolderIndex::decode(file).into_iter().flat_map(|index| index.all());
    for index in of_one.into_iter().chain(of_many).map(LineIndex) {
        for i in 0..index.len().min(1000) {
            index.line(i, data);
        }
    }
}

/// A `.npy` file.
pub(crate) fn npy(data: &[u8]) {
    if let Ok(array) = super::npy::decode(Buffer::copy_from(data)) {
        assert!(array.bytes().len() <= data.len());
    }
}

/// A `.npz` file.
pub(crate) fn npz(data: &[u8]) {
    if let Ok(npz) = Npz::of("x.npz".into(), Buffer::copy_from(data)) {
        npz.names().take(8).for_each(|name| drop(npz.array(name)));
    }
}

/// A `.bin` file of token ids.
pub(crate) fn tokens(data: &[u8]) {
    for layout in
        [TokenLayout::Detect, TokenLayout::LlmC, TokenLayout::Bare(TokenType::U16), TokenLayout::Bare(TokenType::U32)]
    {
        if let Ok((start, _)) = bin_layout(data, layout) {
            assert!(start <= data.len());
        }
    }
}

/// A `.gz`, `.zst`, `.lz4` or plain text: lines, and the same lines again from the middle.
pub(crate) fn stream(data: &[u8]) {
    let bounds = Bounds { line_bytes: 1 << 16, window_log: None };
    let open = |offset, lines| LineReader::open("x".as_ref(), &Buffer::copy_from(data).into(), bounds, offset, lines);
    let read = |reader: &mut LineReader| {
        // A small file can hold a very long text.
        let mut lines = Vec::new();
        while lines.len() < 1000 {
            match reader.next() {
                Ok(Some(line)) => lines.push(line.bytes.to_vec()),
                _ => break,
            }
        }
        lines
    };
    let Ok(mut reader) = open(0, 0) else { return };
    if !matches!(reader.next(), Ok(Some(_))) {
        return;
    }
    let (offset, lines) = reader.position();
    let rest = read(&mut reader);
    let mut again = open(offset, lines).expect("a place that was reached");
    assert_eq!(read(&mut again), rest);
}

/// A Parquet file.
#[cfg(feature = "parquet")]
pub(crate) fn parquet(data: &[u8]) {
    use crate::dataset::map::RandomAccess;
    let contents = vec![("x.parquet".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = super::ParquetOptions::default().open_contents(contents) {
        let len = source.len();
        [0, 1, len / 2, len.saturating_sub(1)].into_iter().for_each(|row| drop(source.read(row)));
    }
}

/// An Arrow file or stream.
#[cfg(feature = "arrow")]
pub(crate) fn arrow(data: &[u8]) {
    use crate::dataset::map::RandomAccess;
    let contents = vec![("x.arrow".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = super::ArrowOptions::default().open_contents(contents) {
        let len = source.len();
        [0, 1, len / 2, len.saturating_sub(1)].into_iter().for_each(|row| drop(source.read(row)));
    }
}

/// An ArrayRecord file. Hashes are not checked here, or damage would never get behind them.
#[cfg(feature = "array_record")]
pub(crate) fn array_record(data: &[u8]) {
    use crate::dataset::map::RandomAccess;
    let contents = vec![("x.array_record".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = super::ArrayRecordOptions::default().open_contents(contents) {
        let len = source.len();
        [0, 1, len / 2, len.saturating_sub(1)].into_iter().for_each(|record| drop(source.read(record)));
    }
}

/// An ArrayRecord file without its index: whatever is recovered is read, or refused as damaged.
#[cfg(feature = "array_record")]
pub(crate) fn array_record_recovery(data: &[u8]) {
    use crate::dataset::map::RandomAccess;
    let contents = vec![("x.array_record".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = super::ArrayRecordOptions::default().recover(true).open_contents(contents) {
        let found: u64 = source.recovered().map(|(_, recovery)| recovery.records).sum();
        let lost: u64 = source.recovered().map(|(_, recovery)| recovery.lost_bytes).sum();
        assert!(lost <= data.len() as u64 && (found == 0 || found == source.len()));
        (0..source.len().min(100)).for_each(|record| drop(source.read(record)));
    }
}

/// A TFRecord file, compressed or not: whatever is read of it is written and read again as the same. Checksums are not
/// checked here, either.
#[cfg(feature = "tf_record")]
pub(crate) fn tf_record(data: &[u8]) {
    use crate::dataset::{DatasetIterator, IterDataset};
    let (mut cx, runtime) = (crate::Cx::default(), crate::exec::Runtime::inline());
    let open = |file: &[u8]| super::TfRecordStream::of(vec![("x.tfrecord".into(), Buffer::copy_from(file).into())]);
    let Ok(Ok(mut records)) = open(data).map(|stream| stream.iter(&runtime)) else { return };
    // A small file can hold very long records.
    let (mut read, mut bytes) = (Vec::new(), 0);
    while read.len() < 1000 && bytes < 16 << 20 {
        let Ok(Some(record)) = records.next(&mut cx) else { break };
        bytes += record.len();
        read.push(record);
    }
    let mut writer = super::TfRecordWriter::new(Vec::new(), super::TfRecordWriterOptions::default()).expect("a writer");
    read.iter().for_each(|record| writer.write(record.as_bytes()).expect("room in memory"));
    let written = open(&writer.finish().expect("room in memory")).expect("what was written");
    let mut again = written.iter(&runtime).expect("what was written");
    for record in read {
        assert!(again.next(&mut cx).expect("what was written").is_some_and(|again| again == record));
    }
    assert!(again.next(&mut cx).expect("its end").is_none());
}

/// A record that is to be an example: whatever is read of it is written and read again as the same.
pub(crate) fn example(data: &[u8]) {
    use std::collections::BTreeSet;

    use super::{ExampleParser, FeatureSpec, FeatureType, encode_example, encode_sequence_example};
    let record = Buffer::copy_from(data);
    if let Ok(element) = ExampleParser::inferred().parse(&record) {
        let again = Buffer::from_vec(encode_example(&element).expect("what an example held"));
        let again = ExampleParser::inferred().parse(&again).expect("what was written");
        // As text: a float that is no number equals nothing.
        assert_eq!(format!("{again:?}"), format!("{element:?}"));
    }
    let spec = |shape: &[usize]| FeatureSpec::fixed(FeatureType::Int64, shape);
    let features =
        || [("a", FeatureSpec::variable(FeatureType::Str)), ("b", spec(&[2])), ("c", spec(&[0, 3]).allow_missing())];
    let sequences = ExampleParser::sequences([("d", FeatureSpec::variable(FeatureType::Float32))], features());
    drop(sequences.expect("a declaration").parse(&record));
    if let Ok(element) = ExampleParser::inferred_sequences().parse(&record) {
        // Which fields are sequences is not to be seen of an element: a list of strings may be either.
        let lists = element.iter().filter(|(_, value)| matches!(value, crate::Value::List(_))).map(|(name, _)| name);
        let lists: Vec<&str> = lists.collect();
        let again = Buffer::from_vec(encode_sequence_example(&element, &lists).expect("what a sequence held"));
        let again = ExampleParser::inferred_sequences().parse(&again).expect("what was written");
        let sorted =
            |element: &crate::Element| element.iter().map(|field| format!("{field:?}")).collect::<BTreeSet<_>>();
        assert_eq!(sorted(&again), sorted(&element));
    }
    drop(ExampleParser::new(features().into_iter().take(2)).expect("a declaration").parse(&record));
}
