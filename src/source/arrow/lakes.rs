//! Tests of files with different columns, in Arrow files and in Parquet.

use std::sync::Arc;

use arrow_array::builder::{MapBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};

use crate::dataset::map::RandomAccess;
use crate::element::{Array as Numbers, Buffer, Element, Value};
use crate::error::{ErrorKind, Result};
use crate::source::content::{Content, Contents};
use crate::source::parquet::Condition;
use crate::source::{Arrow, Parquet};

type Column = (&'static str, ArrayRef);

fn batch(columns: &[Column]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, array)| (*name, array.clone(), true))).unwrap()
}

fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn parquet_file(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

fn contents(files: &[Vec<Column>], write: impl Fn(&RecordBatch) -> Vec<u8>) -> Contents {
    let one = |(at, columns): (usize, &Vec<Column>)| {
        let bytes = write(&batch(columns));
        (format!("{at}.file").as_str().into(), Content::from(Buffer::copy_from(&bytes)))
    };
    files.iter().enumerate().map(one).collect()
}

fn rows(source: &dyn RandomAccess<Record = Element>) -> Result<Vec<Element>> {
    let all: Vec<u64> = (0..source.len()).collect();
    let rows = all.iter().map(|&row| source.read(row)).collect::<Result<Vec<_>>>()?;
    // Batches built from columns equal the rows.
    let many: Vec<Element> = source.read_many(&all).into_iter().map(|row| row.unwrap().unwrap()).collect();
    assert_eq!(many, rows);
    Ok(rows)
}

/// Reads files in both formats and checks that their rows are equal.
fn read(files: &[Vec<Column>], columns: Option<&[&str]>) -> Result<Vec<Element>> {
    let (mut arrow, mut parquet) = (Arrow::options(), Parquet::options());
    if let Some(columns) = columns {
        (arrow, parquet) = (arrow.columns(columns), parquet.columns(columns));
    }
    let arrow = arrow.open_contents(contents(files, arrow_file)).and_then(|source| rows(&source));
    let parquet = parquet.open_contents(contents(files, parquet_file)).and_then(|source| rows(&source));
    match (arrow, parquet) {
        (Ok(arrow), Ok(parquet)) => {
            assert_eq!(arrow, parquet);
            Ok(arrow)
        }
        (Err(arrow), Err(parquet)) => {
            assert_eq!(arrow.kind(), parquet.kind(), "{arrow}; {parquet}");
            Err(arrow)
        }
        (arrow, parquet) => panic!("{arrow:?}, {parquet:?}"),
    }
}

fn ints(numbers: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(numbers.to_vec()))
}

fn texts(all: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(all.to_vec()))
}

#[test]
fn columns_go_by_name() {
    let files = [
        vec![("id", ints(&[1])), ("text", texts(&["a"]))],
        vec![("text", texts(&["b"])), ("lang", texts(&["en"])), ("id", ints(&[2]))],
    ];
    let row = |id: i64, text: &str, lang: Value| {
        Element::new().with("id", Numbers::scalar(id)).with("text", text).with("lang", lang)
    };
    assert_eq!(read(&files, None).unwrap(), [row(1, "a", Value::Null), row(2, "b", "en".into())]);
    let some = read(&files, Some(&["lang", "id"])).unwrap();
    let pair = |lang: Value, id: i64| Element::new().with("lang", lang).with("id", Numbers::scalar(id));
    assert_eq!(some, [pair(Value::Null, 1), pair("en".into(), 2)]);
    // A file may have none of the chosen columns.
    let some = read(&files, Some(&["lang"])).unwrap();
    assert_eq!(some, [Element::new().with("lang", Value::Null), Element::new().with("lang", "en")]);
    let error = read(&files, Some(&["id", "langs"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().starts_with("0.file: no column \"langs\""), "{error}");
}

fn decimals(text: i128, precision: u8, scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from(vec![Some(text), None]).with_precision_and_scale(precision, scale).unwrap())
}

fn list(item: DataType, numbers: ArrayRef) -> ArrayRef {
    let item = Field::new("item", item, true);
    Arc::new(ListArray::new(Arc::new(item), OffsetBuffer::from_lengths([numbers.len()]), numbers, None))
}

fn large_list(numbers: ArrayRef) -> ArrayRef {
    let item = Field::new("item", numbers.data_type().clone(), true);
    Arc::new(LargeListArray::new(Arc::new(item), OffsetBuffer::from_lengths([numbers.len()]), numbers, None))
}

fn fixed_list(numbers: ArrayRef, size: i32) -> ArrayRef {
    let item = Field::new("item", numbers.data_type().clone(), true);
    Arc::new(FixedSizeListArray::new(Arc::new(item), size, numbers, None))
}

fn tree(fields: &[Column]) -> ArrayRef {
    let field = |(name, array): &Column| (Arc::new(Field::new(*name, array.data_type().clone(), true)), array.clone());
    Arc::new(StructArray::from(fields.iter().map(field).collect::<Vec<_>>()))
}

fn dictionary(text: &str) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int8Type>::new();
    builder.append_value(text);
    Arc::new(builder.finish())
}

