use std::sync::Arc as Shared;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array as _, ArrayRef, Decimal128Array, DictionaryArray, FixedSizeListArray, Float32Array, Int32Array, ListArray,
    RecordBatch, StringArray, UInt16Array,
};
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, MetadataVersion};
use arrow_schema::{DataType, Field, Schema};

use super::*;
use crate::dataset::map::RandomAccess;
use crate::element::{Array, Buffer, DType, Element, Value};
use crate::source::arrow::types::{BFLOAT16, EXTENSION};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn stream(batches: &[RecordBatch], options: IpcWriteOptions) -> Vec<u8> {
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn file(batches: &[RecordBatch], options: IpcWriteOptions) -> Vec<u8> {
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn open(bytes: &[u8]) -> Result<Arrow> {
    Arrow::options().open_contents(vec![("x.arrow".into(), Content::from(Buffer::copy_from(bytes)))])
}

fn dictionary(keys: &[i32], values: &[&str]) -> RecordBatch {
    let array = DictionaryArray::<Int32Type>::try_new(
        Int32Array::from(keys.to_vec()),
        Shared::new(StringArray::from(values.to_vec())),
    );
    batch(vec![("d", Shared::new(array.unwrap()) as ArrayRef)])
}

fn texts(source: &Arrow, rows: impl Iterator<Item = u64>) -> Vec<String> {
    rows.map(|row| source.read(row).unwrap().text("d").unwrap().to_owned()).collect()
}

#[test]
fn dictionaries_grow_and_are_replaced() {
    let batches = [
        dictionary(&[0, 1], &["a", "b"]),
        dictionary(&[2, 0], &["a", "b", "c"]),
        dictionary(&[0, 1], &["x", "y"]),
        dictionary(&[2, 1], &["x", "y", "z"]),
    ];
    for handling in [DictionaryHandling::Delta, DictionaryHandling::Resend] {
        let bytes = stream(&batches, IpcWriteOptions::default().with_dictionary_handling(handling));
        let source = open(&bytes).unwrap();
        let want = ["a", "b", "c", "a", "x", "y", "z", "y"];
        assert_eq!(texts(&source, 0..8), want, "{handling:?}");
        // Reads from last to first, with an empty cache.
        let source = Arrow::options().cache_bytes(0);
        let source = source.open_contents(vec![("x".into(), Content::from(Buffer::copy_from(&bytes)))]).unwrap();
        assert!(texts(&source, (0..8).rev()).iter().rev().eq(want), "{handling:?}");
    }
    let delta = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    assert_eq!(texts(&open(&file(&batches[..2], delta)).unwrap(), 0..4), ["a", "b", "c", "a"]);
}

#[test]
fn what_is_not_compressed_is_viewed_where_it_lies() {
    let numbers: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let list = ListArray::from_iter_primitive::<arrow_array::types::Float32Type, _, _>([Some(
        numbers.iter().map(|&x| Some(x)).collect::<Vec<_>>(),
    )]);
    let rows = [batch(vec![("x", Shared::new(list) as ArrayRef)])];
    let content = Buffer::copy_from(&stream(&rows, IpcWriteOptions::default()));
    let source = Arrow::options().open_contents(vec![("x".into(), Content::from(content.clone()))]).unwrap();
    let row = source.read(0).unwrap();
    let array = row.array("x").unwrap();
    assert_eq!(array.as_slice::<f32>().unwrap(), numbers);
    assert!(content.as_bytes().as_ptr_range().contains(&array.bytes().as_ptr()));

    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let options = IpcWriteOptions::default().try_with_compression(Some(codec)).unwrap();
        let source = open(&file(&rows, options)).unwrap();
        assert_eq!(source.read(0).unwrap(), row);
    }
}

#[test]
fn lists_of_fixed_size_are_dimensions() {
    let numbers: ArrayRef = Shared::new(Float32Array::from_iter_values((0..24).map(|i| i as f32)));
    let fixed = |size, values: ArrayRef| -> ArrayRef {
        let item = Shared::new(Field::new("item", values.data_type().clone(), true));
        Shared::new(FixedSizeListArray::try_new(item, size, values, None).unwrap())
    };
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([2, 0]);
    let inner = fixed(3, fixed(4, numbers.clone()));
    let item = Shared::new(Field::new("item", inner.data_type().clone(), true));
    let ragged: ArrayRef = Shared::new(ListArray::try_new(item, offsets, inner.clone(), None).unwrap());
    let source = open(&stream(&[batch(vec![("a", inner), ("b", ragged)])], IpcWriteOptions::default())).unwrap();
    let (first, second) = (source.read(0).unwrap(), source.read(1).unwrap());
    assert_eq!(first.array("a").unwrap().shape(), [3, 4]);
    assert_eq!(second.array("a").unwrap().as_slice::<f32>().unwrap()[0], 12.0);
    assert_eq!(
        (first.array("b").unwrap().shape(), second.array("b").unwrap().shape()),
        ([2, 3, 4].as_slice(), [0, 3, 4].as_slice())
    );
}

/// Reads numbers of 16 bytes from a file aligned to 8 bytes.
#[test]
fn what_is_not_aligned_is_copied() {
    let decimals = Decimal128Array::from(vec![12_345, -1]).with_precision_and_scale(10, 2).unwrap();
    let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5).unwrap();
    let column = ("x", Shared::new(decimals) as ArrayRef);
    for pad in 0..4 {
        // A name of another length moves the bytes after it.
        let other =
            (&"yyyyyyyyyyyyyyyyyyyyyyyyy"[..1 + 8 * pad], Shared::new(Int32Array::from(vec![1, 2])) as ArrayRef);
        let source = open(&stream(&[batch(vec![other, column.clone()])], options.clone())).unwrap();
        assert_eq!(source.read(0).unwrap().text("x").unwrap(), "123.45");
        assert_eq!(source.read(1).unwrap().text("x").unwrap(), "-0.01");
    }
}

