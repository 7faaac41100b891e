//! Shards have the same columns, whatever lies in each of them.

use super::*;
#[cfg(all(feature = "parquet", feature = "arrow"))]
use crate::Value;

/// Formats that have columns of numbers, in this build: those whose arrays are rows of one shape, or the others.
fn columns_of(rows: bool) -> Vec<SinkFormat> {
    let numbers = Schema::new().with("x", "float32");
    let fits = |format: &SinkFormat| {
        let rules = format.facts().ok()?.columns?;
        (rules.check)(&numbers).ok()?;
        Some((rules.rows)(&numbers).unwrap().is_empty() != rows)
    };
    SinkFormat::ALL.iter().copied().filter(|format| fits(format) == Some(true)).collect()
}

fn formats() -> Vec<SinkFormat> {
    columns_of(false)
}

fn number(i: i64) -> Element {
    Element::new().with("x", Array::scalar(i as f64))
}

fn all(options: &SinkOptions, folder: &Path, elements: impl Iterator<Item = Element>) -> crate::Result<SinkReport> {
    let mut sink = options.clone().compression(Compression::None).open(folder)?;
    elements.into_iter().try_for_each(|element| sink.write(element))?;
    sink.finish()
}

fn shards_of(format: SinkFormat, records: u64, threads: usize) -> SinkOptions {
    Sink::options(format).shard_records(records).threads(threads).resume(true)
}

/// A null first, and a column that comes late.
#[cfg(all(feature = "parquet", feature = "arrow"))]
fn sparse(i: i64) -> Element {
    let x = if i < 5 { Value::Null } else { Array::scalar(0.5f64).into() };
    let record = Element::new().with("x", x).with("i", Array::scalar(i));
    if i == 40 { record.with("late", "text") } else { record }
}