fn map(key: &str) -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    builder.keys().append_value(key);
    builder.values().append_value("v");
    builder.append(true).unwrap();
    Arc::new(builder.finish())
}

fn one<T: crate::element::Scalar>(number: T) -> Value {
    Numbers::scalar(number).into()
}

/// Returns the first value of each of two files.
fn values(a: &ArrayRef, b: &ArrayRef) -> Result<[Value; 2]> {
    let rows = read(&[vec![("x", a.clone())], vec![("x", b.clone())]], None)?;
    let value = |row: usize| rows[row].get("x").unwrap().clone();
    Ok([value(0), value(a.len())])
}

#[test]
fn types_are_widened_to_hold_both() {
    let primitive = |data_type: &str| -> ArrayRef {
        match data_type {
            "i8" => Arc::new(Int8Array::from(vec![Some(-3), None])),
            "i32" => Arc::new(Int32Array::from(vec![Some(-3), None])),
            "i64" => Arc::new(Int64Array::from(vec![Some(-3), None])),
            "u8" => Arc::new(UInt8Array::from(vec![7])),
            "u32" => Arc::new(UInt32Array::from(vec![7])),
            "u64" => Arc::new(UInt64Array::from(vec![7])),
            "f16" => Arc::new(Float16Array::from(vec![half::f16::from_f32(0.5)])),
            "f32" => Arc::new(Float32Array::from(vec![Some(0.5), None])),
            _ => Arc::new(Float64Array::from(vec![0.5])),
        }
    };
    let numbers = |data: &[i32]| Arc::new(Int32Array::from(data.to_vec())) as ArrayRef;
    let time = |unit: &str| -> ArrayRef {
        match unit {
            "s" => Arc::new(TimestampSecondArray::from(vec![1])),
            "us" => Arc::new(TimestampMicrosecondArray::from(vec![2])),
            "us z" => Arc::new(TimestampMicrosecondArray::from(vec![2]).with_timezone("UTC")),
            "us +1" => Arc::new(TimestampMicrosecondArray::from(vec![3]).with_timezone("+01:00")),
            _ => Arc::new(TimestampNanosecondArray::from(vec![Some(3), None])),
        }
    };
    let bytes = |data: &[u8]| Value::Bytes(Buffer::copy_from(data));
    let array = |data: &[i64]| Value::Array(Numbers::from_vec(data.to_vec()));
    let pair = |a: Value, b: Value| -> Value { Element::new().with("a", a).with("b", b).into() };
    let widened: Vec<(ArrayRef, ArrayRef, Value, Value)> = vec![
        (primitive("i8"), primitive("i64"), one(-3i64), one(-3i64)),
        (primitive("i32"), primitive("u32"), one(-3i64), one(7i64)),
        (primitive("i8"), primitive("u8"), one(-3i16), one(7i16)),
        (primitive("u64"), primitive("i64"), one(7i64), one(-3i64)),
        (primitive("i8"), primitive("f16"), one(half::f16::from_f32(-3.0)), one(half::f16::from_f32(0.5))),
        (primitive("f32"), primitive("f64"), one(0.5f64), one(0.5f64)),
        (primitive("f16"), primitive("f32"), one(0.5f32), one(0.5f32)),
        (primitive("i64"), primitive("f32"), one(-3f64), one(0.5f64)),
        (decimals(150, 7, 2), decimals(200_000, 8, 5), "1.50000".into(), "2.00000".into()),
        (decimals(150, 7, 2), decimals(-150, 12, 2), "1.50".into(), "-1.50".into()),
        (decimals(150, 7, 2), primitive("i64"), "1.50".into(), "-3.00".into()),
        (decimals(150, 7, 2), primitive("f64"), one(1.5f64), one(0.5f64)),
        (texts(&["a"]), Arc::new(LargeStringArray::from(vec!["b"])), "a".into(), "b".into()),
        (texts(&["a"]), Arc::new(StringViewArray::from(vec!["b"])), "a".into(), "b".into()),
        (texts(&["a"]), dictionary("b"), "a".into(), "b".into()),
        (dictionary("a"), Arc::new(BinaryArray::from(vec![&b"b"[..]])), bytes(b"a"), bytes(b"b")),
        (texts(&["a"]), Arc::new(BinaryArray::from(vec![&b"\xff"[..]])), bytes(b"a"), bytes(b"\xff")),
        (time("s"), time("us"), one(1_000_000i64), one(2i64)),
        (time("s"), time("ns"), one(1_000_000_000i64), one(3i64)),
        (time("us z"), time("us +1"), one(2i64), one(3i64)),
        (Arc::new(Date32Array::from(vec![2])), Arc::new(Date32Array::from(vec![3])), one(2i32), one(3i32)),
        (
            Arc::new(Time32MillisecondArray::from(vec![2])),
            Arc::new(Time64NanosecondArray::from(vec![3])),
            one(2_000_000i64),
            one(3i64),
        ),
        (Arc::new(NullArray::new(1)), texts(&["b"]), Value::Null, "b".into()),
        (list(DataType::Int32, numbers(&[1, 2])), large_list(ints(&[3])), array(&[1, 2]), array(&[3])),
        (list(DataType::Int32, numbers(&[1])), fixed_list(ints(&[3, 4]), 2), array(&[1]), array(&[3, 4])),
        (fixed_list(numbers(&[1, 2]), 2), fixed_list(ints(&[3, 4]), 2), array(&[1, 2]), array(&[3, 4])),
        (
            tree(&[("a", ints(&[1]))]),
            tree(&[("b", texts(&["t"])), ("a", primitive("u8"))]),
            pair(one(1i64), Value::Null),
            pair(one(7i64), "t".into()),
        ),
        (
            map("a"),
            map("b"),
            Value::List(vec![Element::new().with("key", "a").with("value", "v").into()]),
            Value::List(vec![Element::new().with("key", "b").with("value", "v").into()]),
        ),
    ];
    for (a, b, first, second) in widened {
        let name = format!("{} and {}", a.data_type(), b.data_type());
        assert_eq!(values(&a, &b).unwrap(), [first.clone(), second.clone()], "{name}");
        if !matches!(first, Value::Tree(_)) {
            assert_eq!(values(&b, &a).unwrap(), [second, first], "{name}, the other way");
        }
    }
}

