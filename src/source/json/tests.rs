use proptest::prelude::*;
use serde_json::Value as Tree;

use super::*;

fn read(line: &str, policy: RepeatedNames) -> Result<(Element, bool), Fault> {
    record(line, &Wanted::All, policy).map_err(|fault| match fault {
        RecordFault::Damaged(fault) => fault,
        RecordFault::Missing(name) => unreachable!("{name}"),
    })
}

fn all(line: &str) -> Result<Element, Fault> {
    read(line, RepeatedNames::Last).map(|(element, _)| element)
}

fn columns(line: &str, names: &[&str]) -> Result<Element, RecordFault> {
    let wanted = Wanted::Columns(names.iter().map(Name::new).collect());
    record(line, &wanted, RepeatedNames::Last).map(|(element, _)| element)
}

#[test]
fn types() {
    let line = r#" {"s": "a\n", "i": -3, "u": 18446744073709551615, "f": 0.5, "b": true, "n": null,
        "ints": [1, -2], "floats": [1, 2.5, 3], "none": [], "mixed": [1, true], "nested": [[1], ["x"]], "o": {"k": {}}} "#;
    let e = all(line).unwrap();
    assert_eq!(e.text("s").unwrap(), "a\n");
    assert_eq!(e.get("i"), Some(&Array::scalar(-3i64).into()));
    assert_eq!(e.get("u"), Some(&Array::scalar(u64::MAX).into()));
    assert_eq!(e.get("f"), Some(&Array::scalar(0.5f64).into()));
    assert_eq!(e.get("b"), Some(&Array::bool(true).into()));
    assert_eq!(e.get("n"), Some(&Value::Null));
    assert_eq!(e.array("ints").unwrap().as_slice::<i64>().unwrap(), [1, -2]);
    assert_eq!(e.array("floats").unwrap().as_slice::<f64>().unwrap(), [1.0, 2.5, 3.0]);
    assert_eq!(e.array("none").unwrap().shape(), [0]);
    assert_eq!(e.get("mixed"), Some(&Value::List(vec![Array::scalar(1i64).into(), Array::bool(true).into()])));
    let nested = [Array::from_vec(vec![1i64]).into(), Value::List(vec!["x".into()])];
    assert_eq!(e.get("nested"), Some(&Value::List(nested.to_vec())));
    assert_eq!(e.get("o"), Some(&Element::new().with("k", Element::new()).into()));
}

#[test]
fn whole_numbers_of_any_length() {
    for digits in 1..40 {
        let line = format!("{{\"a\": {0}, \"b\": -{0}, \"c\": 10}}", "9".repeat(digits));
        let (e, want) = (all(&line).unwrap(), serde_json::from_str::<Tree>(&line).unwrap());
        if digits < 19 {
            assert_eq!(to_json(&e.clone().into()), want);
        }
        assert_eq!(e.get("a").unwrap().nbytes(), 8, "{line}");
        assert_eq!(columns(&line, &["c"]).unwrap().get("c"), Some(&Array::scalar(10i64).into()));
    }
    for wrong in ["007", "-", "-01", "1.", "+1", "0x1", "1 2"] {
        assert!(all(&format!("{{\"a\": {wrong}}}")).is_err(), "{wrong}");
    }
    assert_eq!(all("{\"a\": -0}").unwrap().get("a"), Some(&Array::scalar(-0.0f64).into()));
}

#[test]
fn chosen_columns_come_in_the_order_asked_for() {
    let line = r#"{"a": 1, "b": {"x": [1, "]"]}, "c": "z\\", "d": 2}"#;
    let e = columns(line, &["d", "a"]).unwrap();
    assert_eq!(e.iter().map(|(n, _)| n).collect::<Vec<_>>(), ["d", "a"]);
    assert!(matches!(columns(line, &["a", "e"]), Err(RecordFault::Missing(name)) if name == "e"));
    assert_eq!(names(line), ["a", "b", "c", "d"]);
}

#[test]
fn damage_behind_the_chosen_column_is_seen() {
    for rest in ["", ", ", ", \"b\"", ", \"b\": ", ", \"b\": nul", ", \"b\": 1", ", \"b\": [1}", ", \"b\": \"x", "} x"]
    {
        let line = format!("{{\"a\": 1{rest}");
        assert!(columns(&line, &["a"]).is_err(), "{line}");
        assert!(all(&line).is_err(), "{line}");
    }
}