#[cfg(all(feature = "parquet", feature = "arrow"))]
#[test]
fn the_first_records_say_what_all_shards_have() {
    for format in [SinkFormat::Parquet, SinkFormat::Arrow, SinkFormat::HuggingFace] {
        let temp = tempfile::tempdir().unwrap();
        for (threads, memory) in [(1, 0), (3, 1 << 30), (2, 500)] {
            let folder = temp.path().join(format!("{format}-{threads}"));
            let options = shards_of(format, 2, threads).memory(memory);
            all(&options, &folder, (0..60).map(sparse)).unwrap();
            let schema = manifest(&folder).schema.unwrap();
            assert_eq!(schema, r#"{"x": "float64", "i": "int64", "late": "text"}"#.parse().unwrap());
            assert_eq!(files(&folder), files(&temp.path().join(format!("{format}-1"))), "{format}");
            for shard in ["00000", "00007"] {
                let ending = if format == SinkFormat::Parquet { "parquet" } else { "arrow" };
                let file = folder.join(format!("shard-{shard}.{ending}"));
                let names = |element: Element| element.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
                let first = match format {
                    SinkFormat::Parquet => crate::source::Parquet::open(&file).unwrap().read(0).unwrap(),
                    _ => crate::source::Arrow::open(&file).unwrap().read(0).unwrap(),
                };
                assert_eq!(names(first), ["x", "i", "late"], "{format}");
            }
        }
    }
}

#[test]
fn a_record_that_does_not_fit_is_told() {
    for (format, threads) in formats().into_iter().flat_map(|format| [(format, 1), (format, 3)]) {
        let temp = tempfile::tempdir().unwrap();
        let wrong = |i| if i == 1503 { Element::new().with("x", Array::scalar(7i64)) } else { number(i) };
        let error = all(&shards_of(format, 100, threads), temp.path(), (0..3000).map(wrong)).unwrap_err();
        let text = format!("{error} {}", error.help_text().unwrap());
        assert_eq!((error.kind(), error.record_number()), (ErrorKind::Data, Some(1503)), "{format}: {text}");
        assert!(text.contains("shard-00015") && text.contains("int64") && text.contains("float64"), "{format}: {text}");
        assert!(
            text.contains("column") && text.contains('x') && text.contains("declare the column"),
            "{format}: {text}"
        );
        // What was written of it is continued with the same columns.
        let done = all(&shards_of(format, 100, threads), temp.path(), {
            let first = manifest(temp.path()).records as i64;
            assert!(first <= 1500);
            (first..2000).map(number)
        });
        assert_eq!(done.unwrap().records, 2000);
    }
}

#[test]
fn first_records_that_disagree_are_told_at_once() {
    for format in formats() {
        let temp = tempfile::tempdir().unwrap();
        let mut sink = shards_of(format, 3, 2).compression(Compression::None).open(temp.path()).unwrap();
        (0..7).for_each(|i| sink.write(number(i)).unwrap());
        let error = sink.write(Element::new().with("x", "seven")).unwrap_err();
        assert_eq!((error.kind(), error.record_number()), (ErrorKind::Data, Some(7)), "{format}");
        assert!(error.message().starts_with("column x: "), "{error}");
        assert!(error.help_text().unwrap().contains("by a schema"));
        assert_eq!(sink.write(number(8)).unwrap_err().kind(), ErrorKind::Cancelled);
        assert!(sink.finish().is_err());
        assert_eq!(files(temp.path()).len(), 1);
    }
}

#[test]
fn a_sink_that_is_left_among_the_first_records_keeps_whole_shards() {
    let mut formats = formats();
    formats.push(SinkFormat::Npy);
    for format in formats {
        let temp = tempfile::tempdir().unwrap();
        let (whole, folder) = (temp.path().join("whole"), temp.path().join("folder"));
        let options = shards_of(format, 50, 2).compression(Compression::None);
        all(&options, &whole, (0..700).map(number)).unwrap();
        // Of no whole shard nothing is settled.
        for (stop, stands) in [(40, 0), (340, 300), (351, 350), (400, 400)] {
            let mut sink = options.clone().open(&folder).unwrap();
            (sink.records() as i64..stop).for_each(|i| sink.write(number(i)).unwrap());
            if stop % 2 == 0 {
                sink.stop().map(drop).unwrap()
            } else {
                drop(sink)
            }
            let manifest = manifest(&folder);
            assert_eq!((manifest.records, manifest.unsettled), (stands, stands > 0), "{format}");
            assert_eq!(files(&folder).keys().filter(|name| name.starts_with("shard-")).count() as u64, stands / 50);
        }
        all(&options, &folder, (400..700).map(number)).unwrap();
        assert_eq!(files(&folder), files(&whole), "{format}");
    }
}

#[test]
fn what_is_declared_is_what_is_written() {
    for format in formats() {
        let temp = tempfile::tempdir().unwrap();
        let (whole, folder) = (temp.path().join("whole"), temp.path().join("folder"));
        let mixed = |i: i64| {
            let x = if i % 2 == 0 { Array::scalar(i) } else { Array::scalar(i as f64 + 0.5) };
            Element::new().with("i", Array::scalar(i)).with("x", x)
        };
        let declared = shards_of(format, 100, 3).schema(Schema::new().with("x", "float32"));
        all(&declared, &whole, (0..1500).map(mixed)).unwrap();
        let words = if format == SinkFormat::Mds { "int" } else { "int64" };
        assert_eq!(manifest(&whole).schema.unwrap(), Schema::new().with("i", words).with("x", "float32"));
        for stop in [1100, 1203] {
            let mut sink = declared.clone().compression(Compression::None).open(&folder).unwrap();
            (sink.records() as i64..stop).for_each(|i| sink.write(mixed(i)).unwrap());
            sink.stop().unwrap();
        }
        let error = shards_of(format, 100, 3).compression(Compression::None).open(&folder).unwrap_err();
        assert!(error.message().contains("begun with schema") && error.kind() == ErrorKind::State, "{error}");
        let first = manifest(&folder).records as i64;
        all(&declared, &folder, (first..1500).map(mixed)).unwrap();
        assert_eq!(files(&folder), files(&whole), "{format}");
        let wrong = shards_of(format, 100, 3).schema(Schema::new().with("x", "number"));
        assert_eq!(wrong.open(&folder).unwrap_err().kind(), ErrorKind::Config);
        let small = shards_of(format, 100, 1).schema(Schema::new().with("i", "uint8"));
        let error = all(&small, &temp.path().join("small"), (0..300).map(mixed)).unwrap_err();
        assert!(error.message().contains("column i") || error.message().contains("column x"), "{error}");
    }
}

#[cfg(feature = "mds")]
#[test]
fn a_column_of_mds_that_is_null_at_times_is_json() {
    let temp = tempfile::tempdir().unwrap();
    let record = |i: i64| {
        let text: Value = if i % 3 == 0 { Value::Null } else { "text".into() };
        Element::new().with("text", text)
    };
    all(&shards_of(SinkFormat::Mds, 5, 2), temp.path(), (0..20).map(record)).unwrap();
    assert_eq!(manifest(temp.path()).schema.unwrap(), Schema::new().with("text", "json"));
    let source = crate::source::Mds::open(temp.path()).unwrap();
    assert!((0..20).all(|i| source.read(i as u64).unwrap() == record(i)));
    // A field that comes too late is not left out in silence.
    let late = |i: i64| if i == 1700 { record(i).with("more", "x") } else { record(i) };
    let error = all(&shards_of(SinkFormat::Mds, 5, 2), &temp.path().join("late"), (0..2000).map(late)).unwrap_err();
    assert!(error.record_number() == Some(1700) && error.message().contains("\"more\""), "{error}");
}

#[test]
fn rows_are_of_one_shape_in_all_shards() {
    let formats = columns_of(true);
    assert!(formats.contains(&SinkFormat::Npy));
    for format in formats {
        let temp = tempfile::tempdir().unwrap();
        let row = |n: usize| Element::new().with("x", Array::from_vec(vec![0f32; n]));
        let rows = |i| row(if i == 1230 { 3 } else { 2 });
        let error = all(&shards_of(format, 100, 2), temp.path(), (0..2000).map(rows)).unwrap_err();
        assert_eq!(error.record_number(), Some(1230));
        assert!(error.message().starts_with("column x: float32[3], but the column holds float32[2]"), "{error}");
        assert_eq!(manifest(temp.path()).schema.unwrap(), Schema::new().with("x", "float32[2]"));
        let declared = shards_of(format, 100, 2).schema(Schema::new().with("x", "float32[4]"));
        let error = all(&declared, &temp.path().join("declared"), std::iter::once(row(2))).unwrap_err();
        assert!(error.message().contains("the column holds float32[4]"), "{error}");
    }
}
