use proptest::prelude::*;

use super::*;
use crate::element::{Array, Value};
use crate::varint::{put_bytes, put_varint};

/// Encodes a message with fields of bytes.
fn message(fields: &[(u64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|(number, bytes)| put_bytes(&mut out, *number, bytes));
    out
}

/// Encodes an example of these features, each as the bytes of its message.
fn example(features: &[(&str, &[u8])]) -> Buffer {
    let entries: Vec<_> =
        features.iter().map(|(name, feature)| message(&[(1, name.as_bytes()), (2, feature)])).collect();
    let map: Vec<u8> = entries.iter().flat_map(|entry| message(&[(1, entry)])).collect();
    Buffer::from_vec(message(&[(1, &map)]))
}

fn int64s(values: &[i64]) -> Vec<u8> {
    let mut packed = Vec::new();
    values.iter().for_each(|&value| put_varint(&mut packed, value as u64));
    message(&[(3, &message(&[(1, &packed)]))])
}

fn floats(values: &[f32]) -> Vec<u8> {
    let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    message(&[(2, &message(&[(1, &packed)]))])
}

fn strings(values: &[&[u8]]) -> Vec<u8> {
    let list: Vec<_> = values.iter().map(|value| (1, *value)).collect();
    message(&[(1, &message(&list))])
}

/// Encodes a sequence example of a context, and the steps of each feature.
fn sequence(context: &[(&str, &[u8])], lists: &[(&str, &[Vec<u8>])]) -> Buffer {
    let steps = |steps: &[Vec<u8>]| steps.iter().flat_map(|step| message(&[(1, step)])).collect::<Vec<u8>>();
    let lists: Vec<_> = lists.iter().map(|(name, all)| message(&[(1, name.as_bytes()), (2, &steps(all))])).collect();
    let map: Vec<u8> = lists.iter().flat_map(|entry| message(&[(1, entry)])).collect();
    Buffer::from_vec([example(context).as_bytes(), &message(&[(2, &map)])].concat())
}

fn bytes(value: &[u8]) -> Value {
    Value::Bytes(Buffer::copy_from(value))
}

const ALL: [FeatureType; 4] = [FeatureType::Int64, FeatureType::Float32, FeatureType::Bytes, FeatureType::Str];

#[test]
fn everything_is_inferred_by_name() {
    let record = example(&[
        ("z", &int64s(&[1, -1, i64::MIN])),
        ("a", &floats(&[0.5])),
        ("one", &strings(&[b"x\xff"])),
        ("two", &strings(&[b"", b"longer than eight bytes"])),
        ("none", &strings(&[])),
        ("unset", &[]),
    ]);
    let want = Element::new()
        .with("a", Array::from_vec(vec![0.5f32]))
        .with("none", Value::List(Vec::new()))
        .with("one", bytes(b"x\xff"))
        .with("two", Value::List(vec![bytes(b""), bytes(b"longer than eight bytes")]))
        .with("unset", Value::Null)
        .with("z", Array::from_vec(vec![1, -1, i64::MIN]));
    assert_eq!(ExampleParser::inferred().parse(&record).unwrap(), want);
    assert_eq!(ExampleParser::inferred().parse(&Buffer::EMPTY).unwrap(), Element::new());
}

#[test]
fn long_strings_are_views_of_the_record() {
    let record = example(&[("text", &strings(&[b"longer than eight bytes"]))]);
    let element = ExampleParser::inferred().parse(&record).unwrap();
    let Some(Value::Bytes(text)) = element.get("text") else { panic!("{element:?}") };
    assert!(record.as_bytes().as_ptr_range().contains(&text.as_bytes().as_ptr()));
}

/// Reads encodings that writers need not produce and readers must accept.
#[test]
fn lists_one_by_one_in_pieces_and_twice() {
    let one_by_one = message(&[(3, &[8, 5, 8, 0xac, 0x02, 10, 2, 1, 2])]);
    let fixed = message(&[(2, &[13, 0, 0, 0, 0x3f, 10, 4, 0, 0, 0x80, 0x3f])]);
    let pieces = [int64s(&[1]), int64s(&[2, 3])].concat();
    let kinds = [int64s(&[1]), floats(&[2.0])].concat();
    let record = example(&[
        ("one_by_one", &one_by_one),
        ("fixed", &fixed),
        ("pieces", &pieces),
        ("kinds", &kinds),
        ("twice", &int64s(&[1])),
        ("twice", &int64s(&[2])),
    ]);
    // Unknown fields, and features in two messages.
    let mut whole = message(&[(9, b"unknown")]);
    whole.extend_from_slice(record.as_bytes());
    whole.extend_from_slice(example(&[("late", &int64s(&[9]))]).as_bytes());
    let element = ExampleParser::inferred().parse(&Buffer::from_vec(whole)).unwrap();
    let want = Element::new()
        .with("fixed", Array::from_vec(vec![0.5f32, 1.0]))
        .with("kinds", Array::from_vec(vec![2.0f32]))
        .with("late", Array::from_vec(vec![9i64]))
        .with("one_by_one", Array::from_vec(vec![5i64, 300, 1, 2]))
        .with("pieces", Array::from_vec(vec![1i64, 2, 3]))
        .with("twice", Array::from_vec(vec![2i64]));
    assert_eq!(element, want);
}

#[test]
fn declared_features_have_their_shapes_and_defaults() {
    let record = example(&[
        ("label", &int64s(&[7])),
        ("pixels", &floats(&[1.0, 2.0, 3.0, 4.0])),
        ("text", &strings(&["né".as_bytes()])),
        ("pair", &strings(&[b"a", b"b"])),
        ("passed over", &int64s(&[1])),
        ("unset", &[]),
    ]);
    let parser = ExampleParser::new([
        ("text", FeatureSpec::fixed(FeatureType::Str, &[])),
        ("label", FeatureSpec::fixed(FeatureType::Int64, &[])),
        ("pixels", FeatureSpec::fixed(FeatureType::Float32, &[2, 2])),
        ("pair", FeatureSpec::fixed(FeatureType::Bytes, &[2, 1])),
        ("unset", FeatureSpec::fixed(FeatureType::Int64, &[3]).default(FeatureValues::Int64(vec![-1]))),
        (
            "absent",
            FeatureSpec::fixed(FeatureType::Str, &[]).default(FeatureValues::Bytes(vec![Buffer::copy_from(b"d")])),
        ),
        ("ids", FeatureSpec::variable(FeatureType::Int64)),
        ("words", FeatureSpec::variable(FeatureType::Str)),
    ])
    .unwrap();
    let element = parser.parse(&record).unwrap();
    let names: Vec<_> = element.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["text", "label", "pixels", "pair", "unset", "absent", "ids", "words"]);
    assert_eq!(element.text("text").unwrap(), "né");
    assert_eq!(element.get("label"), Some(&Array::scalar(7i64).into()));
    assert_eq!(element.array("pixels").unwrap().shape(), [2, 2]);
    let lists = [b"a", b"b"].map(|one| Value::List(vec![bytes(one)]));
    assert_eq!(element.get("pair"), Some(&Value::List(lists.to_vec())));
    assert_eq!(element.array("unset").unwrap().as_slice::<i64>().unwrap(), [-1; 3]);
    assert_eq!(element.text("absent").unwrap(), "d");
    assert_eq!(element.array("ids").unwrap().shape(), [0]);
    assert_eq!(element.get("words"), Some(&Value::List(Vec::new())));
}

