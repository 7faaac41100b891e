//! Formats whose bytes lie as they are: rows, tokens, records behind a list of their ends.

use crate::dataset::map::RandomAccess;
#[cfg(feature = "csv")]
use crate::element::Buffer;

/// The first, second, middle and last record of a source.
fn some(source: &impl RandomAccess) {
    let len = source.len();
    [0, 1, len / 2, len.saturating_sub(1)].into_iter().for_each(|record| drop(source.read(record)));
}

/// A Bagz file whose name says, by the first byte, that it is compressed, that it is not, or nothing.
#[cfg(feature = "bagz")]
pub(crate) fn bagz(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let name = ["a.bagz", "a.bag", "a"][usize::from(first % 3)];
    if let Ok(source) = crate::source::Bagz::options().open_bytes(name, file) {
        assert!(source.len() <= file.len() as u64 / 8);
        some(&source);
    }
}

/// A CSV file: its fields are those that the `csv` crate finds, and a stream yields what reading by number does.
#[cfg(feature = "csv")]
pub(crate) fn csv(data: &[u8]) {
    use crate::dataset::{DatasetIterator, IterDataset};
    use crate::source::Csv;
    let options = Csv::options().header(false).infer_rows(3);
    let Ok(source) = options.open_bytes(data) else { return };
    let Ok(stream) = options.stream_of(vec![("a.csv".into(), Buffer::copy_from(data).into())]) else { return };
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

#[cfg(feature = "csv")]
fn as_the_crate_has_it(text: &[u8]) {
    use crate::source::delimited::Dialect;
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

/// A safetensors file, as one record and as rows.
#[cfg(feature = "safetensors")]
pub(crate) fn safetensors(data: &[u8]) {
    for rows in [false, true] {
        if let Ok(source) = crate::source::Safetensors::options().rows(rows).float8_as_u8(true).open_bytes(data) {
            some(&source);
        }
    }
}

/// An index of Megatron's, over a few ids.
pub(crate) fn megatron(data: &[u8]) {
    use crate::source::{Megatron, MegatronUnit};
    for unit in [MegatronUnit::Sequence, MegatronUnit::Document] {
        if let Ok(source) = Megatron::options().unit(unit).open_bytes(data, &[1; 64]) {
            some(&source);
        }
    }
}
