//! Memory for chunks, and chunks to damage, for the tests and for `fuzz/`.

use std::sync::Arc;

use super::ChunkWriter;
use super::write::Written;
use crate::element::{Array, ArrayMut, Buffer, BufferMut, DType, Element, Owner, Tree, Value};
use crate::error::{Error, Result};

/// Memory with the alignment of an extent: the start is a multiple of 64.
pub(super) struct Extent(pub(super) BufferMut);

impl Owner for Extent {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Returns an extent of these bytes.
pub(super) fn extent(bytes: &[u8]) -> Arc<dyn Owner> {
    let mut memory = BufferMut::zeroed(bytes.len());
    memory.as_mut_bytes().copy_from_slice(bytes);
    Arc::new(Extent(memory))
}

/// Runs `write` on an extent of `len` bytes. Returns the written bytes and their counts.
pub(super) fn chunk(len: usize, write: impl FnOnce(&mut ChunkWriter<'_>)) -> (Vec<u8>, Written) {
    let mut bytes = vec![0xa5; len];
    let mut writer = ChunkWriter::new(&mut bytes);
    write(&mut writer);
    let written = writer.finish();
    bytes.truncate(written.used);
    (bytes, written)
}

/// Returns slots of every sort.
pub(super) fn slots() -> Vec<Result<Option<Element>>> {
    let zeros = |dtype, shape: &[usize]| Array::builder(dtype, shape).map(ArrayMut::freeze);
    let text = |text: &str| Value::from(text);
    let mut all = Vec::new();
    for n in 0..6usize {
        let tree = Element::new().with("y", Array::scalar(n as f64)).with("t", text(&"ü".repeat(n)));
        let list = Value::List(vec![text("a"), Value::Tree(tree.clone()), Value::Null, Value::List(Vec::new())]);
        let element = Element::new().with("x", Array::from_vec(vec![n as i32; 3 * n])).with("tree", tree);
        let element = element.with("a name that is longer than what is kept inline", list).with("none", Value::Null);
        let element = element.with("bytes", Value::Bytes(Buffer::copy_from(&[7; 9][..n])));
        all.push(zeros(DType::ALL[n], &[2, n, 2, 1, 3]).map(|array| Some(element.with("deep", array))));
        all.push(Ok(None));
    }
    all.push(Err(Error::data("no").path("a").record(3).help("try again")));
    all
}

/// Returns trees with parts of every sort.
pub(super) fn trees() -> Vec<Tree> {
    let bytes = |len: usize| Buffer::from_vec(vec![7u8; len]);
    let array = |n: usize| Tree::Array(Array::from_vec(vec![n as i32; 5 * n]));
    let leaves = |n: usize| {
        vec![
            Tree::None,
            Tree::Bool(n.is_multiple_of(2)),
            Tree::Int(-1),
            Tree::Float(f64::NAN),
            Tree::Str("ü".repeat(n).into()),
        ]
    };
    let tree = |n: usize| {
        let pickled = Tree::Pickled(bytes(20 * n), (0..n).map(|part| bytes(30 * part)).collect());
        let inside = Tree::Tuple(vec![Tree::List(leaves(n)), array(n), Tree::Bytes(bytes(n)), pickled]);
        Tree::Dict(vec![
            ("x".into(), array(n + 1)),
            ("a longer name".into(), inside),
            ("".into(), Tree::List(Vec::new())),
        ])
    };
    (0..4).map(tree).chain(leaves(3)).collect()
}
