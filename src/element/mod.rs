//! Dynamically typed elements: across processes, in declared pipelines, in Python.
//!
//! Inside a typed Rust pipeline an element is any `T`. An [`Element`] is an ordered tree of named leaves; a leaf is an
//! [`Array`] (dtype, shape, bytes), bytes or text. Moving or cloning an element shares its memory and never copies it.

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
#[cfg(any(feature = "array_record", feature = "store"))]
pub(crate) mod room;
mod rows;
pub(crate) mod spare;
mod spec;
mod stack;
#[cfg(any(feature = "python", all(any(test, fuzzing), feature = "workers", target_os = "linux")))]
mod tree;

pub use array::{Array, ArrayMut};
#[cfg(feature = "columns")]
pub(crate) use batch_mut::Run;
#[cfg(any(feature = "columns", feature = "csv"))]
pub(crate) use batch_mut::{BatchMut, ColumnMut};
pub use buffer::{Buffer, BufferMut, Owner};
pub(crate) use cast::cast;
pub(crate) use cast::cast_number;
pub use digest::{Digest, OrderHash, StreamHasher};
pub(crate) use digest::{hex_text, read_hex};
pub use dtype::{DType, Scalar};
pub(crate) use many::Around;
pub use many::{Many, ManySlots};
pub use padded::Padded;
pub(crate) use part::{Part, Rows, Slot};
pub(crate) use ragged::RowIds;
pub use ragged::{Ragged, RaggedColumn};
pub use smol_str::{SmolStr as Name, SmolStr as Text};
pub use spec::{ElementSpec, LeafSpec};
pub use stack::Stack;
pub(crate) use stack::{StackSink, stack_into};

#[cfg(any(feature = "python", all(any(test, fuzzing), feature = "workers", target_os = "linux")))]
pub(crate) use tree::Tree;

use crate::error::{Error, Result};

/// A value of an [`Element`].
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Nothing: a null in a column.
    Null,
    /// Numbers.
    Array(Array),
    /// Text: stored inline up to 23 bytes; longer text is shared by all clones.
    Str(Text),
    /// Raw bytes.
    Bytes(Buffer),
    /// Values without names, such as a list of strings.
    List(Vec<Value>),
    /// Named values.
    Tree(Element),
}

impl Value {
    /// Returns the kind of the value in one word, such as `array`.
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

    /// Returns the payload bytes of the value, including nested values.
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

debug_as!(Value, |self, f| {
    match self {
        Self::Null => f.write_str("null"),
        Self::Array(a) => a.fmt(f),
        Self::Str(s) => write!(f, "text({} bytes)", s.len()),
        Self::Bytes(b) => write!(f, "bytes({})", b.len()),
        Self::List(l) => f.debug_list().entries(l).finish(),
        Self::Tree(t) => t.fmt(f),
    }
});

from_as!(Array => Value, |array| Self::Array(array));

from_as!(&str => Value, |text| Self::Str(text.into()));

from_as!(Element => Value, |tree| Self::Tree(tree));

/// An ordered tree of named values: the element of a dataset whose type is not known at compile time.
///
/// A batch is an element with a leading dimension. Names are unique. Fields keep their insertion order, which is part
/// of the value. Looking up a name takes linear time: elements have a handful of fields.
#[derive(Clone, Default, PartialEq)]
pub struct Element {
    fields: Vec<(Name, Value)>,
}

/// Elements stacked along a new leading dimension.
pub type Batch = Element;

impl Element {
    /// Returns an element without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an element without fields, with room for `fields` of them.
    pub fn with_capacity(fields: usize) -> Self {
        Self { fields: Vec::with_capacity(fields) }
    }

    /// Returns an element of `fields`, whose names must be unique.
    pub(crate) fn from_unique(fields: Vec<(Name, Value)>) -> Self {
        Self { fields }
    }

    /// Adds a field, or replaces the value of an existing field in place.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<str>, value: impl Into<Value>) -> Self {
        self.insert(name, value);
        self
    }

    /// Adds a field, or replaces the value of an existing field in place and returns the old value.
    pub fn insert(&mut self, name: impl AsRef<str>, value: impl Into<Value>) -> Option<Value> {
        let name = name.as_ref();
        if let Some(slot) = self.get_mut(name) {
            Some(std::mem::replace(slot, value.into()))
        } else {
            self.fields.push((Name::new(name), value.into()));
            None
        }
    }

    /// Removes a field and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.fields.iter().position(|(n, _)| n == name)?;
        Some(self.fields.remove(at).1)
    }

    /// Returns the value of field `name`, if it exists.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Returns a mutable reference to the value of field `name`.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.fields.iter_mut().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Returns the array of field `name`.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) that lists the fields if `name` is missing, or names the kind of its value
    /// if it is not an array.
    pub fn array(&self, name: &str) -> Result<&Array> {
        match self.field(name)? {
            Value::Array(array) => Ok(array),
            other => Err(wrong_kind(name, "an array", other)),
        }
    }

    /// Returns the text of field `name`.
    ///
    /// # Errors
    /// Fails like [`array`](Self::array), with text in place of an array.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.field(name)? {
            Value::Str(text) => Ok(text),
            other => Err(wrong_kind(name, "text", other)),
        }
    }

    /// Returns the value of field `name`, or an error if it is missing.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) that lists the existing fields.
    pub fn field(&self, name: &str) -> Result<&Value> {
        self.get(name).ok_or_else(|| {
            let names: Vec<_> = self.fields.iter().map(|(n, _)| n.as_str()).collect();
            Error::data(format!("no field {name:?}; the element has {}", names.join(", ")))
        })
    }

    /// Iterates over the fields in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + Clone {
        self.fields.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// Consumes the element and iterates over its fields in order.
    pub fn into_fields(self) -> impl ExactSizeIterator<Item = (Name, Value)> {
        self.fields.into_iter()
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns true if the element has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the payload bytes of all fields.
    pub fn nbytes(&self) -> usize {
        self.fields.iter().map(|(_, v)| v.nbytes()).sum()
    }
}

impl Element {
    /// Returns an element of null fields with these unique names; write the values through [`place_mut`](Self::place_mut).
    pub(crate) fn nulls(names: &[Name]) -> Self {
        Self { fields: names.iter().map(|name| (name.clone(), Value::Null)).collect() }
    }

    /// Returns the value of field `at`, which must exist.
    #[inline]
    pub(crate) fn place_mut(&mut self, at: usize) -> &mut Value {
        &mut self.fields[at].1
    }
}

#[cold]
fn wrong_kind(name: &str, want: &str, got: &Value) -> Error {
    Error::data(format!("field {name:?} is {}, expected {want}", got.kind()))
}

debug_as!(Element, |self, f| f.debug_map().entries(self.iter()).finish());

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
        assert!(e.array("b").unwrap_err().message().contains("is text, expected an array"));
    }
}
