//! Tests that written values read back unchanged.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef};
use arrow_schema::FieldRef;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;

use super::column;
use super::rows::Rows;
use super::value::{Memory, value};
use crate::element::{Array, Buffer, DType, Element, Value};
#[cfg(all(feature = "arrow", feature = "parquet"))]
use crate::element::{Name, Ragged};
use crate::error::Result;

/// Returns true if all values of a column are numbers other than booleans.
#[cfg(all(feature = "arrow", feature = "parquet"))]
fn all_numbers(rows: &[Element], name: &str) -> bool {
    rows.iter().all(|row| row.array(name).is_ok_and(|array| array.dtype() != DType::Bool))
}

/// Checks that rows without elements have the cells of the values; a scalar is a row of a single cell.
#[cfg(all(feature = "arrow", feature = "parquet"))]
fn same_cells(rows: &Ragged, values: &[&Value]) {
    let [column] = rows.columns() else { panic!("{} columns", rows.columns().len()) };
    assert_eq!((rows.len(), column.lens().len()), (values.len(), values.len()));
    for ((row, len), value) in column.lens().enumerate().zip(values) {
        let Value::Array(array) = value else { panic!("{value:?}") };
        let shape = array.shape().split_first().map_or((1, &[][..]), |(&len, inner)| (len, inner));
        assert_eq!(((len, column.inner()), column.dtype()), (shape, array.dtype()));
        assert_eq!(column.cells(row), array.bytes());
    }
}

/// Kind of a column, from which its values are generated.
#[derive(Clone, Debug)]
enum Column {
    Number(DType),
    Array(DType, Vec<usize>),
    Text,
    Bytes,
    Tree(Vec<Column>),
    List(Box<Column>),
}

fn columns() -> impl Strategy<Value = Column> {
    let dtype = || proptest::sample::select(&DType::ALL[..]);
    let leaf = prop_oneof![
        dtype().prop_map(Column::Number),
        (dtype(), vec(1usize..4, 0..3)).prop_map(|(dtype, inner)| Column::Array(dtype, inner)),
        Just(Column::Text),
        Just(Column::Bytes),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        // A list of numbers would read back as an array.
        let items = inner.clone().prop_filter("no number", |item| !matches!(item, Column::Number(_)));
        prop_oneof![vec(inner, 1..3).prop_map(Column::Tree), items.prop_map(|item| Column::List(item.into()))]
    })
}

fn array(dtype: DType, shape: &[usize], seed: &[u8]) -> Array {
    let bytes = shape.iter().product::<usize>() * dtype.size();
    let mut bytes: Vec<u8> = seed.iter().cycle().take(bytes).copied().collect();
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte &= 1);
    }
    Array::new(dtype, shape, Buffer::copy_from(&bytes)).unwrap()
}

/// Generates values of a column; some of them are null.
fn values(column: &Column) -> BoxedStrategy<Value> {
    let seed = vec(any::<u8>(), 1..40);
    let value = match column.clone() {
        Column::Number(dtype) => seed.prop_map(move |seed| array(dtype, &[], &seed).into()).boxed(),
        Column::Array(dtype, inner) => (0usize..4, seed)
            .prop_map(move |(rows, seed)| array(dtype, &[&[rows], inner.as_slice()].concat(), &seed).into())
            .boxed(),
        Column::Text => "\\PC{0,9}".prop_map(|text| text.as_str().into()).boxed(),
        Column::Bytes => vec(any::<u8>(), 0..12).prop_map(|bytes| Value::Bytes(Buffer::copy_from(&bytes))).boxed(),
        Column::Tree(fields) => row(fields).prop_map(Value::Tree).boxed(),
        Column::List(item) => vec(values(&item), 0..4).prop_map(Value::List).boxed(),
    };
    option::weighted(0.9, value).prop_map(|value| value.unwrap_or(Value::Null)).boxed()
}

fn row(columns: Vec<Column>) -> impl Strategy<Value = Element> {
    let values: Vec<_> = columns.iter().map(values).collect();
    values.prop_map(|values| {
        let named = values.into_iter().enumerate();
        named.fold(Element::new(), |element, (at, value)| element.with(format!("c{at}"), value))
    })
}