#[test]
fn types_that_no_type_holds_are_refused_by_file_and_column() {
    let seconds = || Arc::new(TimestampSecondArray::from(vec![1]));
    let different: Vec<(ArrayRef, ArrayRef, &str)> = vec![
        (ints(&[1]), texts(&["a"]), "1.file: column \"x\" is of type Utf8, in 0.file it is Int64"),
        (ints(&[1]), Arc::new(BooleanArray::from(vec![true])), "column \"x\" is of type Boolean"),
        (ints(&[1]), large_list(ints(&[1])), "column \"x\" is of type LargeList"),
        (
            Arc::new(TimestampMillisecondArray::from(vec![1])),
            Arc::new(TimestampMillisecondArray::from(vec![1]).with_timezone("UTC")),
            "column \"x\" is of type Timestamp(ms, \"UTC\")",
        ),
        (seconds(), ints(&[1]), "column \"x\" is of type Int64"),
        (
            tree(&[("a", large_list(tree(&[("b", ints(&[1]))])))]),
            tree(&[("a", large_list(tree(&[("b", texts(&["t"]))])))]),
            "column \"x.a.b\" is of type Utf8, in 0.file it is Int64",
        ),
    ];
    for (a, b, told) in different {
        let error = values(&a, &b).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().contains(told), "{error}");
        // Columns that are not read may differ.
        let files = [vec![("x", a), ("id", ints(&[1]))], vec![("x", b), ("id", ints(&[2]))]];
        assert_eq!(read(&files, Some(&["id"])).unwrap().len(), 2);
    }
}

