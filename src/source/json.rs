//! One JSON record: an object, read into an [`Element`].

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json_text::{Fault, own_string, skip_string, string};
use crate::element::{Array, Element, Name, Value};

/// Names in one object. Far more than a record has, and few enough that looking for a repeated one stays cheap.
const MAX_NAMES: usize = 10_000;

/// What is taken out of records.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// Every field, in the order of the record.
    All,
    /// These, in this order.
    Columns(Vec<Name>),
}

/// What becomes of a record in which an object has a name twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepeatedNames {
    /// The last value stands, in the place of the first, as Python's `json`, pandas and serde_json have it. Such records are counted in
    /// the report.
    #[default]
    Last,
    /// The record is bad.
    Error,
}

/// The names that stood before in the record that is being read.
struct Repeats {
    policy: RepeatedNames,
    found: bool,
}

impl Repeats {
    /// The name before the value at `at` is one of them.
    #[cold]
    fn take(&mut self, at: usize, name: &str) -> Result<(), Fault> {
        match self.policy {
            RepeatedNames::Last => {
                self.found = true;
                Ok(())
            }
            RepeatedNames::Error => Err(repeated(at, name)),
        }
    }

    /// An object within the value at `at` has one of them.
    #[cold]
    fn take_within(&mut self, line: &str, at: usize) -> Result<(), Fault> {
        self.found = true;
        match self.policy {
            RepeatedNames::Last => Ok(()),
            // Once more, for the place.
            RepeatedNames::Error => other::<Json<true>>(line, at).map(drop),
        }
    }
}

/// Why a record cannot be read.
#[derive(Debug)]
pub(crate) enum RecordFault {
    /// It is damaged.
    Damaged(Fault),
    /// It lacks a column.
    Missing(Name),
}

impl From<Fault> for RecordFault {
    fn from(fault: Fault) -> Self {
        Self::Damaged(fault)
    }
}

/// Reads one record, and says whether a name was repeated in it. Fields that are not wanted are checked for structure and not built.
pub(crate) fn record(line: &str, wanted: &Wanted, policy: RepeatedNames) -> Result<(Element, bool), RecordFault> {
    let mut repeats = Repeats { policy, found: false };
    let element = match wanted {
        Wanted::All => whole(line, &mut repeats)?,
        Wanted::Columns(columns) => chosen(line, columns, &mut repeats)?,
    };
    Ok((element, repeats.found))
}

fn whole(line: &str, repeats: &mut Repeats) -> Result<Element, Fault> {
    let mut element = Element::with_capacity(8);
    let mut names = 0;
    fields(line, |name, at| {
        let (value, end) = value(line, at, repeats)?;
        if element.insert(name, value).is_some() {
            repeats.take(at, name)?;
        }
        names += 1;
        if names > MAX_NAMES { Err(Fault::new(at, too_many())) } else { Ok(end) }
    })?;
    Ok(element)
}

fn chosen(line: &str, columns: &[Name], repeats: &mut Repeats) -> Result<Element, RecordFault> {
    let mut values: Vec<Option<Value>> = vec![None; columns.len()];
    fields(line, |name, at| {
        let Some(column) = columns.iter().position(|c| c == name) else { return skip(line, at) };
        let (value, end) = value(line, at, repeats)?;
        if values[column].replace(value).is_some() {
            repeats.take(at, name)?;
        }
        Ok(end)
    })?;
    let field = |(name, value): (&Name, Option<Value>)| match value {
        Some(value) => Ok((name.clone(), value)),
        None => Err(RecordFault::Missing(name.clone())),
    };
    // The list of columns names none twice.
    Ok(Element::from_unique(columns.iter().zip(values).map(field).collect::<Result<_, _>>()?))
}

/// The names in a record, for messages; those before the damage if it is damaged.
pub(crate) fn names(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    let _ = fields(line, |name, at| {
        names.push(name.to_owned());
        skip(line, at)
    });
    names
}

/// Walks over the fields of an object: `field(name, at)` reads the value at `at` and says where it ends.
#[inline]
fn fields(line: &str, mut field: impl FnMut(&str, usize) -> Result<usize, Fault>) -> Result<(), Fault> {
    let bytes = line.as_bytes();
    let mut at = space(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return Err(unexpected(line, at, "a record, which is an object: {"));
    }
    at = space(bytes, at + 1);
    if bytes.get(at) == Some(&b'}') {
        return end(line, at + 1);
    }
    loop {
        if bytes.get(at) != Some(&b'"') {
            return Err(unexpected(line, at, "a name: \""));
        }
        let (name, next) = string(line, at + 1)?;
        at = space(bytes, next);
        if bytes.get(at) != Some(&b':') {
            return Err(unexpected(line, at, ":"));
        }
        at = field(&name, space(bytes, at + 1))?;
        at = space(bytes, at);
        match bytes.get(at) {
            Some(b',') => at = space(bytes, at + 1),
            Some(b'}') => return end(line, at + 1),
            _ => return Err(unexpected(line, at, ", or }")),
        }
    }
}

