//! Elements where they must be dynamic: across processes, in declared pipelines, in Python.
//!
//! Inside a typed Rust pipeline an element is any `T`. An [`Element`] is an ordered tree of named leaves; a leaf is an
//! [`Array`] (dtype, shape, bytes), bytes or text. Its memory is shared, never copied, when it moves along.

mod array;
#[cfg(any(feature = "columns", feature = "csv"))]
mod batch_mut;
mod buffer;
mod cast;
mod digest;
mod dtype;
mod many;
mod padded;
mod part;
mod ragged;
mod rows;
pub(crate) mod spare;
mod spec;
mod stack;
#[cfg(any(feature = "python", all(any(test, fuzzing), feature = "workers", target_os = "linux")))]
#[cfg_attr(
    not(all(feature = "workers", target_os = "linux")),
    expect(dead_code, reason = "trees come from worker processes")
)]
mod tree;

use std::fmt;

pub use array::{Array, ArrayMut};
#[cfg(feature = "columns")]
pub(crate) use batch_mut::Run;
#[cfg(any(feature = "columns", feature = "csv"))]
pub(crate) use batch_mut::{BatchMut, ColumnMut};
pub use buffer::{Buffer, BufferMut, Owner};
pub(crate) use cast::cast;
#[cfg(feature = "columns")]
pub(crate) use cast::cast_number;
pub(crate) use digest::read_hex;
pub use digest::{Digest, OrderHash, StreamHasher};
pub use dtype::{DType, Scalar};
pub(crate) use many::Around;
pub use many::{Many, ManySlots};
pub use padded::Padded;
pub(crate) use part::{Part, Rows, Slot};
pub use ragged::{Ragged, RaggedColumn};
pub(crate) use ragged::{StandsFor, Tag};
pub use smol_str::{SmolStr as Name, SmolStr as Text};
pub use spec::{ElementSpec, LeafSpec};
pub use stack::Stack;
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) use stack::{StackSink, stack_into};

#[cfg(any(feature = "python", all(any(test, fuzzing), feature = "workers", target_os = "linux")))]
pub(crate) use tree::Tree;

use crate::error::{Error, Result};

/// One value of an [`Element`].
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing: a null in a column.
    Null,
    /// Numbers.
    Array(Array),
    /// Text: up to 23 bytes lie in the value itself, more are shared by all clones.
    Str(Text),
    /// Raw bytes.
    Bytes(Buffer),
    /// Values without names, such as a list of strings.
    List(Vec<Value>),
    /// Named values.
    Tree(Element),
}

impl Value {
    /// Its kind, in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Array(_) => "array",
            Self::Str(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Tree(_) => "tree",
        }
    }

    /// Payload bytes in it and below.
    pub fn nbytes(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Array(a) => a.bytes().len(),
            Self::Str(s) => s.len(),
            Self::Bytes(b) => b.len(),
            Self::List(l) => l.iter().map(Self::nbytes).sum(),
            Self::Tree(t) => t.nbytes(),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Array(a) => a.fmt(f),
            Self::Str(s) => write!(f, "text({} bytes)", s.len()),
            Self::Bytes(b) => write!(f, "bytes({})", b.len()),
            Self::List(l) => f.debug_list().entries(l).finish(),
            Self::Tree(t) => t.fmt(f),
        }
    }
}

impl From<Array> for Value {
    fn from(array: Array) -> Self {
        Self::Array(array)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<Element> for Value {
    fn from(tree: Element) -> Self {
        Self::Tree(tree)
    }
}

/// An ordered tree of named values: what a dataset yields where its type is not known to the compiler.
///
/// A batch is the same with a leading dimension. Names are unique; the order is that of insertion and is part of the
/// value. Looking a name up is linear: elements have a handful of fields.
#[derive(Clone, Default, PartialEq)]
pub struct Element {
    fields: Vec<(Name, Value)>,
}

/// Elements stacked along a new leading dimension.
pub type Batch = Element;

impl Element {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// No fields yet, room for `fields`.
    pub fn with_capacity(fields: usize) -> Self {
        Self { fields: Vec::with_capacity(fields) }
    }

    /// Fields whose names are known to be unique.
    pub(crate) fn from_unique(fields: Vec<(Name, Value)>) -> Self {
        Self { fields }
    }

    /// Fields of these names, which are unique, all null: values are written to their [places](Self::place_mut).
    #[cfg(any(feature = "columns", feature = "csv"))]
    pub(crate) fn nulls(names: &[Name]) -> Self {
        Self { fields: names.iter().map(|name| (name.clone(), Value::Null)).collect() }
    }

    /// The value of field `at`, which is one of those there are.
    #[cfg(any(feature = "columns", feature = "csv"))]
    #[inline]
    pub(crate) fn place_mut(&mut self, at: usize) -> &mut Value {
        &mut self.fields[at].1
    }

    /// Adds a field, or replaces the value of that name in its place.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<str>, value: impl Into<Value>) -> Self {
        self.insert(name, value);
        self
    }

    /// Adds a field, or replaces the value of that name in its place, and returns the old value.
    pub fn insert(&mut self, name: impl AsRef<str>, value: impl Into<Value>) -> Option<Value> {
        let name = name.as_ref();
        match self.get_mut(name) {
            Some(slot) => Some(std::mem::replace(slot, value.into())),
            None => {
                self.fields.push((Name::new(name), value.into()));
                None
            }
        }
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.fields.iter().position(|(n, _)| n == name)?;
        Some(self.fields.remove(at).1)
    }

    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// The value of that name, to change.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.fields.iter_mut().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// The array of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) that lists the fields if there is none, or names what is there instead.
    pub fn array(&self, name: &str) -> Result<&Array> {
        match self.field(name)? {
            Value::Array(array) => Ok(array),
            other => Err(wrong_kind(name, "an array", other)),
        }
    }

    /// The text of that name.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.field(name)? {
            Value::Str(text) => Ok(text),
            other => Err(wrong_kind(name, "text", other)),
        }
    }

    /// The value of that name.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) that lists the fields there are.
    pub fn field(&self, name: &str) -> Result<&Value> {
        self.get(name).ok_or_else(|| {
            let names: Vec<_> = self.fields.iter().map(|(n, _)| n.as_str()).collect();
            Error::data(format!("no field {name:?}; the element has {}", names.join(", ")))
        })
    }

    /// Fields in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + Clone {
        self.fields.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// Fields in order, by value.
    pub fn into_fields(self) -> impl ExactSizeIterator<Item = (Name, Value)> {
        self.fields.into_iter()
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Payload bytes in it.
    pub fn nbytes(&self) -> usize {
        self.fields.iter().map(|(_, v)| v.nbytes()).sum()
    }
}

#[cold]
fn wrong_kind(name: &str, want: &str, got: &Value) -> Error {
    Error::data(format!("field {name:?} is {} where {want} is needed", got.kind()))
}

impl fmt::Debug for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_and_place() {
        let mut e = Element::new().with("b", "x").with("a", Array::scalar(1i32));
        assert!(e.insert("b", "y").is_some());
        assert_eq!(e.iter().map(|(n, _)| n).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(e.text("b").unwrap(), "y");
        assert_eq!(e.nbytes(), 5);
        assert!(e.array("c").unwrap_err().message().contains("b, a"));
        assert!(e.array("b").unwrap_err().message().contains("text where an array"));
    }
}