#[test]
fn brain_floats_are_marked() {
    let field = |metadata: &[(&str, &str)]| {
        let metadata: std::collections::HashMap<_, _> =
            metadata.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        Field::new("x", DataType::UInt16, true).with_metadata(metadata)
    };
    for (metadata, dtype) in [(vec![(EXTENSION, BFLOAT16)], DType::BF16), (vec![], DType::U16)] {
        let schema = Schema::new(vec![field(&metadata)]);
        let bits: ArrayRef = Shared::new(UInt16Array::from(vec![Some(0x3f80), None]));
        let rows = RecordBatch::try_new(Shared::new(schema), vec![bits]).unwrap();
        let source = open(&stream(&[rows], IpcWriteOptions::default())).unwrap();
        assert_eq!(source.read(0).unwrap().array("x").unwrap().dtype(), dtype);
        assert_eq!(source.read(1).unwrap().get("x"), Some(&Value::Null));
    }
}

/// Reads headers as written before version 0.15: without the marker before the length.
#[test]
fn old_headers_are_read() {
    let options = IpcWriteOptions::try_new(8, true, MetadataVersion::V4).unwrap();
    let rows = [batch(vec![("x", Shared::new(Int32Array::from(vec![7])) as ArrayRef)])];
    let bytes = stream(&rows, options);
    assert_ne!(bytes[..4], [0xff; 4]);
    assert_eq!(open(&bytes).unwrap().read(0).unwrap().array("x").unwrap().as_i64(), Some(7));
}

#[test]
fn lengths_are_held_against_the_file() {
    let rows = [batch(vec![("x", Shared::new(Int32Array::from_iter_values(0..100)) as ArrayRef)])];
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let bytes = stream(&rows, options);
    // Uncompressed length of the buffer.
    let length = 400u64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == length).unwrap();
    let mut claims = bytes.clone();
    claims[at..at + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let error = open(&claims).unwrap().read(0).unwrap_err();
    assert!(error.message().contains("claim to hold 1099511627776"), "{error}");
    assert!(error.to_string().contains("x.arrow: record 0: byte "), "{error}");

    for end in 1..bytes.len() {
        if let Ok(source) = open(&bytes[..end]) {
            (0..source.len()).for_each(|row| drop(source.read(row)));
        }
    }
    assert!(open(b"FEA1\0\0\0\0").unwrap_err().message().contains("version 1 of Feather"));
    assert!(open(b"ARROW1\0\0").unwrap_err().message().contains("cut"));
    assert!(open(b"").unwrap_err().to_string().contains("byte 0"));
}

