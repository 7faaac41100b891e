//! Round trips through folders, and rejected values.

use proptest::prelude::*;

use super::*;
use crate::dataset::map::RandomAccess;
use crate::element::{Array, DType, Value};

fn elements() -> impl Strategy<Value = Vec<Element>> {
    let element =
        (any::<i64>(), ".{0,20}", prop::collection::vec(any::<u8>(), 0..40), 1usize..4, any::<f32>(), any::<bool>());
    let element = element.prop_map(|(id, text, raw, rows, score, flag)| {
        let pixels = Array::new(DType::U16, &[rows, 2], Buffer::from_vec(vec![id as u16; 2 * rows])).unwrap();
        Element::new()
            .with("id", Array::scalar(id))
            .with("text", text.as_str())
            .with("raw", Value::Bytes(Buffer::copy_from(&raw)))
            .with("pixels", pixels)
            .with("score", Array::scalar(score))
            .with("more", Value::List(vec![Array::bool(flag).into(), text.as_str().into(), Value::Null]))
    });
    prop::collection::vec(element, 1..30)
}

/// Formats fields sorted by name, as in the format, and by their bytes, because NaN differs from itself.
fn sorted(element: &Element) -> String {
    let mut fields: Vec<_> = element.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    let bytes = |value: &Value| match value {
        Value::Array(array) => format!("{array:?} {:?}", array.bytes()),
        Value::Str(text) => text.to_string(),
        Value::Bytes(bytes) => format!("{:?}", bytes.as_bytes()),
        other => format!("{other:?}"),
    };
    fields.into_iter().map(|(name, value)| format!("{name}={};", bytes(value))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_is_written_is_read(elements in elements(), limit in 200u64..2000, codec in 0usize..6, seed in any::<u64>()) {
        let dir = tempfile::tempdir().unwrap();
        let mut options = MdsWriter::options().size_limit(Some(limit)).hashes(["sha1", "xxh3_64"]);
        if let Some(codec) = ["zstd:1", "gz:1", "bz2:1", "br:1", "snappy"].get(codec) {
            options = options.compression(*codec);
        }
        let mut writer = options.create(dir.path()).unwrap();
        elements.iter().for_each(|element| writer.write(element).unwrap());
        prop_assert_eq!(writer.len(), elements.len() as u64);
        writer.finish().unwrap();
        let source = Mds::options().check_hashes(true).cache_bytes(0).open(dir.path()).unwrap();
        prop_assert_eq!(source.len(), elements.len() as u64);
        source.verify().unwrap();
        let order: Vec<u64> = (0..source.len()).map(|i| (i.wrapping_mul(7) ^ seed) % source.len()).collect();
        for (index, read) in order.iter().zip(source.read_many(&order)) {
            prop_assert_eq!(sorted(&read.unwrap().unwrap()), sorted(&elements[*index as usize]));
        }
    }
}

#[test]
fn what_cannot_be_written_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let create = |name: &str| MdsWriter::create(dir.path().join(name)).unwrap();
    let mut writer = create("a");
    writer.write(&Element::new().with("x", "text")).unwrap();
    let error = |writer: &mut MdsWriter, element: Element| writer.write(&element).unwrap_err().to_string();
    let number = Array::scalar(1u8);
    assert_eq!(
        error(&mut writer, Element::new().with("x", number.clone())),
        "record 1: array is not of the encoding, in column \"x\""
    );
    assert!(error(&mut writer, Element::new()).contains("record 1: no field \"x\""));
    assert!(error(&mut writer, Element::new().with("x", "a").with("y", "b")).contains("\"y\" is no column"));
    // Rejected samples are not written.
    writer.write(&Element::new().with("x", "more")).unwrap();
    writer.finish().unwrap();
    let source = Mds::open(dir.path().join("a")).unwrap();
    assert_eq!((source.len(), source.read(1).unwrap().text("x").unwrap()), (2, "more"));
    assert!(MdsWriter::create(dir.path().join("a")).unwrap_err().message().contains("is there already"));
    let refused = |options: MdsWriterOptions| options.create(dir.path().join("b")).unwrap_err().to_string();
    assert!(refused(MdsWriter::options().columns([("a", "pkl")])).contains("pickles"));
    assert!(refused(MdsWriter::options().columns([("a", "str"), ("a", "int")])).contains("twice"));
    assert!(refused(MdsWriter::options().hashes(["crc32"])).contains("crc32"));
    assert!(refused(MdsWriter::options().compression("lz4")).contains("lz4"));
    create("empty").finish().unwrap();
    assert_eq!(Mds::open(dir.path().join("empty")).unwrap().len(), 0);
}