#[test]
fn what_is_wanted_and_what_is_found_are_named() {
    let record =
        example(&[("a", &int64s(&[1, 2])), ("b", &strings(&[b"\xff"])), ("cut", &message(&[(3, &[10, 5, 1])]))]);
    let error =
        |name: &'static str, spec| ExampleParser::new([(name, spec)]).unwrap().parse(&record).unwrap_err().to_string();
    let fixed = FeatureSpec::fixed;
    assert_eq!(
        error("a", fixed(FeatureType::Float32, &[2])),
        "feature \"a\": a list of int64, but float32[2] is required"
    );
    assert_eq!(error("a", fixed(FeatureType::Int64, &[])), "feature \"a\": 2 values, where int64[] needs 1");
    assert_eq!(error("c", fixed(FeatureType::Int64, &[])), "feature \"c\": is missing, and int64[] is required");
    assert_eq!(error("b", fixed(FeatureType::Str, &[])), "feature \"b\": bytes that are no UTF-8 from byte 0 on");
    assert_eq!(error("cut", FeatureSpec::variable(FeatureType::Int64)), "feature \"cut\": its list is damaged");
    let garbage = ExampleParser::inferred().parse(&Buffer::copy_from(b"not a message")).unwrap_err();
    assert!(garbage.to_string().starts_with("the record is no example"), "{garbage}");
}

