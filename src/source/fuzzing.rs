//! Fuzz targets for the parsers of files, on bytes in memory: see [`fuzzing`](crate::fuzzing). The targets of optional
//! formats are in the folders of these formats.
//!
//! Each target accepts any bytes. A target must not panic, hang, or allocate much more memory than its input. Some
//! targets compare the parser with a second implementation.

use super::index::LineIndex;
use super::index_cache::{FolderIndex, decode, entry};
use super::inflate::{Bounds, LineReader};
use super::json::{RepeatedNames, Wanted, record};
use super::npz::Npz;
use super::tokens::{TokenLayout, TokenType, bin_layout};
use crate::dataset::map::RandomAccess;
use crate::element::{Buffer, Name};

/// Creates an entry for each line, if this build has the feature.
macro_rules! targets {
    ($($name:literal $(if $feature:literal)? = $target:path;)*) => {
        /// All parsers of files, by name.
        pub(crate) const TARGETS: &[(&str, fn(&[u8]))] = &[$(
            $(#[cfg(feature = $feature)])?
            ($name, $target),
        )*];
    };
}

targets! {
    "jsonl" = jsonl;
    "line_index" = line_index;
    "npy" = npy;
    "npz" = npz;
    "tokens" = tokens;
    "example" = example;
    "stream" = stream;
    "megatron" = super::megatron::fuzz::megatron;
    "csv" if "csv" = super::csv::fuzz::csv;
    "safetensors" if "safetensors" = super::safetensors::fuzz::safetensors;
    "bagz" if "bagz" = super::bagz::fuzz::bagz;
    "array_record" if "array_record" = super::array_record::fuzz::array_record;
    "array_record_recovery" if "array_record" = super::array_record::fuzz::array_record_recovery;
    "tf_record" if "tf_record" = super::tf_record::fuzz::tf_record;
    "webdataset" if "webdataset" = super::webdataset::fuzz::webdataset;
    "mds" if "mds" = super::mds::fuzz::mds;
    "parquet" if "parquet" = super::parquet::fuzz::parquet;
    "arrow" if "arrow" = super::arrow_ipc::fuzz::arrow;
}

/// Reads the first, second, middle and last record of a source.
pub(super) fn some(source: &impl RandomAccess) {
    let len = source.len();
    [0, 1, len / 2, len.saturating_sub(1)].into_iter().for_each(|record| drop(source.read(record)));
}

/// Parses a line of JSON. Checks that serde_json accepts the line too, and that a column read alone equals the column
/// among all columns.
fn jsonl(data: &[u8]) {
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

/// Indexes the lines of a text. Also decodes the bytes as a cache file of an index.
fn line_index(data: &[u8]) {
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

/// Decodes a `.npy` file.
fn npy(data: &[u8]) {
    if let Ok(array) = super::npy::decode(Buffer::copy_from(data)) {
        assert!(array.bytes().len() <= data.len());
    }
}

/// Decodes a `.npz` file.
fn npz(data: &[u8]) {
    if let Ok(npz) = Npz::of("x.npz".into(), Buffer::copy_from(data)) {
        npz.names().take(8).for_each(|name| drop(npz.array(name)));
    }
}

/// Reads the layout of a `.bin` file of token ids.
fn tokens(data: &[u8]) {
    for layout in
        [TokenLayout::Detect, TokenLayout::LlmC, TokenLayout::Bare(TokenType::U16), TokenLayout::Bare(TokenType::U32)]
    {
        if let Ok((start, _)) = bin_layout(data, layout) {
            assert!(start <= data.len());
        }
    }
}

/// Reads the lines of a `.gz`, `.zst`, `.lz4` or plain text. Then opens it again after the first line, and compares.
fn stream(data: &[u8]) {
    let bounds = Bounds { line_bytes: 1 << 16, window_log: None };
    let open = |offset, lines| LineReader::open("x".as_ref(), &Buffer::copy_from(data).into(), bounds, offset, lines);
    let read = |reader: &mut LineReader| {
        // A small file can contain a very long text.
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

/// Parses a record as an example. Encodes an accepted example, and checks that it parses to an equal element.
fn example(data: &[u8]) {
    use std::collections::BTreeSet;

    use super::{ExampleParser, FeatureSpec, FeatureType, encode_example, encode_sequence_example};
    let record = Buffer::copy_from(data);
    if let Ok(element) = ExampleParser::inferred().parse(&record) {
        let again = Buffer::from_vec(encode_example(&element).expect("what an example held"));
        let again = ExampleParser::inferred().parse(&again).expect("what was written");
        // Compares texts, because a NaN equals nothing.
        assert_eq!(format!("{again:?}"), format!("{element:?}"));
    }
    let spec = |shape: &[usize]| FeatureSpec::fixed(FeatureType::Int64, shape);
    let features =
        || [("a", FeatureSpec::variable(FeatureType::Str)), ("b", spec(&[2])), ("c", spec(&[0, 3]).allow_missing())];
    let sequences = ExampleParser::sequences([("d", FeatureSpec::variable(FeatureType::Float32))], features());
    drop(sequences.expect("a declaration").parse(&record));
    if let Ok(element) = ExampleParser::inferred_sequences().parse(&record) {
        // An element does not show which fields are sequences: a list of strings may be either.
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