/// Writes a column of every writable encoding and reads it back.
#[test]
fn columns_of_every_encoding() {
    let dir = tempfile::tempdir().unwrap();
    let file = || Value::Bytes(Buffer::copy_from(b"an image"));
    let pixels: Value = Array::new(DType::U8, &[1, 2, 3], Buffer::copy_from(&[1, 2, 3, 4, 5, 6])).unwrap().into();
    let columns: Vec<(&str, Value)> = vec![
        ("int", Array::scalar(-7i64).into()),
        ("uint8", Array::scalar(7u8).into()),
        ("float16", Array::scalar(half::f16::from_f32(0.5)).into()),
        ("str_int", Array::scalar(u64::MAX).into()),
        ("str_float", Array::scalar(-1e-300f64).into()),
        ("str_decimal", "1.10".into()),
        ("ndarray", Array::from_vec(vec![1i32, 2]).into()),
        ("ndarray:int32", Array::from_vec(vec![1i32, 2]).into()),
        ("ndarray:int32:2", Array::from_vec(vec![1i32, 2]).into()),
        ("json", Element::new().with("a", Value::Null).into()),
        ("jpeg", file()),
        ("png", file()),
        ("pil", pixels.clone()),
        ("list[pil]", Value::List(vec![pixels.clone(), pixels])),
        ("list[jpeg]", Value::List(vec![file(), file()])),
        ("jpeg_array", Value::List(vec![file()])),
        ("bytes", file()),
        ("str", "".into()),
    ];
    let mut writer =
        MdsWriter::options().columns(columns.iter().map(|(name, _)| (*name, *name))).create(dir.path()).unwrap();
    let element = columns.iter().fold(Element::new(), |element, (name, value)| element.with(name, value.clone()));
    writer.write(&element.clone().with("left out", "")).unwrap();
    writer.finish().unwrap();
    let read = Mds::options().images(false).open(dir.path()).unwrap().read(0).unwrap();
    assert_eq!(read.len(), columns.len());
    columns.iter().for_each(|(name, value)| assert_eq!(read.get(name), Some(value), "{name}"));
    if cfg!(feature = "image") {
        let error = Mds::open(dir.path()).unwrap().read(0).unwrap_err().to_string();
        assert!(error.contains("record 0: byte ") && error.contains("column \"jpeg\""), "{error}");
    }
}

/// An uncompressed file takes precedence over its compressed copy.
#[test]
fn a_shard_that_is_there_twice_is_read_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = MdsWriter::options().compression("gz").create(dir.path()).unwrap();
    writer.write(&Element::new().with("x", "text")).unwrap();
    writer.finish().unwrap();
    let packed = Mds::open(dir.path()).unwrap();
    let is_packed = |mds: &Mds| mds.0.files()[0].index.is_packed();
    assert!(is_packed(&packed));
    let bytes = packed.0.files()[0].unpack(false).unwrap();
    std::fs::write(dir.path().join("shard.00000.mds"), bytes.as_bytes()).unwrap();
    let plain = Mds::open(dir.path()).unwrap();
    assert!(!is_packed(&plain) && plain.read(0).unwrap() == packed.read(0).unwrap());
    std::fs::write(dir.path().join("shard.00000.mds"), b"cut").unwrap();
    let error = Mds::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("shard.00000.mds: byte 3: 3 bytes, index.json says"), "{error}");
    std::fs::remove_file(dir.path().join("shard.00000.mds")).unwrap();
    std::fs::remove_file(dir.path().join("shard.00000.mds.gz")).unwrap();
    assert!(Mds::open(dir.path()).unwrap_err().to_string().contains("shard.00000.mds"));
}

/// An index, and the shards that it names.
#[cfg(all(feature = "http", feature = "formats"))]
#[test]
fn folders_of_objects_are_folders_of_files() {
    let Some(fixtures) = crate::store::tests::Fixtures::find() else { return };
    for case in fixtures.cases("mds") {
        let folder = format!("mds/{}", case["file"].as_str().unwrap());
        for file in std::fs::read_dir(fixtures.near(&folder)).unwrap().flatten() {
            fixtures.put(&format!("{folder}/{}", file.file_name().to_string_lossy()));
        }
        let far = Mds::open(fixtures.server.url(&format!("{folder}/index.json"))).unwrap();
        crate::store::tests::assert_same(&Mds::open(fixtures.near(&folder)).unwrap(), &far);
    }
}
