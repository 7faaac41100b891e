//! Types of arguments: how each is read, and how it is described.

use std::marker::PhantomData;
use std::ops::Deref;
use std::path::PathBuf;

use super::arguments::Kind;
use super::node::{Field, Node, Tree};
use super::suggest::suggest;
use crate::error::{Error, Result};
use crate::units::parse_bytes;

/// A type that an argument can have.
pub(crate) trait Decode: Sized {
    /// The kind of values that it is read from.
    const KIND: Kind;
    /// Whether it may be left out, and is read from nothing then.
    const IS_OPTIONAL: bool = false;

    /// Reads it.
    fn decode(node: &Node) -> Result<Self>;

    /// Tries to read it, as far as that needs nothing else.
    #[cfg(test)]
    fn check(node: &Node) -> Result<()> {
        Self::decode(node).map(drop)
    }
}

/// Implements [`Decode`] for a type: its kind, and the function that reads it.
macro_rules! decode_as {
    ($type:ty, $kind:expr, |$node:ident| $body:expr) => {
        impl $crate::declare::values::Decode for $type {
            const KIND: $crate::declare::arguments::Kind = $kind;

            fn decode($node: &$crate::declare::node::Node) -> $crate::error::Result<Self> {
                $body
            }
        }
    };
}
pub(crate) use decode_as;

/// The error of a value of another kind.
#[cold]
pub(crate) fn wrong(node: &Node, want: &str) -> Error {
    let error = node.error(format!("needs {want}, got {}", node.kind()));
    match &node.value {
        Tree::Str(text) if want == "true or false" && matches!(text.as_str(), "yes" | "on" | "no" | "off") => {
            error.help("in YAML 1.2 yes, no, on and off are text: write true or false")
        }
        Tree::Str(text) if want.contains("number") && text.contains('_') => {
            error.help("YAML and JSON numbers are written without underscores")
        }
        Tree::Str(text) if want.contains("number") && text.parse::<f64>().is_ok() => error.help("remove the quotes"),
        _ => error,
    }
}

decode_as!(bool, Kind::Bool, |node| {
    if let Tree::Bool(value) = node.value { Ok(value) } else { Err(wrong(node, "true or false")) }
});

decode_as!(String, Kind::Text, |node| {
    if let Tree::Str(text) = &node.value { Ok(text.clone()) } else { Err(wrong(node, "text")) }
});

decode_as!(PathBuf, Kind::Path, |node| String::decode(node).map(Self::from));

/// A tokenizer: the path of its file, or its contents. Text that begins with `{` is a `tokenizer.json`, and text that begins
/// with `data:;base64,` is any file of a tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenizerFile(pub(crate) String);

decode_as!(TokenizerFile, Kind::Tokenizer, |node| String::decode(node).map(Self));

decode_as!(f64, Kind::Number, |node| {
    match node.value {
        Tree::Float(number) if number.is_finite() => Ok(number),
        Tree::Int(number) => Ok(number as Self),
        _ => Err(wrong(node, "a number")),
    }
});

macro_rules! decode_integer {
    ($($type:ty),*) => {
        $(impl Decode for $type {
            const KIND: Kind = Kind::Integer { min: <$type>::MIN as i64, max: <$type>::MAX as u64 };

            fn decode(node: &Node) -> Result<Self> {
                let Tree::Int(number) = node.value else { return Err(wrong(node, "a whole number")) };
                Self::try_from(number).map_err(|_| match number < 0 {
                    true => node.error(format!("{number} is less than {}", <$type>::MIN)),
                    false => node.error(format!("{number} is more than {}", <$type>::MAX)),
                })
            }
        })*
    };
}
decode_integer!(u32, u64, usize, i64);

/// A whole number that is `LEAST` or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtLeast<const LEAST: u32>(pub(crate) u64);

impl<const LEAST: u32> Decode for AtLeast<LEAST> {
    const KIND: Kind = Kind::Integer { min: LEAST as i64, max: u64::MAX };

    fn decode(node: &Node) -> Result<Self> {
        match u64::decode(node)? {
            number if number < u64::from(LEAST) => {
                Err(node.error(format!("is {number}, and must be at least {LEAST}")))
            }
            number => Ok(Self(number)),
        }
    }
}

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Between<const LEAST: u32, const MOST: u32>(pub(crate) u32);