#[test]
fn folders_name_their_files_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    for (name, number) in [("a.arrow", 1), ("b.arrow", 2), ("c.arrow", 3)] {
        let rows = [batch(vec![("x", Shared::new(Int32Array::from(vec![number])) as ArrayRef)])];
        write(name, &stream(&rows, IpcWriteOptions::default()));
    }
    write("dataset_info.json", b"{}");
    let state = |names: &[&str]| {
        let files: Vec<_> = names.iter().map(|name| serde_json::json!({"filename": name})).collect();
        write("state.json", serde_json::json!({"_data_files": files}).to_string().as_bytes());
    };
    state(&["c.arrow", "a.arrow"]);
    let path = dir.path().display().to_string();
    for folder in [format!("file://{path}"), path] {
        let source = Arrow::open(&folder).unwrap();
        let numbers: Vec<_> = (0..source.len()).map(|i| source.read(i).unwrap().array("x").unwrap().as_i64()).collect();
        assert_eq!(numbers, [Some(3), Some(1)], "{folder}");
    }
    for name in ["../a.arrow", "/a.arrow", "sub/a.arrow", ""] {
        state(&[name]);
        assert!(Arrow::open(dir.path()).unwrap_err().message().contains("no file of this folder"), "{name}");
    }
    state(&[]);
    assert!(Arrow::open(dir.path()).unwrap_err().to_string().contains("state.json: names no files"));
    write("dataset_dict.json", br#"{"splits": ["train", "test"]}"#);
    let error = Arrow::open(dir.path()).unwrap_err();
    assert!(error.help_text().unwrap().contains(&dir.path().join("test").display().to_string()), "{error:?}");
}

#[test]
fn folders_are_written_in_several_files() {
    use crate::source::HuggingFaceWriter;
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, file_bytes| {
        let folder = dir.path().join(name);
        let mut writer = HuggingFaceWriter::new(&folder, file_bytes).unwrap();
        for i in 0..10i64 {
            // Later files have nulls only, but keep the columns of the first file.
            let value = if i < 4 { Value::from(Array::scalar(i)) } else { Value::Null };
            writer.write(&Element::new().with("i", value).with("text", "abcd")).unwrap();
        }
        writer.finish().unwrap();
        folder
    };
    let (one, several) = (write("one", u64::MAX), write("several", 24));
    let read = |folder| {
        let source = Arrow::open(&folder).unwrap();
        (0..source.len()).map(|i| source.read(i).unwrap()).collect::<Vec<_>>()
    };
    assert!(several.join("data-00002.arrow").is_file() && !several.join("data-00003.arrow").exists());
    let rows = read(several);
    assert_eq!((rows.len(), rows[3].array("i").unwrap().as_i64(), rows[4].get("i")), (10, Some(3), Some(&Value::Null)));
    assert_eq!(read(one), rows);
    let state = |name| std::fs::read_to_string(dir.path().join(name).join("state.json")).unwrap();
    let before = state("several");
    write("several", 24);
    assert_eq!(state("several"), before);
    HuggingFaceWriter::new(dir.path().join("none"), 1).unwrap().finish().unwrap();
    assert_eq!(Arrow::open(dir.path().join("none")).unwrap().len(), 0);
}