/// A whole document of any kind, as a value below the top of a record is read; of a repeated name the last value stands.
#[cfg(any(feature = "mds", feature = "webdataset"))]
pub(crate) fn document(text: &str) -> Result<Value, Fault> {
    let mut repeats = Repeats { policy: RepeatedNames::Last, found: false };
    let (value, at) = value(text, space(text.as_bytes(), 0), &mut repeats)?;
    end(text, at).map(|()| value)
}

fn end(line: &str, at: usize) -> Result<(), Fault> {
    match space(line.as_bytes(), at) {
        at if at == line.len() => Ok(()),
        at => Err(unexpected(line, at, "the end of the line")),
    }
}

/// The next byte that is not white space.
#[inline]
fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

#[cold]
fn unexpected(line: &str, at: usize, want: &str) -> Fault {
    match line[at..].chars().next() {
        Some(c) => Fault::new(at, format!("expected {want}, found {c:?}")),
        None => Fault::new(at, format!("expected {want}, found the end of the line")),
    }
}

#[cold]
fn repeated(at: usize, name: &str) -> Fault {
    Fault::new(at, format!("the name {name:?} occurs twice in one record"))
}

fn too_many() -> String {
    format!("more than {MAX_NAMES} names in one object")
}

#[inline]
fn value(line: &str, at: usize, repeats: &mut Repeats) -> Result<(Value, usize), Fault> {
    if line.as_bytes().get(at) == Some(&b'"') {
        let (text, end) = own_string(line, at + 1)?;
        return Ok((Value::Str(text), end));
    }
    if let Some((number, end)) = small_integer(line.as_bytes(), at) {
        return Ok((Array::scalar(number).into(), end));
    }
    let (Json::<false> { item, repeats: within }, end) = other(line, at)?;
    if within {
        repeats.take_within(line, at)?;
    }
    Ok((item.into_value(), end))
}

#[inline]
fn skip(line: &str, at: usize) -> Result<usize, Fault> {
    if line.as_bytes().get(at) == Some(&b'"') {
        return skip_string(line, at + 1);
    }
    if let Some((_, end)) = small_integer(line.as_bytes(), at) {
        return Ok(end);
    }
    other::<IgnoredAny>(line, at).map(|(_, end)| end)
}

/// A whole number of up to 18 digits, if that and nothing else is the value at `at`.
#[inline]
fn small_integer(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = bytes.get(at) == Some(&b'-');
    let start = at + usize::from(negative);
    let (mut end, mut number) = (start, 0);
    while let Some(digit) = bytes.get(end).filter(|b| b.is_ascii_digit()) {
        if end - start == 18 {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
        end += 1;
    }
    // JSON has no numbers such as 007, and -0 is a fraction to serde_json.
    let plain = end > start && (bytes[start] != b'0' || (end - start == 1 && !negative));
    let closed = matches!(bytes.get(end), Some(b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n'));
    (plain && closed).then_some((if negative { -number } else { number }, end))
}

/// Anything else, by serde_json, which limits the depth to 128.
fn other<'a, T: Deserialize<'a>>(line: &'a str, at: usize) -> Result<(T, usize), Fault> {
    let mut values = serde_json::Deserializer::from_str(&line[at..]).into_iter::<T>();
    match values.next() {
        Some(Ok(value)) => Ok((value, at + values.byte_offset())),
        Some(Err(error)) => Err(located(line, at, &error)),
        None => Err(unexpected(line, at, "a value")),
    }
}

#[cold]
fn located(line: &str, at: usize, error: &serde_json::Error) -> Fault {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    Fault::new(line.len().min(at + error.column().saturating_sub(1)), message)
}

/// A value below the top, as serde_json reads it. With `STRICT` a repeated name is an error where it stands.
struct Json<const STRICT: bool> {
    item: Item,
    /// Whether an object in it repeats a name.
    repeats: bool,
}

impl<const STRICT: bool> Json<STRICT> {
    fn new(item: Item) -> Self {
        Self { item, repeats: false }
    }

    fn value(value: impl Into<Value>) -> Self {
        Self::new(Item::Other(value.into()))
    }
}

/// Numbers stay plain until it is known whether they become an array.
enum Item {
    Int(i64),
    Float(f64),
    Other(Value),
}

impl Item {
    fn into_value(self) -> Value {
        match self {
            Self::Int(number) => Array::scalar(number).into(),
            Self::Float(number) => Array::scalar(number).into(),
            Self::Other(value) => value,
        }
    }
}

impl<'de, const STRICT: bool> Deserialize<'de> for Json<STRICT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor::<STRICT>)
    }
}