#[test]
fn sequences_have_a_step_for_each_point_in_time() {
    let steps = [int64s(&[1, 2]), int64s(&[3, 4]), int64s(&[5, 6])];
    let record = sequence(
        &[("id", &strings(&[b"s"]))],
        &[("ids", &steps), ("ragged", &[floats(&[1.0]), vec![], floats(&[2.0, 3.0])]), ("words", &[strings(&[b"w"])])],
    );
    let parser = ExampleParser::sequences(
        [("id", FeatureSpec::fixed(FeatureType::Bytes, &[]))],
        [
            ("ids", FeatureSpec::fixed(FeatureType::Int64, &[2])),
            ("ragged", FeatureSpec::variable(FeatureType::Float32)),
            ("words", FeatureSpec::fixed(FeatureType::Str, &[])),
            ("absent", FeatureSpec::fixed(FeatureType::Int64, &[2]).allow_missing()),
        ],
    )
    .unwrap();
    let element = parser.parse(&record).unwrap();
    assert_eq!(element.get("id"), Some(&bytes(b"s")));
    let ids = element.array("ids").unwrap();
    assert_eq!((ids.shape(), ids.as_slice::<i64>().unwrap()), ([3, 2].as_slice(), [1, 2, 3, 4, 5, 6].as_slice()));
    let ragged: Vec<Value> =
        [vec![1f32], vec![], vec![2.0, 3.0]].into_iter().map(|step| Array::from_vec(step).into()).collect();
    assert_eq!(element.get("ragged"), Some(&Value::List(ragged)));
    assert_eq!(element.get("words"), Some(&Value::List(vec!["w".into()])));
    assert_eq!(element.array("absent").unwrap().shape(), [0, 2]);

    let inferred = ExampleParser::inferred_sequences().parse(&record).unwrap();
    assert_eq!(inferred.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["id", "ids", "ragged", "words"]);
    let Some(Value::List(ids)) = inferred.get("ids") else { panic!("{inferred:?}") };
    assert_eq!(ids[2], Array::from_vec(vec![5i64, 6]).into());

    let wrong = |spec| {
        let none: [(&str, FeatureSpec); 0] = [];
        ExampleParser::sequences(none, [("ids", spec)]).unwrap().parse(&record).unwrap_err().to_string()
    };
    let three = wrong(FeatureSpec::fixed(FeatureType::Int64, &[3]));
    assert_eq!(three, "feature \"ids\": 2 values, where int64[3] needs 3 (in step 0)");
    let kind = wrong(FeatureSpec::variable(FeatureType::Str));
    assert_eq!(kind, "feature \"ids\": a list of int64, but str[*] is required (in step 0)");
    let both = sequence(&[("ids", &int64s(&[1]))], &[("ids", &steps)]);
    assert!(ExampleParser::inferred_sequences().parse(&both).is_err());
}

#[test]
fn declarations_that_cannot_hold_are_refused() {
    let fixed = || FeatureSpec::fixed(FeatureType::Int64, &[2]);
    let none: [(&str, FeatureSpec); 0] = [];
    let message = |result: Result<ExampleParser>| result.unwrap_err().message().to_owned();
    assert_eq!(message(ExampleParser::new(none.clone())), "no features");
    assert_eq!(message(ExampleParser::new([("a", fixed()), ("a", fixed())])), "feature \"a\" is declared twice");
    let short = fixed().default(FeatureValues::Int64(vec![1, 2, 3]));
    assert!(message(ExampleParser::new([("a", short)])).contains("3 values of a default"));
    let other = fixed().default(FeatureValues::Float32(vec![1.0]));
    assert!(message(ExampleParser::new([("a", other)])).contains("a default of float32"));
    assert!(ExampleParser::new([("a", fixed().allow_missing())]).is_err());
    let varies = FeatureSpec::variable(FeatureType::Int64).default(FeatureValues::Int64(vec![1]));
    assert!(ExampleParser::new([("a", varies)]).is_err());
    let endless = FeatureSpec::fixed(FeatureType::Int64, &[usize::MAX, 2]);
    assert!(ExampleParser::new([("a", endless)]).is_err());
    let default = fixed().default(FeatureValues::Int64(vec![1]));
    assert!(ExampleParser::sequences(none.clone(), [("a", default)]).is_err());
    assert!(ExampleParser::sequences([("a", fixed())], [("a", fixed())]).is_err());
    assert!(ExampleParser::sequences(none.clone(), none).is_err());
}