fn rows() -> impl Strategy<Value = Vec<Element>> {
    vec(columns(), 1..4).prop_flat_map(|columns| vec(row(columns), 1..20))
}

fn back(rows: &[Element], batch_rows: usize) -> Result<Vec<Element>> {
    let mut collected = Rows::new(batch_rows, usize::MAX, None);
    let mut batches = Vec::new();
    for row in rows {
        batches.extend(collected.push(row)?);
    }
    batches.extend(collected.take()?);
    let mut read = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let mut element = Element::new();
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                element.insert(field.name(), value(field, column, row, Memory::Copied)?);
            }
            read.push(element);
        }
    }
    Ok(read)
}

proptest! {
    #[test]
    fn batches_hold_what_elements_do(rows in rows()) {
        prop_assert_eq!(back(&rows, usize::MAX).unwrap(), rows);
    }

    #[cfg(feature = "arrow")]
    #[test]
    fn arrow_files_read_back(rows in rows(), stream: bool, codec in 0..3, batch_rows in 1usize..30) {
        use crate::dataset::map::RandomAccess;
        use crate::source::{ArrowCompression::*, ArrowOptions, ArrowWriter, ArrowWriterOptions};
        let example = example(&rows);
        let options = ArrowWriterOptions::new().batch_rows(batch_rows).example(example);
        let options = options.compression([None, Lz4, Zstd(1)][codec as usize]);
        let write = || {
            let options = options.clone();
            let mut writer = ArrowWriter::new(Vec::new(), if stream { options.stream() } else { options }).unwrap();
            rows.iter().for_each(|row| writer.write(row).unwrap());
            writer.finish().unwrap()
        };
        let file = write();
        prop_assert!(file == write());
        let contents = vec![("x".into(), Buffer::copy_from(&file).into())];
        let source = ArrowOptions::default().open_contents(contents).unwrap();
        let read: Vec<_> = (0..source.len()).map(|i| source.read(i).unwrap()).collect();
        prop_assert_eq!(read, rows);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_files_read_back(rows in rows(), split: bool, index: bool, dictionary: bool, codec in 0..6, group in 1usize..30) {
        use crate::dataset::map::RandomAccess;
        use crate::source::{ParquetCompression::*, ParquetOptions, ParquetWriter, ParquetWriterOptions};
        let options = ParquetWriterOptions::new().row_group_rows(group).example(example(&rows)).byte_stream_split(split);
        let codec = [None, Snappy, Zstd(1), Lz4, Gzip(1), Brotli(1)][codec as usize];
        let options = options.page_index(index).dictionary(dictionary).compression(codec);
        let write = || {
            let mut writer = ParquetWriter::new(Vec::new(), options.clone()).unwrap();
            rows.iter().for_each(|row| writer.write(row).unwrap());
            writer.finish().unwrap()
        };
        let file = write();
        prop_assert!(file == write());
        let contents = vec![("x".into(), Buffer::copy_from(&file).into())];
        let source = ParquetOptions::default().open_contents(contents).unwrap();
        let read: Vec<_> = (0..source.len()).map(|i| source.read(i).unwrap()).collect();
        prop_assert_eq!(read, rows);
    }
}

proptest! {
    /// The column may be sliced anywhere, and any value may be null.
    #[test]
    fn columns_made_ready_have_the_same_values(rows in rows(), cut in any::<Index>(), viewed: bool) {
        let memory = if viewed { Memory::Viewed } else { Memory::Copied };
        let mut collected = Rows::new(usize::MAX, usize::MAX, None);
        rows.iter().for_each(|row| drop(collected.push(row).unwrap()));
        let whole = collected.take().unwrap().unwrap();
        let first = cut.index(rows.len());
        let part = whole.slice(first, rows.len() - first);
        for (field, column) in part.schema().fields().iter().zip(part.columns()) {
            same_values(field, column, memory);
        }
    }

    /// A batch built from columns equals the stacked elements. There is no batch if the elements do not stack.
    #[cfg(all(feature = "arrow", feature = "parquet"))]
    #[test]
    fn batches_out_of_columns_are_stacks(rows in rows(), picks in vec(any::<Index>(), 1..6), batch_rows in 1usize..9, packed: bool) {
        use crate::element::Stack;
        use crate::dataset::map::RandomAccess;
        use crate::source::*;
        let indices: Vec<u64> = picks.iter().map(|pick| pick.index(rows.len()) as u64).collect();
        let expected = Element::stack(indices.iter().map(|&at| rows[at as usize].clone()).collect()).ok();
        let options = ParquetWriterOptions::new().row_group_rows(batch_rows).example(example(&rows));
        let mut parquet = ParquetWriter::new(Vec::new(), options).unwrap();
        let compression = if packed { ArrowCompression::Lz4 } else { ArrowCompression::None };
        let options = ArrowWriterOptions::new().batch_rows(batch_rows).example(example(&rows)).compression(compression);
        let mut arrow = ArrowWriter::new(Vec::new(), options).unwrap();
        for row in &rows {
            parquet.write(row).unwrap();
            arrow.write(row).unwrap();
        }
        let content = |file: Vec<u8>| vec![("x".into(), Buffer::copy_from(&file).into())];
        // A cache of 0 bytes keeps one span.
        let parquet = ParquetOptions::default().cache_bytes(0).open_contents(content(parquet.finish().unwrap())).unwrap();
        let arrow = ArrowOptions::default().cache_bytes(0).open_contents(content(arrow.finish().unwrap())).unwrap();
        let picked: Vec<_> = indices.iter().map(|&at| rows[at as usize].clone()).collect();
        prop_assert_eq!(parquet.read_many(&indices).dense().unwrap(), picked.as_slice());
        prop_assert_eq!(arrow.read_many(&indices).dense().unwrap(), picked.as_slice());
        let all: Vec<u64> = (0..rows.len() as u64).collect();
        prop_assert_eq!(parquet.read_many(&all).dense().unwrap(), rows.as_slice());
        prop_assert_eq!(arrow.read_many(&all).dense().unwrap(), rows.as_slice());
        // An error affects only its own row.
        let slots = parquet.read_many(&[0, parquet.len(), 0]).into_iter();
        let told: Vec<_> = slots.map(|slot| slot.map_err(|e| e.message().to_owned())).collect();
        let missing = format!("no record {0}: there are {0}", rows.len());
        prop_assert_eq!(told, [Ok(Some(rows[0].clone())), Err(missing), Ok(Some(rows[0].clone()))]);
        for (name, _) in rows[0].iter() {
            let name = Name::new(name);
            let columns = [&parquet as &dyn RandomAccess<Record = Element>, &arrow].map(|source| source.read_ragged(&indices, std::slice::from_ref(&name)));
            let picked: Vec<_> = picked.iter().map(|row| row.field(&name).unwrap()).collect();
            for rows_of_column in columns {
                match rows_of_column {
                    Some(ragged) => same_cells(&ragged, &picked),
                    None => prop_assert!(!all_numbers(&rows, &name), "{name}"),
                }
            }
        }
        for batch in [parquet.read_stacked(&indices), arrow.read_stacked(&indices)] {
            prop_assert!(batch.as_ref().is_none_or(|batch| batch.len == indices.len() && batch.bytes == batch.batch.nbytes()));
            prop_assert_eq!(batch.map(|batch| batch.batch), expected.clone());
        }
    }
}

/// Checks that prepared and unprepared columns have equal values, one by one and many at a time.
fn same_values(field: &FieldRef, array: &ArrayRef, memory: Memory) {
    let ready = column::Column::of(field, array);
    let rows: Vec<_> = (0..array.len()).map(|row| (row, array.len() - 1 - row)).collect();
    let mut elements = vec![Element::nulls(&["y".into(), "x".into()]); array.len()];
    ready.put_each(1, &rows, memory, &mut elements).unwrap();
    for (row, to) in rows {
        assert_eq!(elements[to].get("x"), Some(&value(field, array, row, memory).unwrap()), "{field} {row}");
    }
    for row in 0..array.len() {
        assert_eq!(ready.value(row, memory).unwrap(), value(field, array, row, memory).unwrap(), "{field} {row}");
    }
}

/// Reads columns that the writers here never write: the schema refines the type, or nulls are in unusual places.
#[test]
fn columns_of_others_are_made_ready() {
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, FixedSizeListArray, Int16Array, LargeListArray, LargeStringArray, NullArray};
    use arrow_buffer::{NullBuffer, OffsetBuffer};
    use arrow_schema::{DataType, Field};
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let numbers = |nulls: Option<NullBuffer>| -> ArrayRef { Arc::new(Int16Array::new((0..12).collect(), nulls)) };
    let fixed = |size, values: ArrayRef, nulls| -> ArrayRef {
        Arc::new(FixedSizeListArray::new(item(values.data_type().clone()), size, values, nulls))
    };
    let some_null = |len: usize, at: usize| Some(NullBuffer::from((0..len).map(|i| i != at).collect::<Vec<bool>>()));
    let offsets = OffsetBuffer::from_lengths([3, 0, 5, 4]);
    let large = |nulls| LargeListArray::new(item(DataType::Int16), offsets.clone(), numbers(None), nulls);
    let with_null = LargeListArray::new(item(DataType::Int16), offsets.clone(), numbers(some_null(12, 5)), None);
    let columns: [ArrayRef; 10] = [
        fixed(4, numbers(None), None),
        fixed(4, numbers(None), some_null(3, 1)),
        fixed(4, numbers(some_null(12, 6)), None),
        fixed(2, fixed(3, numbers(None), None), None),
        fixed(2, fixed(3, numbers(None), some_null(4, 2)), None),
        Arc::new(large(some_null(4, 2))),
        Arc::new(with_null),
        Arc::new(DictionaryArray::<Int32Type>::from_iter([Some("a"), None, Some("b"), Some("a")])),
        Arc::new(LargeStringArray::from(vec![Some("x"), None])),
        Arc::new(NullArray::new(3)),
    ];
    for column in &columns {
        for memory in [Memory::Copied, Memory::Viewed] {
            same_values(&Arc::new(Field::new("x", column.data_type().clone(), true)), column, memory);
            same_values(
                &Arc::new(Field::new("x", column.data_type().clone(), true)),
                &column.slice(1, column.len() - 1),
                memory,
            );
        }
    }
    for shape in ["[2,2]", "[4]", "[3]", "[null,2]", "[2,2],\"permutation\":[1,0]"] {
        let told = [
            ("ARROW:extension:name".to_owned(), "arrow.fixed_shape_tensor".to_owned()),
            ("ARROW:extension:metadata".to_owned(), format!("{{\"shape\":{shape}}}")),
        ];
        for column in [&columns[0], &columns[1], &columns[3], &columns[5]] {
            let field = Field::new("x", column.data_type().clone(), true).with_metadata(told.clone());
            same_values(&Arc::new(field), column, Memory::Copied);
        }
    }
}

