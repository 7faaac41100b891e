//! Fuzz targets for the parsers of files, on bytes in memory: see [`fuzzing`](crate::fuzzing). The targets of formats
//! are in the folders of the formats.
//!
//! Each target accepts any bytes. A target must not panic, hang, or allocate much more memory than its input. Some
//! targets compare the parser with a second implementation.

use super::content::Contents;
use super::formats::TARGETS;
use super::inflate::{Bounds, LineReader};
use crate::dataset::map::RandomAccess;
use crate::element::Buffer;
use crate::error::Result;

/// A target: its name, and a parser of any bytes.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// Targets besides those of formats.
const OTHERS: &[Target] = &[("example", example), ("stream", stream)];

/// All parsers of files, by name.
pub(crate) fn targets() -> impl Iterator<Item = Target> {
    TARGETS.iter().copied().flatten().chain(OTHERS).copied()
}

/// Returns `data` as the only file.
pub(super) fn contents(name: &str, data: &[u8]) -> Contents {
    vec![(name.into(), Buffer::copy_from(data).into())]
}

/// Reads some records of a source that could be opened.
pub(super) fn opened(source: Result<impl RandomAccess>) {
    source.iter().for_each(some);
}

/// Reads the first, second, middle and last record of a source.
pub(super) fn some(source: &impl RandomAccess) {
    let len = source.len();
    [0, 1, len / 2, len.saturating_sub(1)].into_iter().for_each(|record| drop(source.read(record)));
}

/// Reads the lines of a `.gz`, `.zst`, `.lz4` or plain text. Then opens it again after the first line, and compares.
fn stream(data: &[u8]) {
    let bounds = Bounds { line_bytes: 1 << 16, window_log: None };
    let open = |offset, lines| LineReader::open("x".as_ref(), &Buffer::copy_from(data).into(), bounds, offset, lines);
    let read = |reader: &mut LineReader| {
        // A small file can contain a very long text.
        let mut lines = Vec::new();
        while lines.len() < 1000 {
            if let Ok(Some(line)) = reader.next() { lines.push(line.bytes.to_vec()) } else { break }
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
