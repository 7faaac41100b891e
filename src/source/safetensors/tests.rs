use half::bf16;
use proptest::prelude::*;

use super::*;
use crate::dataset::map::RandomAccess;
use crate::element::{Buffer, DType};
use crate::error::ErrorKind;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn open(options: SafetensorsOptions, header: &str, data: &[u8]) -> Result<Safetensors> {
    options.open_bytes(&file(header, data))
}

/// The data of `b` precedes the data of `a`.
const TWO: &str = r#"{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},"b":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}}"#;
const DATA: [u8; 8] = [1, 2, 3, 4, 0x80, 0x3f, 0, 0x40];

#[test]
fn a_file_is_an_element_or_rows() {
    let source = open(Safetensors::options(), TWO, &DATA).unwrap();
    let element = source.read(0).unwrap();
    let square = Buffer::copy_from(&[1, 2, 3, 4]);
    let want = Element::new().with("b", Array::new(DType::U8, &[2, 2], square).unwrap());
    let want = want.with("a", Array::from_vec(vec![bf16::ONE, bf16::from_f32(2.0)]));
    assert_eq!((source.len(), element), (1, want));
    assert!(source.read(1).is_err());
    let rows = open(Safetensors::options().rows(true).columns(["a", "b"]), TWO, &DATA).unwrap();
    let want = Element::new().with("a", Array::scalar(bf16::from_f32(2.0))).with("b", Array::from_vec(vec![3u8, 4]));
    assert_eq!((rows.len(), rows.read(1).unwrap()), (2, want));
    assert_ne!(rows.facts().identity, source.facts().identity);
}

#[test]
fn files_of_rows_are_alike() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, rows: &[[u8; 2]]| {
        let mut writer = SafetensorsWriter::options().rows(true).write_to(Vec::new());
        rows.iter().for_each(|row| writer.write(&Element::new().with("x", Array::from_vec(row.to_vec()))).unwrap());
        std::fs::write(dir.path().join(name), writer.finish().unwrap()).unwrap();
    };
    write("a.safetensors", &[[1, 2]]);
    write("b.safetensors", &[[3, 4], [5, 6]]);
    let source = Safetensors::options().rows(true).open(dir.path()).unwrap();
    assert_eq!(source.read(2).unwrap().array("x").unwrap().bytes(), [5, 6]);
    let bytes = file(r#"{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, &[1]);
    std::fs::write(dir.path().join("c.safetensors"), bytes).unwrap();
    let error = Safetensors::options().rows(true).open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("c.safetensors: byte 8: its tensors differ from those of a.safetensors"), "{error}");
    assert_eq!(Safetensors::open(dir.path()).unwrap().len(), 3);
}

#[test]
fn what_no_array_has_is_refused_by_name() {
    let header = r#"{"q":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},"c":{"dtype":"C64","shape":[],"data_offsets":[2,10]}}"#;
    let data = [7; 10];
    let error = open(Safetensors::options(), header, &data).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let places =
        format!("a.safetensors: byte {}: tensor \"q\" is of type F8_E4M3, which no array has", header.len() + 8);
    assert_eq!(error.to_string(), places);
    assert!(error.help_text().unwrap().contains("float8_as_u8"));
    let bytes = Safetensors::options().float8_as_u8(true);
    assert!(open(bytes.clone(), header, &data).unwrap_err().message().contains("\"c\" is of type C64"));
    let source = open(bytes.columns(["q"]), header, &data).unwrap();
    assert_eq!(source.read(0).unwrap().array("q").unwrap().as_slice::<u8>().unwrap(), [7, 7]);
}