impl<const LEAST: u32, const MOST: u32> Decode for Between<LEAST, MOST> {
    const KIND: Kind = Kind::Integer { min: LEAST as i64, max: MOST as u64 };

    fn decode(node: &Node) -> Result<Self> {
        let AtLeast(number) = AtLeast::<LEAST>::decode(node)?;
        let checked = u32::try_from(number).ok().filter(|number| *number <= MOST);
        checked.map(Self).ok_or_else(|| node.error(format!("is {number}, and must be at most {MOST}")))
    }
}

/// A whole number of which the stage itself refuses 0, in its own words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positive<T>(pub(crate) T);

impl<T: Decode> Decode for Positive<T> {
    const KIND: Kind = match T::KIND {
        Kind::Integer { max, .. } => Kind::Integer { min: 1, max },
        other => other,
    };

    fn decode(node: &Node) -> Result<Self> {
        T::decode(node).map(Self)
    }
}

/// An amount of memory in bytes: a number, or text such as `512MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount(u64);

from_as!(Amount => u64, |Amount(bytes)| bytes);

from_as!(Amount => usize, |Amount(bytes)| Self::try_from(bytes).unwrap_or(Self::MAX));

decode_as!(Amount, Kind::Memory, |node| {
    match &node.value {
        Tree::Str(text) => parse_bytes(text)
            .map(Self)
            .ok_or_else(|| node.error(format!("`{text}` is no amount of memory")).help("such as 512MiB or 2GiB")),
        _ => u64::decode(node).map(Self),
    }
});

/// A list; a single value is a list of length 1.
impl<T: Decode> Decode for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);

    fn decode(node: &Node) -> Result<Self> {
        match &node.value {
            Tree::List(items) => items.iter().map(T::decode).collect(),
            Tree::Map(_) | Tree::Null => Err(wrong(node, "a list")),
            _ => Ok(vec![T::decode(node)?]),
        }
    }
}

/// Values by names that the user chooses.
#[derive(Debug)]
pub(crate) struct Map<T>(pub(crate) Vec<(String, T)>);

impl<T: Decode> Decode for Map<T> {
    const KIND: Kind = Kind::Map(&T::KIND);

    fn decode(node: &Node) -> Result<Self> {
        let one = |field: &Field| Ok((field.key.clone(), T::decode(&field.value)?));
        match &node.value {
            Tree::Map(fields) => fields.iter().map(one).collect::<Result<_>>().map(Self),
            Tree::Null => Ok(Self(Vec::new())),
            _ => Err(wrong(node, "a mapping of arguments")),
        }
    }
}

/// A value that may be left out.
impl<T: Decode> Decode for Option<T> {
    const KIND: Kind = T::KIND;
    const IS_OPTIONAL: bool = true;

    fn decode(node: &Node) -> Result<Self> {
        if let Tree::Null = node.value { Ok(None) } else { T::decode(node).map(Some) }
    }

    #[cfg(test)]
    fn check(node: &Node) -> Result<()> {
        if node.value == Tree::Null { Ok(()) } else { T::check(node) }
    }
}

decode_as!(Node, Kind::Any, |node| Ok(node.clone()));

/// A value with its place that is read as a `T` later, once the columns or the folder of the file are known.
#[derive(Debug)]
pub(crate) struct Given<T> {
    node: Node,
    kind: PhantomData<fn() -> T>,
}

impl<T: Decode> Given<T> {
    /// Reads it.
    pub(crate) fn get(&self) -> Result<T> {
        T::decode(&self.node)
    }
}

impl<T> Deref for Given<T> {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl<T: Decode> Decode for Given<T> {
    const KIND: Kind = T::KIND;

    fn decode(node: &Node) -> Result<Self> {
        Ok(Self { node: node.clone(), kind: PhantomData })
    }

    #[cfg(test)]
    fn check(node: &Node) -> Result<()> {
        T::check(node)
    }
}

/// The place of a word among `words`.
pub(crate) fn word(node: &Node, words: &[&'static str]) -> Result<usize> {
    let word = String::decode(node)?;
    words.iter().position(|known| *known == word).ok_or_else(|| {
        let error = node.error(format!("`{word}` is none of {}", words.join(", ")));
        suggest(error, &word, words.iter().copied())
    })
}
