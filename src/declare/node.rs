//! The tree of YAML, TOML and JSON: values with their positions.

use std::fmt;

use crate::error::{Error, Result};

/// Longest pipeline file, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting.
pub(crate) const MAX_DEPTH: usize = 32;
/// Most values in one file, aliases counted as often as they are used.
pub(crate) const MAX_NODES: usize = 100_000;

/// A value and its place in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Tree,
    /// From 1; 0 if the value is of no file.
    pub(crate) line: usize,
    /// From 1, in characters.
    pub(crate) column: usize,
    /// Path of the node in the tree: `stages[2].tokenise.column`; empty for the whole file.
    pub(crate) path: String,
}

/// Values that a pipeline file can hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    List(Vec<Node>),
    Map(Vec<Field>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: String,
    /// Line of the key.
    pub(crate) line: usize,
    pub(crate) value: Node,
}

impl Node {
    pub(crate) fn new(value: Tree, line: usize, column: usize) -> Self {
        Self { value, line, column, path: String::new() }
    }

    /// An error at this place.
    #[cold]
    pub(crate) fn error(&self, message: impl fmt::Display) -> Error {
        at(&self.path, self.line, message)
    }

    /// Names the kind of the value, as the errors call it.
    pub(crate) fn kind(&self) -> String {
        match &self.value {
            Tree::Null => "nothing".into(),
            Tree::Bool(b) => format!("{b}"),
            Tree::Int(i) => format!("the number {i}"),
            Tree::Float(x) => format!("the number {x}"),
            Tree::Str(s) => format!("the text {}", quoted(s)),
            Tree::List(_) => "a list".into(),
            Tree::Map(_) => "a mapping".into(),
        }
    }

    /// Levels in it, 0 for a scalar.
    pub(crate) fn depth(&self) -> usize {
        let below = |nodes: &mut dyn Iterator<Item = &Self>| nodes.map(|n| 1 + n.depth()).max().unwrap_or(0);
        match &self.value {
            Tree::List(items) => below(&mut items.iter()),
            Tree::Map(fields) => below(&mut fields.iter().map(|f| &f.value)),
            _ => 0,
        }
    }

    /// Writes the paths of everything below, once the tree is complete.
    pub(crate) fn set_paths(&mut self, path: String) {
        match &mut self.value {
            Tree::List(items) => {
                items.iter_mut().enumerate().for_each(|(i, item)| item.set_paths(format!("{path}[{i}]")));
            }
            Tree::Map(fields) => fields.iter_mut().for_each(|f| f.value.set_paths(join(&path, &f.key))),
            _ => {}
        }
        self.path = path;
    }
}

/// `path.key`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// An error on a line, about the value at `path`.
#[cold]
pub(crate) fn at(path: &str, line: usize, message: impl fmt::Display) -> Error {
    let message = if path.is_empty() { message.to_string() } else { format!("{path}: {message}") };
    on_line(Error::config(message), line)
}

/// Adds the line, unless it is 0: the value is of no file. An error about another file keeps its place in its message.
#[cold]
pub(crate) fn on_line(error: Error, line: usize) -> Error {
    match line {
        0 => error,
        _ if error.file().is_some() => error.place_in_message().line(line as u64),
        _ => error.line(line as u64),
    }
}

/// Text in quotes, cut to what fits into a message.
fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// Counts values while a file is parsed, so that a small file cannot become a large tree.
#[derive(Debug, Default)]
pub(crate) struct Budget(usize);

impl Budget {
    /// Values so far.
    pub(crate) fn used(&self) -> usize {
        self.0
    }

    /// `count` more values, the deepest at `depth`.
    pub(crate) fn take(&mut self, count: usize, depth: usize, line: usize) -> Result<()> {
        self.0 = self.0.saturating_add(count);
        if self.0 > MAX_NODES {
            return Err(Error::config(format!("more than {MAX_NODES} values")).line(line as u64));
        }
        if depth > MAX_DEPTH {
            return Err(Error::config(format!("nested deeper than {MAX_DEPTH}")).line(line as u64));
        }
        Ok(())
    }
}

/// Adds a field to a mapping, refusing a key that is there already.
pub(crate) fn push_field(fields: &mut Vec<Field>, field: Field) -> Result<()> {
    if let Some(first) = fields.iter().find(|f| f.key == field.key) {
        let message = format!("the key `{}` is repeated, first on line {}", field.key, first.line);
        return Err(Error::config(message).line(field.line as u64));
    }
    fields.push(field);
    Ok(())
}

/// Line and column of byte offsets.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|i| i + 1)).collect();
        Self { text, starts }
    }

    /// Line and column, from 1, of byte `offset`.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
        (line, column + 1)
    }
}
