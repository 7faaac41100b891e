//! Python objects, as far as they are known without an interpreter.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::fuzz::survives;
use super::super::samples::{chunk, extent, trees};
use super::super::{ChunkWriter, Cross, Full, MAX_DEPTH, read};
use super::generate::value;
use crate::element::{Buffer, Tree, Value};
use crate::error::Result;

fn any_tree() -> impl Strategy<Value = Tree> {
    let array = value().prop_filter_map("no array", |value| match value {
        Value::Array(array) => Some(Tree::Array(array)),
        _ => None,
    });
    let bytes = || vec(any::<u8>(), 0..100).prop_map(|bytes| Buffer::copy_from(&bytes));
    let leaf = prop_oneof![
        Just(Tree::None),
        any::<bool>().prop_map(Tree::Bool),
        any::<i64>().prop_map(Tree::Int),
        any::<u64>().prop_map(|bits| Tree::Float(f64::from_bits(bits))),
        "\\PC{0,20}".prop_map(|text| Tree::Str(text.into())),
        bytes().prop_map(Tree::Bytes),
        array,
        (bytes(), vec(bytes(), 0..3)).prop_map(|(pickle, parts)| Tree::Pickled(pickle, parts)),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Tree::List),
            vec(inner.clone(), 0..5).prop_map(Tree::Tuple),
            vec(("\\PC{0,30}", inner), 0..5).prop_map(|fields| {
                Tree::Dict(fields.into_iter().map(|(name, tree)| (name.into_boxed_str(), tree)).collect())
            }),
        ]
    })
}

fn written(all: &[Result<Option<Tree>>]) -> Vec<u8> {
    chunk(1 << 16, |writer| all.iter().for_each(|tree| writer.push(tree).unwrap())).0
}

/// Its parts in words: arrays and buffers show their length, floats their bits.
fn shown(tree: &Tree) -> String {
    match tree {
        Tree::Float(number) => format!("{:x}", number.to_bits()),
        Tree::Bytes(bytes) => format!("{:?}", bytes.as_bytes()),
        Tree::Array(array) => format!("{}{:?}{:?}", array.dtype(), array.shape(), array.bytes()),
        Tree::List(trees) => format!("{:?}", trees.iter().map(shown).collect::<Vec<_>>()),
        Tree::Tuple(trees) => format!("({:?})", trees.iter().map(shown).collect::<Vec<_>>()),
        Tree::Dict(fields) => {
            format!("{:?}", fields.iter().map(|(name, tree)| (name, shown(tree))).collect::<Vec<_>>())
        }
        Tree::Pickled(pickle, parts) => {
            format!("{:?} {:?}", pickle.as_bytes(), parts.iter().map(Buffer::as_bytes).collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_what_is_read(all in vec(any_tree(), 0..5)) {
        let slots: Vec<_> = all.iter().map(|tree| Ok(Some(tree.clone()))).collect();
        let bytes = written(&slots);
        let got = read::<Tree>(&extent(&bytes), bytes.len()).unwrap();
        prop_assert_eq!(got.len(), all.len());
        for (got, tree) in got.into_iter().zip(&all) {
            let got = got.unwrap().unwrap();
            prop_assert_eq!((shown(&got), got.nbytes()), (shown(tree), tree.nbytes()));
        }
    }

    #[test]
    fn a_tree_needs_what_it_says(tree in any_tree()) {
        let slot = Ok(Some(tree));
        let Err(Full { need }) = ChunkWriter::new(&mut []).push(&slot) else { panic!("room in nothing") };
        let push = |len: usize| ChunkWriter::new(&mut vec![0; len]).push(&slot);
        prop_assert_eq!(push(need), Ok(()));
        prop_assert_eq!(push(need - 1), Err(Full { need }));
    }
}

#[test]
fn every_byte_of_trees_may_be_wrong() {
    let bytes = written(&trees().into_iter().map(|tree| Ok(Some(tree))).collect::<Vec<_>>());
    for at in 0..bytes.len() {
        for wrong in [0, 7, 0x7f, 0xff, bytes[at].wrapping_add(1)] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            survives(&bytes);
        }
    }
    for len in 0..bytes.len() {
        assert!(read::<Tree>(&extent(&bytes), len).is_err());
    }
}

#[test]
fn trees_that_are_too_deep_are_refused_where_they_are_written() {
    let deep = |depth: usize| (0..depth).fold(Tree::None, |tree, _| Tree::Tuple(vec![tree]));
    let one = |depth| read_one(&written(&[Ok(Some(deep(depth)))]));
    assert!(one(MAX_DEPTH).is_ok());
    assert!(one(MAX_DEPTH + 1).unwrap_err().to_string().contains("nested lists and trees"));
}

fn read_one(bytes: &[u8]) -> Result<Option<Tree>> {
    read::<Tree>(&extent(bytes), bytes.len()).unwrap().remove(0)
}

#[test]
fn it_is_no_other_kind() {
    let bytes = written(&[Ok(Some(Tree::Int(3)))]);
    let refused = read::<i64>(&extent(&bytes), bytes.len()).unwrap_err();
    assert!(refused.message().contains("an item of kind"), "{refused}");
    assert_ne!(Tree::KIND, 64, "the kind of what is an element or a tree");
}
