//! JSON, by `serde_json`. Each value is first read as a slice of the text, whose address gives its position.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::node::{Budget, Field, Lines, Node, Tree, push_field};
use crate::error::{Error, Result};

/// Parses a document.
pub(crate) fn parse(text: &str) -> Result<Node> {
    let root: &RawValue = serde_json::from_str(text)
        .map_err(|e| Error::config(format!("not JSON: {}", without_place(&e))).line(e.line() as u64))?;
    Reader { text, lines: Lines::new(text), budget: Budget::default() }.node(root, 0)
}

struct Reader<'a> {
    text: &'a str,
    lines: Lines<'a>,
    budget: Budget,
}

impl<'a> Reader<'a> {
    fn position(&self, raw: &RawValue) -> (usize, usize) {
        // Both are slices of the text, so the distance of their addresses is the offset.
        self.lines.position((raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize))
    }

    fn node(&mut self, raw: &'a RawValue, depth: usize) -> Result<Node> {
        let (line, column) = self.position(raw);
        self.budget.take(1, depth, line)?;
        let piece = raw.get();
        let value = match piece.as_bytes().first() {
            Some(b'{') => {
                let mut fields = Vec::new();
                for (key, value) in read::<Pairs<'_>>(piece, line)?.0 {
                    let (key_line, _) = self.position(key);
                    let value = self.node(value, depth + 1)?;
                    push_field(&mut fields, Field { key: read(key.get(), key_line)?, line: key_line, value })?;
                }
                Tree::Map(fields)
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = read(piece, line)?;
                Tree::List(items.into_iter().map(|item| self.node(item, depth + 1)).collect::<Result<_>>()?)
            }
            Some(b'"') => Tree::Str(read(piece, line)?),
            Some(b't') => Tree::Bool(true),
            Some(b'f') => Tree::Bool(false),
            Some(b'n') => Tree::Null,
            _ => match piece.parse() {
                Ok(number) => Tree::Int(number),
                Err(_) => Tree::Float(read(piece, line)?),
            },
        };
        Ok(Node::new(value, line, column))
    }
}

fn read<'a, T: Deserialize<'a>>(piece: &'a str, line: usize) -> Result<T> {
    serde_json::from_str(piece).map_err(|e| Error::config(format!("not JSON: {}", without_place(&e))).line(line as u64))
}

/// The message of `serde_json` ends in ` at line 1 column 2`, which the error has already.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// A mapping as pairs of texts, in order, repeated keys included.
struct Pairs<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'a> Deserialize<'a> for Pairs<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'a> Visitor<'a> for PairsVisitor {
            type Value = Pairs<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Pairs<'a>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_keys_know_their_line() {
        let root = parse("{\n \"a\\u00e9\": 1,\n \"b\": [1.5, \"x\\n\",\n  null, {\"c\": true}]}").unwrap();
        let Tree::Map(fields) = root.value else { panic!("a map") };
        assert_eq!((fields[0].key.as_str(), fields[0].line, &fields[0].value.value), ("aé", 2, &Tree::Int(1)));
        let Tree::List(items) = &fields[1].value.value else { panic!("a list") };
        assert_eq!(items[1].value, Tree::Str("x\n".into()));
        assert_eq!((items[3].line, items[3].column), (4, 9));
    }

    #[test]
    fn errors_name_the_line() {
        let line = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(line("{\"a\": 1,\n \"a\": 2}"), "line 2: the key `a` is repeated, first on line 1");
        assert!(
            line("{\"a\": 1,\n \"b\" 2}").starts_with("line 2: not JSON: expected `:`"),
            "{}",
            line("{\"a\": 1,\n \"b\" 2}")
        );
        assert!(line(&format!("{}1{}", "[".repeat(50), "]".repeat(50))).contains("nested deeper"));
        assert!(line(&"[".repeat(100_000)).contains("not JSON"));
    }
}