struct JsonVisitor<const STRICT: bool>;

impl<'de, const STRICT: bool> Visitor<'de> for JsonVisitor<STRICT> {
    type Value = Json<STRICT>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::value(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Json::value(Array::bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Json::new(Item::Int(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or_else(|_| Json::value(Array::scalar(value)), |value| Json::new(Item::Int(value))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Json::new(Item::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Json::value(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let (mut list, mut repeats) = (Items::Ints(Vec::new()), false);
        while let Some(next) = seq.next_element::<Self::Value>()? {
            list = list.push(next.item);
            repeats |= next.repeats;
        }
        Ok(Json { item: Item::Other(list.into_value()), repeats })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut tree, mut names, mut repeats) = (Element::new(), 0, false);
        while let Some(name) = map.next_key::<String>()? {
            let next = map.next_value::<Self::Value>()?;
            let again = tree.insert(&name, next.item.into_value()).is_some();
            if again && STRICT {
                return Err(A::Error::custom(repeated(0, &name).message));
            }
            repeats |= again | next.repeats;
            names += 1;
            if names > MAX_NAMES {
                return Err(A::Error::custom(too_many()));
            }
        }
        Ok(Json { item: Item::Other(tree.into()), repeats })
    }
}

/// The items of a list: an array as long as all are numbers.
enum Items {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Mixed(Vec<Value>),
}

impl Items {
    fn push(self, item: Item) -> Self {
        match (self, item) {
            (Self::Ints(mut list), Item::Int(number)) => {
                list.push(number);
                Self::Ints(list)
            }
            (Self::Ints(list), Item::Float(number)) => {
                Self::Floats(list.into_iter().map(|n| n as f64).chain([number]).collect())
            }
            (Self::Floats(mut list), Item::Float(number)) => {
                list.push(number);
                Self::Floats(list)
            }
            (Self::Floats(mut list), Item::Int(number)) => {
                list.push(number as f64);
                Self::Floats(list)
            }
            (list, item) => {
                let mut list = list.into_list();
                list.push(item.into_value());
                Self::Mixed(list)
            }
        }
    }

    fn into_list(self) -> Vec<Value> {
        match self {
            Self::Ints(list) => list.into_iter().map(|n| Array::scalar(n).into()).collect(),
            Self::Floats(list) => list.into_iter().map(|n| Array::scalar(n).into()).collect(),
            Self::Mixed(list) => list,
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Ints(list) => Array::from_vec(list).into(),
            Self::Floats(list) => Array::from_vec(list).into(),
            Self::Mixed(list) => Value::List(list),
        }
    }
}

#[cfg(test)]
mod tests {
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
        for rest in
            ["", ", ", ", \"b\"", ", \"b\": ", ", \"b\": nul", ", \"b\": 1", ", \"b\": [1}", ", \"b\": \"x", "} x"]
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
        // What is not wanted is not looked at.
        assert!(
            !record(r#"{"a": 1, "b": 2, "b": 3}"#, &Wanted::Columns(vec![Name::new("a")]), RepeatedNames::Error)
                .unwrap()
                .1
        );
    }

    /// What an element would be as JSON, where that is unique.
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

    /// Whole numbers among fractions become fractions: not the same JSON again.
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

        /// One byte changed, removed or added: never a panic, and an error wherever serde_json sees one.
        #[test]
        fn damage(map in prop::collection::btree_map(".{0,4}", tree(), 1..4), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut line = serde_json::to_vec(&map).unwrap();
            let at = at.index(line.len());
            line[at] = byte;
            if let Ok(line) = std::str::from_utf8(&line) {
                let theirs = serde_json::from_str::<serde_json::Map<String, Tree>>(line);
                // A repeated name is an error of ours alone.
                if theirs.is_err() {
                    prop_assert!(all(line).is_err(), "{}", line);
                }
            }
        }
    }
}
