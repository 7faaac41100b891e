use serde_json::Value as Json;

use super::*;
use crate::ErrorKind;
use crate::dataset::map::RandomAccess;

fn open(text: &str) -> JsonArray {
    JsonArray::options().open_bytes(text.as_bytes()).unwrap()
}

fn fails(text: &str) -> String {
    let error = JsonArray::options().open_bytes(text.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    error.to_string()
}

#[test]
fn records_are_the_items_whatever_their_layout() {
    let tight = r#"[{"a":"x]}\"{,","b":[[1],{"c":"]"}]},{"a":"y","b":[]}]"#;
    let items: Vec<Json> = serde_json::from_str(tight).unwrap();
    let wide = format!("\u{feff}\n {} \r\n", serde_json::to_string_pretty(&items).unwrap());
    for text in [tight, &wide] {
        let source = open(text);
        assert_eq!(source.len(), 2);
        assert_eq!(source.read(0).unwrap().text("a").unwrap(), "x]}\"{,");
        assert_eq!(source.read(1).unwrap().text("a").unwrap(), "y");
    }
    assert_eq!(open("[]").len(), 0);
    assert_eq!(open(" [ \n ] ").len(), 0);
}

#[test]
fn an_item_that_is_no_record_is_bad_alone() {
    let source = open(r#"[{"a": 1}, 7, null, "a,]", [1, 2], {"a": 01}, {"a": 2}]"#);
    assert_eq!(source.len(), 7);
    assert!(source.read(0).is_ok() && source.read(6).is_ok());
    for (record, byte) in [(1, 11), (2, 14), (3, 20), (4, 27), (5, 42)] {
        let error = source.read(record).unwrap_err().to_string();
        let place = format!("a.json: record {record}: byte {byte}: ");
        assert!(error.starts_with(&place), "{error}, not {place}");
    }
}

#[test]
fn a_file_that_is_no_array_or_cut_is_refused_with_the_place() {
    assert!(fails("").ends_with("byte 0: expected an array: [, found the end of the file"));
    assert!(fails("{\"a\": 1}\n").ends_with("byte 0: expected an array: [, found '{'"));
    assert!(fails("[{\"a\": 1},,{}]").ends_with("byte 10: expected an item, found ','"));
    assert!(fails("[{\"a\": 1},]").ends_with("byte 10: expected an item, found ']'"));
    assert!(fails("[{}] x").ends_with("byte 5: expected the end of the file after the array, found 'x'"));
    let whole = r#"[{"a": "\\"}, {"b": [1]}]"#;
    open(whole);
    for cut in 1..whole.len() {
        let error = fails(&whole[..cut]);
        assert!(error.contains("the file ends within"), "{cut}: {error}");
    }
    assert!(fails(&whole[..20]).ends_with("the file ends within item 1, which begins at byte 14"));
}

#[test]
fn columns_and_repeated_names_are_those_of_json_lines() {
    let text = br#"[{"a": 1, "b": 2}, {"a": 1, "a": 2}, {"b": 3}]"#;
    let options = || JsonArray::options().columns(["a"]);
    let source = options().open_bytes(text).unwrap();
    assert_eq!(source.read(0).unwrap().len(), 1);
    let error = source.read(2).unwrap_err().to_string();
    assert!(error.contains("record 2: byte 37: no column \"a\""), "{error}");
    let strict = options().repeated_names(RepeatedNames::Error).open_bytes(text).unwrap();
    assert!(source.read(1).is_ok() && strict.read(1).is_err());
    assert_ne!(source.facts().identity, strict.facts().identity);
}

#[test]
fn positions_are_kept_beside_the_file_and_follow_its_contents() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.json");
    for count in [3, 5] {
        let items: Vec<Json> = (0..count).map(|i| serde_json::json!({ "i": i })).collect();
        std::fs::write(&path, serde_json::to_vec_pretty(&items).unwrap()).unwrap();
        for _ in 0..2 {
            let source = JsonArray::open(&path).unwrap();
            let numbers = (0..source.len()).map(|i| source.read(i).unwrap().array("i").unwrap().as_i64().unwrap());
            assert_eq!(numbers.collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
        }
    }
}