#[test]
fn faults_say_where() {
    let at = |line: &str| all(line).unwrap_err().at;
    assert_eq!(at("[1]"), 0);
    assert_eq!(at(r#"{"a": tru}"#), 9);
    let at = |line: &str| read(line, RepeatedNames::Error).unwrap_err().at;
    assert_eq!(at(r#"{"a": 1, "a": 2}"#), 14);
    assert_eq!(at(r#"{"a": [1, {"b": 0, "b": 1}]}"#), 25);
    assert_eq!(all(r#"{"a": 1e999}"#).unwrap_err().message, "number out of range");
    let deep = format!("{{\"a\": {}", "[".repeat(100_000));
    assert!(all(&deep).unwrap_err().message.contains("recursion limit"));
    let many: Vec<_> = (0..=MAX_NAMES).map(|i| format!("\"{i}\":0")).collect();
    assert!(all(&format!("{{{}}}", many.join(","))).unwrap_err().message.contains("10000 names"));
    let same = vec!["\"a\":0"; MAX_NAMES + 1].join(",");
    for line in [format!("{{{same}}}"), format!("{{\"o\": {{{same}}}}}")] {
        assert!(all(&line).unwrap_err().message.contains("10000 names"));
    }
}

#[test]
fn of_a_repeated_name_the_last_value_stands() {
    for (line, is_repeated) in [
        (r#"{"a": 1, "b": 2, "a": "x"}"#, true),
        (r#"{"a": 1, "\u0061": 2}"#, true),
        (r#"{"a": [1, {"b": 0, "c": [{"d": 1, "d": [2]}]}], "e": 1}"#, true),
        (r#"{"a": {"b": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]}"#, false),
    ] {
        let (element, found) = read(line, RepeatedNames::Last).unwrap();
        assert_eq!(to_json(&element.clone().into()), serde_json::from_str::<Tree>(line).unwrap());
        assert_eq!(found, is_repeated, "{line}");
        assert_eq!(read(line, RepeatedNames::Error).is_err(), is_repeated, "{line}");
        let wanted = Wanted::Columns(vec![Name::new("a")]);
        let (chosen, found) = record(line, &wanted, RepeatedNames::Last).unwrap();
        assert_eq!((chosen.get("a"), found), (element.get("a"), is_repeated), "{line}");
    }
    let element = all(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap();
    assert_eq!(element.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"], "as in Python's dict");
    // Unwanted fields are not checked for repeated names.
    assert!(
        !record(r#"{"a": 1, "b": 2, "b": 3}"#, &Wanted::Columns(vec![Name::new("a")]), RepeatedNames::Error).unwrap().1
    );
}

/// Converts a value back to JSON, for kinds with a unique form.
fn to_json(value: &Value) -> Tree {
    match value {
        Value::Null => Tree::Null,
        Value::Str(text) => Tree::from(&**text),
        Value::List(list) => list.iter().map(to_json).collect(),
        Value::Tree(tree) => Tree::Object(tree.iter().map(|(n, v)| (n.to_owned(), to_json(v))).collect()),
        Value::Array(array) if array.shape().is_empty() => match array.dtype() {
            crate::DType::Bool => Tree::from(array.bytes()[0] == 1),
            crate::DType::F64 => Tree::from(f64::from_le_bytes(array.bytes().try_into().unwrap())),
            _ => Tree::from(array.as_i64().unwrap()),
        },
        Value::Array(array) => (0..array.size()).map(|i| to_json(&array.row(i).unwrap().into())).collect(),
        Value::Bytes(_) => unreachable!("JSON has no bytes"),
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::from),
        any::<i64>().prop_map(Tree::from),
        any::<String>().prop_map(Tree::from),
        (-1e300f64..1e300).prop_map(Tree::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(any::<i64>().prop_map(Tree::from), 0..5).prop_map(Tree::from),
            prop::collection::vec(inner.clone(), 0..5)
                .prop_filter("one kind of number", |list| unmixed(list))
                .prop_map(Tree::from),
            prop::collection::btree_map(".{0,4}", inner, 0..5).prop_map(|m| Tree::Object(m.into_iter().collect())),
        ]
    })
}

/// Returns true unless a list mixes integers and floats. A mixed list becomes floats and does not round-trip.
fn unmixed(list: &[Tree]) -> bool {
    list.iter().filter(|t| t.is_number()).all(Tree::is_i64) || list.iter().all(Tree::is_f64)
}

proptest! {
    #[test]
    fn reads_what_serde_json_writes(map in prop::collection::btree_map(".{0,4}", tree(), 0..5)) {
        let record = Tree::Object(map.into_iter().collect());
        for line in [record.to_string(), serde_json::to_string_pretty(&record).unwrap()] {
            let element = all(&line).unwrap();
            prop_assert_eq!(to_json(&element.clone().into()), record.clone());
            for (name, value) in element.iter() {
                let one = columns(&line, &[name]).unwrap();
                prop_assert_eq!(one.get(name), Some(value));
            }
        }
    }

    /// Changes one byte. The parser never panics, and rejects every record that serde_json rejects.
    #[test]
    fn damage(map in prop::collection::btree_map(".{0,4}", tree(), 1..4), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut line = serde_json::to_vec(&map).unwrap();
        let at = at.index(line.len());
        line[at] = byte;
        if let Ok(line) = std::str::from_utf8(&line) {
            let theirs = serde_json::from_str::<serde_json::Map<String, Tree>>(line);
            // A repeated name is an error only for this parser.
            if theirs.is_err() {
                prop_assert!(all(line).is_err(), "{}", line);
            }
        }
    }
}