#[test]
fn every_dtype_is_encoded() {
    let element = Element::new()
        .with("u8", Array::from_vec(vec![255u8]))
        .with("i16", Array::from_vec(vec![-3i16]))
        .with("bool", Array::bool(true))
        .with("f64", Array::from_vec(vec![0.1f64]))
        .with("bf16", Array::from_vec(vec![half::bf16::from_f32(0.5)]))
        .with("null", Value::Null)
        .with("texts", Value::List(vec!["a".into(), bytes(b"b")]));
    let parsed = ExampleParser::inferred().parse(&Buffer::from_vec(encode_example(&element).unwrap())).unwrap();
    let number = |name: &str| parsed.array(name).unwrap().as_slice::<i64>().unwrap().to_vec();
    assert_eq!((number("u8"), number("i16"), number("bool")), (vec![255], vec![-3], vec![1]));
    assert_eq!(parsed.array("f64").unwrap().as_slice::<f32>().unwrap(), [0.1]);
    assert_eq!(parsed.array("bf16").unwrap().as_slice::<f32>().unwrap(), [0.5]);
    assert_eq!(parsed.get("null"), Some(&Value::Null));
    assert_eq!(parsed.get("texts"), Some(&Value::List(vec![bytes(b"a"), bytes(b"b")])));
    let error = |value: Value| encode_example(&Element::new().with("x", value)).unwrap_err().to_string();
    assert!(error(Array::scalar(u64::MAX).into()).contains("field \"x\": 18446744073709551615 is more"));
    assert!(error(Value::Tree(Element::new())).contains("field \"x\": a tree"));
    assert!(error(Value::List(vec![Value::Null])).contains("a list with null in it"));
}

/// Expected bytes were derived by hand from the message definitions.
#[test]
fn sequences_are_encoded_as_the_messages_are_defined() {
    let element = Element::new()
        .with("t", Value::List(vec![Array::from_vec(vec![1f32]).into(), Value::Null]))
        .with("id", Array::from_vec(vec![7i64]));
    let id = [0x1a, 3, 10, 1, 7];
    let context = [&[10, 11, 10, 2, b'i', b'd', 18, 5], id.as_slice()].concat();
    let float = [18, 6, 10, 4, 0, 0, 0x80, 0x3f];
    let steps = [&[10, 8], float.as_slice(), &[10, 0]].concat();
    let lists = [&[10, 17, 10, 1, b't', 18, 12], steps.as_slice()].concat();
    let want = [&[10, 13], context.as_slice(), &[18, 19], &lists].concat();
    assert_eq!(encode_sequence_example(&element, &["t"]).unwrap(), want);
}

#[test]
fn rows_of_arrays_are_steps() {
    let frames = Array::from_vec(vec![1i64, 2, 3, 4, 5, 6]);
    let element = Element::new()
        .with("frames", Array::new(frames.dtype(), &[3, 2], frames.buffer().clone()).unwrap())
        .with("none", Array::new(frames.dtype(), &[0, 2], Buffer::EMPTY).unwrap())
        .with("words", Value::List(vec!["a".into(), "longer than eight bytes".into()]))
        .with("label", Array::scalar(1i64));
    let record = Buffer::from_vec(encode_sequence_example(&element, &["words", "frames", "none"]).unwrap());
    let pair = || FeatureSpec::fixed(FeatureType::Int64, &[2]);
    let parser = ExampleParser::sequences(
        [("label", FeatureSpec::fixed(FeatureType::Int64, &[]))],
        [("frames", pair()), ("none", pair()), ("words", FeatureSpec::fixed(FeatureType::Str, &[]))],
    );
    let read = parser.unwrap().parse(&record).unwrap();
    assert!(element.iter().all(|(name, value)| read.get(name) == Some(value)), "{read:?}");
}