/// Returns an element with every field of the rows.
#[cfg(feature = "columns")]
fn example(rows: &[Element]) -> Element {
    fn merge(a: Value, b: &Value) -> Value {
        match (a, b) {
            (Value::Null, b) => b.clone(),
            (a, Value::Null) => a,
            (Value::Tree(a), Value::Tree(b)) => {
                let fields = a.into_fields().map(|(name, value)| {
                    let other = b.get(&name).cloned().unwrap_or(Value::Null);
                    (name, merge(value, &other))
                });
                fields.fold(Element::new(), |tree, (name, value)| tree.with(name, value)).into()
            }
            (Value::List(a), Value::List(b)) => {
                let one = a.into_iter().chain(b.iter().cloned()).fold(Value::Null, |a, b| merge(a, &b));
                Value::List(vec![one])
            }
            (a, _) => a,
        }
    }
    let all = rows.iter().fold(Value::Null, |all, row| merge(all, &row.clone().into()));
    match all {
        Value::Tree(tree) => tree,
        _ => Element::new(),
    }
}

fn told(rows: &[Element]) -> String {
    back(rows, 2).unwrap_err().to_string()
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    let one = |value: Value| Element::new().with("x", value);
    let number = |n: i64| one(Array::scalar(n).into());
    assert_eq!(told(&[number(1), one("a".into())]), "record 1: column x: text where a number of int64 came before");
    // The first two rows determine the columns.
    let rows = [number(1), number(2), number(3), one(Array::scalar(1.5).into())];
    assert_eq!(told(&rows), "record 3: column x: a number of float64 where a number of int64 came before");
    let rows = [number(1), number(2), number(3).with("y", "new")];
    assert_eq!(told(&rows), "record 2: column y: it was in none of the rows from which the columns were taken");
    let array = |shape: [usize; 2]| one(array(DType::F32, &shape, &[0]).into());
    let error = back(&[array([1, 2]), array([1, 3])], 2).unwrap_err();
    assert_eq!(error.message(), "column x: an array of float32[_, 3] where an array of float32[_, 2] came before");
    assert!(error.help_text().unwrap().contains("only the first dimension"));
    let list = |items: Vec<Value>| one(Value::Tree(Element::new().with("deep", Value::List(items))));
    let rows = [list(vec!["a".into()]), list(vec![]), list(vec![]), list(vec!["b".into(), Array::scalar(1u8).into()])];
    assert_eq!(told(&rows), "record 3: column x.deep: a number of uint8 where text came before");
}