#[test]
fn damage_has_a_place() {
    let error =
        |options: SafetensorsOptions, header: &str, data: &[u8]| open(options, header, data).unwrap_err().to_string();
    let plain = Safetensors::options;
    let cut = error(plain(), TWO, &DATA[..7]);
    assert!(
        cut.contains(&format!("byte {}: the header describes 8 bytes of tensors, 7 follow", TWO.len() + 8)),
        "{cut}"
    );
    assert!(error(plain(), "{", b"").contains("byte 8: the header is damaged"));
    assert!(error(plain(), &TWO.replace("[4,8]", "[5,9]"), &DATA).contains("byte 8: the header is damaged"));
    assert!(error(plain().columns(["c"]), TWO, &DATA).contains("no column \"c\""));
    let rows = error(plain().rows(true), &TWO.replace("[2],", "[1,2],"), &DATA);
    assert!(rows.contains("tensor \"b\" has 2 rows and \"a\" has 1"), "{rows}");
    let scalar = r#"{"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#;
    assert!(error(plain().rows(true), scalar, &[1]).contains("\"x\" has no dimension"));
    let open = |bytes: &[u8]| plain().open_bytes(bytes).unwrap_err().to_string();
    assert_eq!(open(b"1234567"), "a.safetensors: byte 7: 7 bytes, the length of the header alone has 8");
    let huge = open(&(1u64 << 63).to_le_bytes());
    assert!(huge.starts_with("a.safetensors: byte 0: a header of 9223372036854775808 bytes, where 0 follow"), "{huge}");
}

#[test]
fn only_what_a_file_holds_is_written() {
    let mut writer = SafetensorsWriter::options().write_to(Vec::new());
    let error =
        |writer: &mut SafetensorsWriter<Vec<u8>>, element: Element| writer.write(&element).unwrap_err().to_string();
    assert!(error(&mut writer, Element::new().with("x", "text")).starts_with("record 0: "));
    assert!(error(&mut writer, Element::new().with("__metadata__", Array::scalar(1u8))).contains("for itself"));
    writer.write(&Element::new().with("x", Array::scalar(1u8))).unwrap();
    assert!(error(&mut writer, Element::new().with("x", Array::scalar(1u8))).contains("record 1: a second element"));
    let mut writer = SafetensorsWriter::options().rows(true).write_to(Vec::new());
    writer.write(&Element::new().with("x", Array::scalar(1u8))).unwrap();
    let wrong = error(&mut writer, Element::new().with("x", Array::scalar(1u16)));
    assert_eq!(wrong, "record 1: \"x\" is uint16[], in the first row uint8[]");
    assert!(error(&mut writer, Element::new()).contains("0 fields, the first row has 1"));
    let none = SafetensorsWriter::options().write_to(Vec::new()).finish().unwrap();
    assert_eq!(Safetensors::options().open_bytes(&none).unwrap().read(0).unwrap(), Element::new());
}

proptest! {
    #[test]
    fn what_is_written_is_read(rows in prop::collection::vec((any::<[f32; 3]>(), any::<i64>()), 1..10)) {
        let elements = rows.iter().map(|(x, y)| Element::new().with("y", Array::scalar(*y)).with("x", Array::from_vec(x.to_vec())));
        let elements: Vec<Element> = elements.collect();
        let mut writer = SafetensorsWriter::options().rows(true).write_to(Vec::new());
        elements.iter().try_for_each(|element| writer.write(element)).unwrap();
        let file = writer.finish().unwrap();
        let source = Safetensors::options().rows(true).columns(["y", "x"]).open_bytes(&file).unwrap();
        let bytes = |element: &Element| ["x", "y"].map(|name| element.array(name).unwrap().bytes().to_vec());
        for (i, element) in elements.iter().enumerate() {
            prop_assert_eq!(bytes(&source.read(i as u64).unwrap()), bytes(element));
            let mut writer = SafetensorsWriter::options().write_to(Vec::new());
            writer.write(element).unwrap();
            let one = Safetensors::options().open_bytes(&writer.finish().unwrap()).unwrap().read(0).unwrap();
            prop_assert_eq!(bytes(&one), bytes(element));
        }
    }

    #[test]
    fn any_damage_is_survived(at in any::<prop::sample::Index>(), byte in any::<u8>(), rows in any::<bool>()) {
        let mut bytes = file(TWO, &DATA);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(source) = Safetensors::options().rows(rows).open_bytes(&bytes) {
            (0..source.len().min(100)).for_each(|i| drop(source.read(i)));
        }
    }
}
