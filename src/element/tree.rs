//! Trees of any shape: Python objects received from a worker.

use super::{Array, Buffer};

/// A tree of plain values and pickled leaves. Building a tree needs no interpreter. Arrays are views of the memory that
/// they arrived in.
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
    /// A pickle of any other object, such as a dataclass or a user's class, and the memory that the pickle refers to.
    Pickled(Buffer, Vec<Buffer>),
}

impl Tree {
    /// Returns the payload bytes of the tree.
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