#[test]
fn what_a_row_does_not_have_is_null() {
    let rows = [Element::new().with("a", "1"), Element::new().with("b", "2"), Element::new()];
    let read = back(&rows, 3).unwrap();
    assert_eq!(read[0], Element::new().with("a", "1").with("b", Value::Null));
    assert_eq!(read[1], Element::new().with("a", Value::Null).with("b", "2"));
    assert_eq!(read[2], Element::new().with("a", Value::Null).with("b", Value::Null));
}

#[test]
fn lists_of_numbers_are_arrays_and_keep_their_nulls() {
    let list = |items: Vec<Value>| Element::new().with("x", Value::List(items));
    let one = || Value::from(Array::scalar(1i64));
    let rows = [list(vec![one(), Value::Null]), list(vec![]), list(vec![one(), one()])];
    let read = back(&rows, 3).unwrap();
    assert_eq!(read[0], rows[0]);
    assert_eq!(read[1].array("x").unwrap().shape(), [0]);
    assert_eq!(read[2].array("x").unwrap().as_slice::<i64>().unwrap(), [1, 1]);
}

/// Writer that fails like a full disk after this number of bytes.
#[cfg(all(feature = "arrow", feature = "parquet"))]
#[derive(Debug)]
struct Full(usize);

#[cfg(all(feature = "arrow", feature = "parquet"))]
impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(all(feature = "arrow", feature = "parquet"))]
#[test]
fn what_cannot_be_written_is_told_and_ends_the_file() {
    use crate::ErrorKind;
    use crate::source::{ArrowWriter, ArrowWriterOptions, ParquetWriter, ParquetWriterOptions};
    let row = |i: u8| Element::new().with("x", Value::Bytes(Buffer::copy_from(&[i; 100])));
    for room in [0, 1000, 3000] {
        let options = ParquetWriterOptions::new().row_group_rows(10).dictionary(false);
        let mut writer = ParquetWriter::new(Full(room), options).unwrap();
        let failed = (0..200).map(|i| writer.write(&row(i))).find_map(Result::err);
        let error = failed.map_or_else(|| writer.finish().err(), Some).unwrap();
        assert_eq!(error.kind(), ErrorKind::Io, "{room}: {error}");

        let mut writer = ArrowWriter::new(Full(room), ArrowWriterOptions::new().batch_rows(10)).unwrap();
        let error = (0..200).map(|i| writer.write(&row(i))).find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::Io, "{room}: {error}");
        assert!(writer.write(&row(0)).unwrap_err().message().contains("could not be written before"));
        assert!(writer.finish().unwrap_err().message().contains("could not be written before"));
    }
}