#[test]
fn what_is_no_sequence_is_named() {
    let element = Element::new()
        .with("one", Array::scalar(1i64))
        .with("text", "abc")
        .with("trees", Value::List(vec![Value::Null, Value::Tree(Element::new())]))
        .with("lists", Value::List(vec![Array::scalar(1i64).into()]));
    let error = |name: &str| encode_sequence_example(&element, &[name]).unwrap_err().to_string();
    assert!(error("one").contains("field \"lists\": a list with array in it"), "{}", error("one"));
    assert!(error("lists").contains("field \"trees\": a list with null in it"), "{}", error("lists"));
    assert_eq!(error("many"), "field \"many\" is missing, and a sequence is required");
    let error = |names: &[&str]| encode_sequence_example(&element, names).unwrap_err().to_string();
    assert_eq!(error(&["lists", "one", "trees"]), "field \"one\": array, where a sequence has a list or rows");
    assert_eq!(error(&["lists", "trees"]), "field \"trees\": a tree, which an example has no place for (in step 1)");
    let error = |name: &'static str| {
        let one = Element::new().with(name, element.get(name).unwrap().clone());
        encode_sequence_example(&one, &[name]).unwrap_err().to_string()
    };
    assert_eq!(error("text"), "field \"text\": text, where a sequence has a list or rows");
}

fn value() -> impl Strategy<Value = Value> {
    let string = || prop::collection::vec(any::<u8>(), 0..20).prop_map(|s| bytes(&s));
    prop_oneof![
        Just(Value::Null),
        prop::collection::vec(any::<i64>(), 0..20).prop_map(|v| Array::from_vec(v).into()),
        // No NaN, because NaN does not equal itself.
        prop::collection::vec(any::<i32>(), 0..20)
            .prop_map(|v| Array::from_vec(v.into_iter().map(|x| x as f32).collect::<Vec<_>>()).into()),
        string(),
        prop::collection::vec(string(), 2..5).prop_map(Value::List),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_parsed(fields in prop::collection::btree_map("[a-z]{0,12}", value(), 0..8)) {
        let element = fields.iter().fold(Element::new(), |e, (name, value)| e.with(name, value.clone()));
        let record = Buffer::from_vec(encode_example(&element).unwrap());
        prop_assert_eq!(ExampleParser::inferred().parse(&record).unwrap(), element);
        let backwards = fields.iter().rev().fold(Element::new(), |e, (name, value)| e.with(name, value.clone()));
        prop_assert_eq!(encode_example(&backwards).unwrap(), record.as_bytes());
    }

    #[test]
    fn sequences_that_are_encoded_are_parsed(
        context in prop::collection::btree_map("[a-k]{0,3}", value(), 0..4),
        sequences in prop::collection::btree_map("[l-z]{1,3}", prop::collection::vec(value(), 0..5), 0..4),
    ) {
        let steps = sequences.iter().map(|(name, steps)| (name.clone(), Value::List(steps.clone())));
        let fields: Vec<_> = context.into_iter().chain(steps).collect();
        let element = fields.iter().fold(Element::new(), |e, (name, value)| e.with(name.as_str(), value.clone()));
        let names: Vec<&String> = sequences.keys().collect();
        let record = Buffer::from_vec(encode_sequence_example(&element, &names).unwrap());
        prop_assert_eq!(ExampleParser::inferred_sequences().parse(&record).unwrap(), element);
        let backwards = fields.iter().rev().fold(Element::new(), |e, (name, value)| e.with(name.as_str(), value.clone()));
        prop_assert_eq!(encode_sequence_example(&backwards, &names).unwrap(), record.as_bytes());
    }

    #[test]
    fn damage_is_an_error_or_other_data(fields in prop::collection::btree_map("[a-c]", value(), 0..4), at: usize, flip in 1..=255u8) {
        let element = fields.iter().fold(Element::new(), |e, (name, value)| e.with(name, value.clone()));
        let mut record = encode_example(&element).unwrap();
        let at = at % record.len();
        record[at] ^= flip;
        let record = Buffer::from_vec(record);
        let declared = || ["a", "b"].into_iter().zip(ALL.map(|dtype| FeatureSpec::fixed(dtype, &[])));
        for parser in [
            ExampleParser::inferred(),
            ExampleParser::inferred_sequences(),
            ExampleParser::new(declared()).unwrap(),
            ExampleParser::sequences(Vec::new(), declared().collect::<Vec<_>>()).unwrap(),
        ] {
            drop(parser.parse(&record));
        }
    }
}