#[test]
fn shapes_in_the_schema_are_those_of_arrays() {
    let numbers: ArrayRef = Shared::new(Int32Array::from_iter_values(0..12));
    let open_as = |name: &str, told: &str, sizes: &[usize]| {
        let item = Shared::new(Field::new("item", DataType::Int32, true));
        let lengths = arrow_buffer::OffsetBuffer::from_lengths(sizes.iter().copied());
        let inner: ArrayRef = Shared::new(ListArray::try_new(item, lengths, numbers.clone(), None).unwrap());
        let item = Shared::new(Field::new("item", inner.data_type().clone(), true));
        let rows = arrow_buffer::OffsetBuffer::from_lengths([inner.len()]);
        let column: ArrayRef = Shared::new(ListArray::try_new(item, rows, inner, None).unwrap());
        let metadata = [(EXTENSION, name), ("ARROW:extension:metadata", told)];
        let metadata: std::collections::HashMap<_, _> =
            metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
        let field = Field::new("x", column.data_type().clone(), true).with_metadata(metadata);
        let rows = RecordBatch::try_new(Shared::new(Schema::new(vec![field])), vec![column]).unwrap();
        let source = open(&stream(&[rows], IpcWriteOptions::default())).unwrap();
        source.read(0).unwrap().get("x").unwrap().clone()
    };
    let array = "datasets.features.features.Array2DExtensionType";
    for told in [r#"[[3, 4], "int32"]"#, r#"[[null, 4], "int32"]"#] {
        let Value::Array(read) = open_as(array, told, &[4, 4, 4]) else { panic!("{told} is an array") };
        assert_eq!(
            (read.shape(), read.as_slice::<i32>().unwrap()),
            ([3, 4].as_slice(), (0..12).collect::<Vec<_>>().as_slice())
        );
    }
    // Columns with wrong metadata keep the shape of their lists.
    for (name, told, sizes) in [
        (array, r#"[[3, 4], "int32"]"#, [4, 3, 5]),
        (array, r#"[[4, 3], "int32"]"#, [4, 4, 4]),
        (array, r#"[[5, 4], "int32"]"#, [4, 4, 4]),
        (array, "[[]", [4, 4, 4]),
        ("another", r#"[[3, 4], "int32"]"#, [4, 4, 4]),
    ] {
        let Value::List(lists) = open_as(name, told, &sizes) else { panic!("{name} {told} {sizes:?} is a list") };
        assert_eq!(lists.len(), 3);
    }
}

/// Like the shards of a sink: the rows of each shard determine its columns.
#[test]
fn files_of_nulls_alone_are_of_any_type() {
    use crate::source::{ArrowWriter, ArrowWriterOptions};
    let one = |value: Value| {
        let tree = Element::new().with("deep", Value::List(vec![value.clone()]));
        let mut writer = ArrowWriter::new(Vec::new(), ArrowWriterOptions::new()).unwrap();
        writer.write(&Element::new().with("x", value).with("tree", tree)).unwrap();
        Content::from(Buffer::copy_from(&writer.finish().unwrap()))
    };
    let open = |files: [Value; 3]| {
        let contents = files.into_iter().zip(["a", "b", "c"]).map(|(value, name)| (name.into(), one(value)));
        Arrow::options().open_contents(contents.collect())
    };
    let source = open(["a".into(), Value::Null, "c".into()]).unwrap();
    let read: Vec<_> = (0..3).map(|row| source.read(row).unwrap().get("x").unwrap().clone()).collect();
    assert_eq!(read, ["a".into(), Value::Null, "c".into()]);
    for files in
        [["a".into(), Value::Null, Array::scalar(1i32).into()], [Value::Null, "b".into(), Array::scalar(1i32).into()]]
    {
        let error = open(files).unwrap_err();
        assert!(error.to_string().starts_with("c: column \"x\" is of type Int32"), "{error}");
    }
}

/// Files in the order of their list, not of their names.
#[cfg(all(feature = "http", feature = "formats"))]
#[test]
fn a_saved_folder_of_objects_is_a_folder_of_files() {
    let Some(fixtures) = crate::store::tests::Fixtures::find() else { return };
    let dir = tempfile::tempdir().unwrap();
    let state = r#"{"_data_files": [{"filename": "b.arrow"}, {"filename": "a.arrow"}], "_fingerprint": "0"}"#;
    let case = fixtures.cases("arrow").into_iter().find(|case| !case["file_bytes"].is_null()).unwrap();
    let bytes = std::fs::read(fixtures.near("arrow").join(case["file"].as_str().unwrap())).unwrap();
    let info = b"{}".to_vec();
    for (name, bytes) in
        [("a.arrow", bytes.clone()), ("b.arrow", bytes), ("state.json", state.into()), ("dataset_info.json", info)]
    {
        std::fs::write(dir.path().join(name), &bytes).unwrap();
        fixtures.server.put(&format!("saved/{name}"), bytes);
    }
    let near = Arrow::open(dir.path()).unwrap();
    for url in [fixtures.server.url("saved"), fixtures.server.url("saved/")] {
        let far = Arrow::open(&url).unwrap();
        crate::store::tests::assert_same(&near, &far);
        let at = |name| far.facts().identity.find(name);
        assert!(at("b.arrow").is_some() && at("b.arrow") < at("a.arrow"), "{}", far.facts().identity);
    }
}