/// JSON yields an untyped empty array for every empty list, so it must fit any type of column.
#[test]
fn empty_arrays_fit_in_every_column_of_arrays_and_lists() {
    let x = |value: Value| Element::new().with("x", value);
    let empty = || x(Array::from_vec(Vec::<i64>::new()).into());
    let texts = || x(Value::List(vec!["a".into()]));
    let none = || x(Value::List(Vec::new()));
    for batch in [1, usize::MAX] {
        assert_eq!(back(&[texts(), empty()], batch).unwrap(), [texts(), none()]);
        assert_eq!(back(&[empty(), empty()], batch).unwrap(), [empty(), empty()]);
    }
    assert_eq!(back(&[empty(), texts(), empty()], usize::MAX).unwrap(), [none(), texts(), none()]);
    let floats = |shape: &[usize]| x(array(DType::F32, shape, b"seed").into());
    assert_eq!(back(&[empty(), floats(&[2, 3])], usize::MAX).unwrap(), [floats(&[0, 3]), floats(&[2, 3])]);
    assert_eq!(back(&[floats(&[2]), empty()], 1).unwrap(), [floats(&[2]), floats(&[0])]);
    assert!(back(&[empty(), x("text".into())], usize::MAX).is_err());
}

#[cfg(all(feature = "cli", feature = "parquet", feature = "arrow"))]
#[test]
fn types_that_elements_do_not_have_are_written_as_they_are_declared() {
    use super::kind::Kind;
    use super::logical::of_word;
    use crate::dataset::map::RandomAccess;
    use crate::source::{Arrow, ArrowWriter, ArrowWriterOptions, Parquet, ParquetWriter, ParquetWriterOptions};
    let words = [
        ("when", "timestamp[us, tz=UTC]"),
        ("day", "date32"),
        ("at", "time64[ns]"),
        ("took", "duration[ms]"),
        ("price", "decimal128(5, 2)"),
        ("v", "float32[2]"),
        ("m", "int16[2, 2]"),
        ("id", "fixed_size_binary[2]"),
    ];
    let kinds: Vec<(Name, Kind)> = words
        .into_iter()
        .map(|(name, word)| (name.into(), Kind::Logical(of_word(word).unwrap())))
        .chain([("times".into(), Kind::List(Kind::Logical(of_word("timestamp[s]").unwrap()).into()))])
        .collect();
    let long = |number: i64| Array::scalar(number);
    let full = Element::new()
        .with("when", long(1))
        .with("day", Array::scalar(2i32))
        .with("at", long(3))
        .with("took", long(4))
        .with("price", "-12.50")
        .with("v", Array::from_vec(vec![1.0f32, 2.0]))
        .with("m", Array::new(DType::I16, &[2, 2], Buffer::from_vec(vec![1i16, 2, 3, 4])).unwrap())
        .with("id", Value::Bytes(Buffer::copy_from(b"ab")))
        .with("times", Array::from_vec(vec![5i64, 6]));
    let empty = kinds.iter().fold(Element::new(), |element, (name, _)| element.with(name, Value::Null));
    let dir = tempfile::tempdir().unwrap();
    let (parquet, arrow) = (dir.path().join("a.parquet"), dir.path().join("a.arrow"));
    let mut writer = ParquetWriter::new(Vec::new(), ParquetWriterOptions::new().columns(kinds.clone())).unwrap();
    [&full, &empty].into_iter().for_each(|row| writer.write(row).unwrap());
    std::fs::write(&parquet, writer.finish().unwrap()).unwrap();
    let mut writer = ArrowWriter::new(Vec::new(), ArrowWriterOptions::new().columns(kinds.clone())).unwrap();
    [&full, &empty].into_iter().for_each(|row| writer.write(row).unwrap());
    std::fs::write(&arrow, writer.finish().unwrap()).unwrap();
    let (parquet, arrow) = (Parquet::open(&parquet).unwrap(), Arrow::open(&arrow).unwrap());
    for (types, rows) in [
        (parquet.typed_columns().types(|_| true), [parquet.read(0), parquet.read(1)]),
        (arrow.typed_columns().types(|_| true), [arrow.read(0), arrow.read(1)]),
    ] {
        assert_eq!(types, (kinds.clone(), Vec::new()));
        assert_eq!(rows.map(Result::unwrap), [full.clone(), empty.clone()]);
    }
    assert_eq!(parquet.typed_columns().types(|_| false).1.len(), 10, "one for each dimension");
    for (name, value) in
        [("price", Value::from("1.234")), ("v", Array::from_vec(vec![1.0f32]).into()), ("day", "x".into())]
    {
        let mut writer = ParquetWriter::new(Vec::new(), ParquetWriterOptions::new().columns(kinds.clone())).unwrap();
        writer.write(&empty.clone().with(name, value)).unwrap();
        let error = writer.finish().unwrap_err();
        assert!(error.message().contains(name) && error.record_number() == Some(0), "{error}");
    }
}
