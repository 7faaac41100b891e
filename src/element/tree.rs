//! Trees of any shape: Python objects on their way from a worker.

use super::{Array, Buffer};

/// A tree of what crosses without being pickled, and of pickled leaves. It is made without an interpreter; arrays are views of the memory
/// that they came in.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Box<str>),
    Bytes(Buffer),
    Array(Array),
    List(Vec<Tree>),
    Tuple(Vec<Tree>),
    Dict(Vec<(Box<str>, Tree)>),
    /// Anything else, and the memory that its pickle refers to: a dataclass, an object of a user's own class.
    Pickled(Buffer, Vec<Buffer>),
}

impl Tree {
    /// Payload bytes in it.
    pub(crate) fn nbytes(&self) -> usize {
        match self {
            Self::None | Self::Bool(_) => 1,
            Self::Int(_) | Self::Float(_) => size_of::<i64>(),
            Self::Str(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Array(array) => array.bytes().len(),
            Self::List(trees) | Self::Tuple(trees) => trees.iter().map(Self::nbytes).sum(),
            Self::Dict(fields) => fields.iter().map(|(_, tree)| tree.nbytes()).sum(),
            Self::Pickled(pickle, parts) => pickle.len() + parts.iter().map(Buffer::len).sum::<usize>(),
        }
    }
}