#[test]
fn a_value_that_the_wider_type_does_not_hold_is_an_error_of_its_file() {
    let exact = (1i64 << 53) + 1;
    let floats = || Arc::new(Float64Array::from(vec![0.5])) as ArrayRef;
    let seconds = Arc::new(TimestampSecondArray::from(vec![i64::MAX / 1000])) as ArrayRef;
    let files: [(ArrayRef, ArrayRef, &str); 3] = [
        (ints(&[exact]), floats(), "9007199254740993 is no value of float64"),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), ints(&[1]), "18446744073709551615 is no value of int64"),
        (seconds, Arc::new(TimestampNanosecondArray::from(vec![1])), "is no value of Timestamp(ns)"),
    ];
    for (a, b, told) in files {
        let error = values(&a, &b).unwrap_err().to_string();
        assert!(error.starts_with("0.file: ") && error.contains("column x: ") && error.contains(told), "{error}");
    }
}

#[test]
fn row_groups_are_left_out_by_the_type_of_all_files() {
    let files = [
        vec![("at", Arc::new(TimestampMillisecondArray::from(vec![5_000])) as ArrayRef), ("id", ints(&[1]))],
        vec![("at", Arc::new(TimestampMicrosecondArray::from(vec![7_000_000])) as ArrayRef), ("id", ints(&[2]))],
        vec![("id", ints(&[3]))],
    ];
    let open = |condition| {
        let options = Parquet::options().columns(["id"]).row_groups_where(condition);
        options.open_contents(contents(&files, parquet_file)).map(|source| source.len())
    };
    assert_eq!(open(Condition::column("at").min(4_000_000.0)).unwrap(), 2);
    assert_eq!(open(Condition::column("at").min(6_000_000.0)).unwrap(), 1);
    let error = open(Condition::column("ta").min(1.0)).unwrap_err();
    assert!(error.to_string().starts_with("0.file: no column \"ta\""), "{error}");
}

#[test]
fn fields_of_structs_are_chosen_where_they_are() {
    let files = [
        vec![("meta", tree(&[("url", texts(&["u"])), ("size", ints(&[1]))]))],
        vec![("meta", tree(&[("lang", texts(&["en"])), ("size", ints(&[2]))]))],
        vec![("id", ints(&[3]))],
    ];
    let source = Parquet::options().columns(["meta.url", "meta.size"]).open_contents(contents(&files, parquet_file));
    let rows = rows(&source.unwrap()).unwrap();
    let meta =
        |url: Value, size: i64| -> Value { Element::new().with("url", url).with("size", Numbers::scalar(size)).into() };
    let expected = [meta("u".into(), 1), meta(Value::Null, 2), Value::Null];
    assert_eq!(rows, expected.map(|value| Element::new().with("meta", value)));
}
