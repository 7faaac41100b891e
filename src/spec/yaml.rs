//! YAML 1.2, core schema, by the events of `saphyr-parser`.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::node::{Budget, Field, Node, Tree, push_field};
use crate::error::{Error, Result};

/// Parses one document. Anchors and aliases work, within the bounds on size; tags and merge keys are refused.
pub(crate) fn parse(text: &str) -> Result<Node> {
    let parser = Parser::new_from_str(text);
    let mut reader = Reader { parser, budget: Budget::default(), anchors: HashMap::new() };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            Event::StreamEnd => break,
            _ if root.is_some() => return Err(error(span, "a second document; a pipeline file holds one")),
            event => root = Some(reader.node(event, span, 0)?),
        }
    }
    root.ok_or_else(|| Error::config("the file is empty").line(1))
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    budget: Budget,
    anchors: HashMap<usize, (Node, usize)>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span)> {
        match self.parser.next_event() {
            Some(event) => event.map_err(|e| scan_error(&e)),
            None => Err(Error::config("the file ends too early")),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node> {
        let (line, column) = (span.start.line(), span.start.col() + 1);
        let before = self.budget.used();
        self.budget.take(1, depth, line)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                no_tag(tag.as_deref(), span)?;
                let plain = style == ScalarStyle::Plain;
                (if plain { plain_scalar(&text) } else { Tree::Str(text.into_owned()) }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                no_tag(tag.as_deref(), span)?;
                (self.list(depth)?, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                no_tag(tag.as_deref(), span)?;
                (self.map(depth)?, anchor)
            }
            Event::Alias(id) => return self.alias(id, span, depth),
            _ => return Err(error(span, "expected a value")),
        };
        let node = Node::new(value, line, column);
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), self.budget.used() - before));
        }
        Ok(node)
    }

    /// Copies the value of an anchor, counted in full.
    fn alias(&mut self, id: usize, span: Span, depth: usize) -> Result<Node> {
        let line = span.start.line();
        let Some((node, count)) = self.anchors.get(&id) else {
            return Err(error(span, "an alias of something that is not complete yet"));
        };
        self.budget.take(*count, depth + node.depth(), line)?;
        Ok(node.clone())
    }

    fn list(&mut self, depth: usize) -> Result<Tree> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Tree::List(items)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Tree> {
        let mut fields = Vec::new();
        loop {
            let (key, line) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Tree::Map(fields)),
                (Event::Scalar(key, style, ..), span) => {
                    if style == ScalarStyle::Plain && key == "<<" {
                        return Err(error(span, "merge keys (`<<`) are not read"));
                    }
                    (key.into_owned(), span.start.line())
                }
                (_, span) => return Err(error(span, "a key must be text")),
            };
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            push_field(&mut fields, Field { key, line, value })?;
        }
    }
}

fn no_tag(tag: Option<&Tag>, span: Span) -> Result<()> {
    if let Some(tag) = tag { Err(error(span, &format!("the tag {tag} is not read"))) } else { Ok(()) }
}

fn error(span: Span, message: &str) -> Error {
    Error::config(message).line(span.start.line() as u64)
}

fn scan_error(e: &ScanError) -> Error {
    Error::config(format!("not YAML: {} (column {})", e.info(), e.marker().col() + 1)).line(e.marker().line() as u64)
}

/// The core schema of YAML 1.2: `yes`, `no`, `on` and `off` are text.
fn plain_scalar(text: &str) -> Tree {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Tree::Null,
        "true" | "True" | "TRUE" => return Tree::Bool(true),
        "false" | "False" | "FALSE" => return Tree::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Tree::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Tree::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Tree::Float(f64::NAN),
        _ => {}
    }
    if let Some(number) = integer(text) {
        return Tree::Int(number);
    }
    let numeric = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
        && text.bytes().any(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(number) if numeric => Tree::Float(number),
        _ => Tree::Str(text.to_owned()),
    }
}

fn integer(text: &str) -> Option<i64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return unsigned(hex, 16);
    }
    if let Some(octal) = text.strip_prefix("0o") { unsigned(octal, 8) } else { text.parse().ok() }
}

fn unsigned(digits: &str, radix: u32) -> Option<i64> {
    // `from_str_radix` would take a sign.
    if digits.starts_with(['+', '-']) { None } else { i64::from_str_radix(digits, radix).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        let text = "[1, -2, 0x1f, 0o17, 1.5, 1e3, true, yes, ~, '1', \"a\\u00e9\", 1_000, e, -x]";
        let Tree::List(items) = parse(text).unwrap().value else { panic!("a list") };
        let values: Vec<_> = items.into_iter().map(|n| n.value).collect();
        let str = |s: &str| Tree::Str(s.into());
        let want = [
            Tree::Int(1),
            Tree::Int(-2),
            Tree::Int(31),
            Tree::Int(15),
            Tree::Float(1.5),
            Tree::Float(1000.0),
            Tree::Bool(true),
            str("yes"),
            Tree::Null,
            str("1"),
            str("aé"),
            str("1_000"),
            str("e"),
            str("-x"),
        ];
        assert_eq!(values, want);
    }

    #[test]
    fn values_know_their_line() {
        let root = parse("# note\na: 1\nb:\n  - x\n  - {c: 2}\n").unwrap();
        let Tree::Map(fields) = root.value else { panic!("a map") };
        assert_eq!((fields[1].line, fields[1].key.as_str()), (3, "b"));
        let Tree::List(items) = &fields[1].value.value else { panic!("a list") };
        assert_eq!((items[1].line, items[1].column), (5, 5));
    }

    #[test]
    fn what_is_refused_names_its_line() {
        assert_eq!(error_of("a: 1\nb: 2\na: 3"), "line 3: the key `a` is repeated, first on line 1");
        assert_eq!(error_of("a: 1\n<<: {b: 1}"), "line 2: merge keys (`<<`) are not read");
        assert_eq!(error_of("a: 1\n---\nb: 1"), "line 3: a second document; a pipeline file holds one");
        assert!(error_of("a: !!python/object x").contains("is not read"));
        assert!(error_of("a: [1, 2\nb: 3").starts_with("line 2: not YAML: "), "{}", error_of("a: [1, 2\nb: 3"));
        assert_eq!(error_of("? [a]\n: 1"), "line 1: a key must be text");
        assert_eq!(error_of(""), "line 1: the file is empty");
    }

    #[test]
    fn aliases_are_copies_and_bombs_are_refused() {
        let Tree::Map(fields) = parse("a: &x [1, 2]\nb: *x").unwrap().value else { panic!("a map") };
        assert_eq!(fields[0].value.value, fields[1].value.value);
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        (1..12).for_each(|i| bomb += &format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(",")));
        assert!(error_of(&bomb).contains("more than 100000 values"));
        assert!(error_of("a: &x [*x]").contains("not complete"), "{}", error_of("a: &x [*x]"));
        assert!(error_of(&format!("{}1{}", "[".repeat(40), "]".repeat(40))).contains("nested deeper"));
        assert!(error_of(&"[".repeat(5000)).contains("not YAML"));
        let deep: String = (0..40)
            .map(|i| format!("a{i}: &a{i} [[{}]]\n", if i == 0 { "1".into() } else { format!("*a{}", i - 1) }))
            .collect();
        assert!(error_of(&deep).contains("nested deeper"));
    }
}
