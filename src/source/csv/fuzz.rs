//! Fuzz target.

use super::Csv;
use crate::dataset::map::RandomAccess;
use crate::dataset::{DatasetIterator, IterDataset};
use crate::source::delimited::Dialect;
use crate::source::fuzzing::{Target, contents};

pub(in crate::source) const TARGETS: &[Target] = &[("csv", csv)];

/// Reads a CSV file. Checks its fields against the `csv` crate, and records of the stream against reads by number.
fn csv(data: &[u8]) {
    let options = Csv::options().header(false).infer_rows(3);
    let Ok(source) = options.open_bytes(data) else { return };
    let Ok(stream) = options.stream_of(contents("a.csv", data)) else { return };
    let (mut cx, Ok(mut stream)) = (crate::Cx::default(), stream.iter(&crate::exec::Runtime::inline())) else { return };
    for record in 0..source.len().min(100) {
        let (one, other) = (source.read(record), stream.next(&mut cx));
        assert_eq!(format!("{:?}", one.ok()), format!("{:?}", other.ok().flatten()), "record {record}");
    }
    let text = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    if !text.contains(&b'\r') {
        as_the_crate_has_it(text);
    }
}

/// Checks that records and fields equal the results of the `csv` crate, except for an unclosed quote.
pub(super) fn as_the_crate_has_it(text: &[u8]) {
    let dialect = Dialect { delimiter: b',', quote: Some(b'"') };
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).terminator(csv::Terminator::Any(b'\n'));
    let mut theirs = builder.from_reader(text).into_byte_records();
    let mut starts = Vec::new();
    dialect.each_record(text, |at| starts.push(at));
    for start in starts {
        let theirs = theirs.next().expect("as many records").expect("bytes are read");
        let ours = dialect.fields(&text[start..]).collect::<Result<Vec<_>, _>>();
        if let Ok(ours) = ours {
            assert!(ours.iter().map(|field| &*field.bytes).eq(&theirs), "{ours:?} {theirs:?}");
        }
    }
    assert!(theirs.next().is_none());
}
