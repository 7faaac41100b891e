//! Tests that what is written is what is read.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::samples::{Extent, chunk, extent};
use super::super::{ChunkWriter, Crossing, Full, MAX_DEPTH, read, read_parts};
use super::generate::{any_slots, element_of, value};
use super::{Slot, check_views, same};
use crate::element::Part;
use crate::element::{Array, BufferMut, DType, Element, Owner, Stack, Value};
use crate::error::Error;

/// Writes all slots into extents of `len` bytes, larger ones where a slot needs it, and reads them back.
fn through(all: &[Slot], len: usize) -> Vec<Slot> {
    let (mut seen, mut rest, mut len_now) = (Vec::new(), all, len);
    while !rest.is_empty() {
        let mut full = None;
        let (bytes, written) = chunk(len_now, |writer| {
            full = rest.iter().find_map(|slot| writer.push(slot).err());
        });
        if written.indices == 0 {
            let Full { need } = full.expect("a chunk without slots is one where not even the first has room");
            assert!(need > len_now, "{need} bytes would have had room in {len_now}");
            len_now = need;
            continue;
        }
        let owner = extent(&bytes);
        let got = read::<Element>(&owner, written.used).unwrap();
        assert_eq!(got.len() as u64, written.indices);
        assert_eq!(full.is_none(), written.indices == rest.len() as u64);
        check_views(&got, &owner);
        rest = &rest[got.len()..];
        seen.extend(got);
        len_now = len;
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_slots_come_back_from_extents_of_any_size(all in any_slots(), len in 0usize..6000) {
        prop_assert!(same(&through(&all, len), &all));
    }

    #[test]
    fn a_slot_needs_what_it_says(slot in element_of(value())) {
        let slot = Ok(Some(slot));
        let Err(Full { need }) = ChunkWriter::new(&mut []).push(&slot) else { panic!("room in nothing") };
        let push = |len: usize| ChunkWriter::new(&mut vec![0; len]).push(&slot);
        prop_assert_eq!(push(need), Ok(()));
        prop_assert_eq!(push(need - 1), Err(Full { need }));
    }

    #[test]
    fn a_batch_is_stacked_in_its_place(kind in element_of(value()), count in 1usize..5, len in 0usize..4000) {
        let items: Vec<Element> = (0..count).map(|_| kind.clone()).collect();
        let refs: Vec<&Element> = items.iter().collect();
        let expected = Element::stack(items.clone()).unwrap();
        let mut need = len;
        let (bytes, written) = loop {
            let mut full = Ok(());
            let made = chunk(need, |writer| full = writer.push_stacked(&refs).unwrap());
            match full {
                Ok(()) => break made,
                Err(Full { need: more }) => {
                    prop_assert!(more > need);
                    need = more;
                }
            }
        };
        prop_assert_eq!(written.indices, count as u64);
        let owner = extent(&bytes);
        prop_assert!(read::<Element>(&owner, written.used).is_err());
        let got = read_parts(&owner, written.used, Crossing::<i64>::OF, Some(Crossing::<Element>::OF)).unwrap();
        let [Part::Whole(Ok(got), indices)] = &got[..] else { panic!("no whole") };
        prop_assert_eq!(*indices, count as u64);
        check_views(&[Ok(Some(got.clone()))], &owner);
        prop_assert_eq!(got, &expected);
    }

    #[test]
    fn batches_that_differ_fail_as_they_do_elsewhere(a in element_of(value()), b in element_of(value()), len in 0usize..4000) {
        let expected = Element::stack(vec![a.clone(), b.clone()]).map_err(|e| format!("{e:?}"));
        let mut bytes = vec![0; len];
        let mut writer = ChunkWriter::new(&mut bytes);
        match writer.push_stacked(&[&a, &b]) {
            Ok(_) => prop_assert!(expected.is_ok()),
            Err(error) => prop_assert_eq!(expected.unwrap_err(), format!("{error:?}")),
        }
    }
}

#[test]
fn names_are_written_once() {
    let element = |i: i64| {
        let inner = Element::new().with("another column with a long name", Array::scalar(i));
        Element::new().with("a column with a long name, too", Array::from_vec(vec![i; 16])).with("tree", inner)
    };
    let n = 10_000;
    let (_, written) = chunk(4 << 20, |writer| (0..n).for_each(|i| writer.push(&Ok(Some(element(i)))).unwrap()));
    assert_eq!(written.indices, n as u64);
    // 128 bytes of payload; in the table the slot, two structures, a length, an offset, a number.
    assert!(written.used < n as usize * (128 + 6 * 8) + 16_384, "{}", written.used);
}

#[test]
fn structures_that_alternate_are_found_again() {
    let of = |i: usize| {
        let mut element = Element::new();
        for name in ["a", "b", "c", "d"].iter().take(1 + i * 7 % 4) {
            element.insert(name, Array::scalar(i as i64));
        }
        Ok(Some(element))
    };
    let all: Vec<Slot> = (0..5000).map(of).collect();
    let (bytes, written) = chunk(1 << 20, |writer| all.iter().for_each(|slot| writer.push(slot).unwrap()));
    assert!(same(&read::<Element>(&extent(&bytes), written.used).unwrap(), &all));
    assert!(written.used < 5000 * 8 * 5 + 16_384, "{}", written.used);
}

/// A tree in a list in a tree, and so on.
fn nested(levels: usize) -> Element {
    let mut element = Element::new();
    for level in 1..levels {
        let value = Value::Tree(element);
        let value = if level % 2 == 0 { value } else { Value::List(vec![value]) };
        element = Element::new().with("x", value);
    }
    element
}

#[test]
fn what_is_nested_too_deep_becomes_an_error_in_its_place() {
    let through = |element: Element| {
        let (bytes, written) = chunk(1 << 20, |writer| writer.push(&Ok(Some(element))).unwrap());
        read::<Element>(&extent(&bytes), written.used).unwrap().remove(0)
    };
    // Every second tree has a list around it.
    let deepest = MAX_DEPTH * 2 / 3;
    assert_eq!(through(nested(deepest)).unwrap(), Some(nested(deepest)));
    let error = through(nested(deepest + 1)).unwrap_err();
    assert_eq!(error.message(), "an element has more than 128 nested lists and trees");
}

#[test]
fn errors_in_between_have_all_their_parts() {
    let source = std::io::Error::other("the cable is out");
    let slots: Vec<Slot> =
        vec![Ok(None), Err(Error::io(source, "far/away").record(7).stage("0 source").help("plug it in"))];
    let (bytes, written) = chunk(4096, |writer| slots.iter().for_each(|slot| writer.push(slot).unwrap()));
    let got = read::<Element>(&extent(&bytes), written.used).unwrap();
    assert!(same(&got, &slots));
    let error = got[1].as_ref().unwrap_err();
    assert_eq!(std::error::Error::source(error).unwrap().to_string(), "the cable is out");
}

#[test]
fn the_extent_lives_as_long_as_a_view() {
    let mut memory = BufferMut::zeroed(4096);
    let element =
        Element::new().with("x", Array::from_vec(vec![1i64; 4])).with("n", Array::scalar(7i64)).with("t", "text");
    let mut writer = ChunkWriter::new(memory.as_mut_bytes());
    writer.push(&Ok(Some(element))).unwrap();
    let used = writer.finish().used;
    let owner: Arc<dyn Owner> = Arc::new(Extent(memory));
    let weak = Arc::downgrade(&owner);
    let mut read = read::<Element>(&owner, used).unwrap().remove(0).unwrap().unwrap();
    drop(owner);
    let x = read.remove("x");
    // What is left needs no memory of the extent.
    assert!(weak.upgrade().is_some());
    drop(x);
    assert!(weak.upgrade().is_none());
    assert_eq!((read.array("n").unwrap().as_i64(), read.text("t").unwrap()), (Some(7), "text"));
}

#[test]
fn wholes_and_slots_keep_their_order() {
    let (slot, whole) = (Crossing::<i64>::OF, Crossing::<Vec<i64>>::OF);
    let (bytes, written) = chunk(4096, |writer| {
        writer.push_with(&Ok(Some(1)), slot).unwrap();
        writer.push_with(&Ok(None), slot).unwrap();
        writer.push_whole(&Ok(vec![2, 3, 4]), 3, whole).unwrap();
        writer.push_whole(&Err(Error::data("no batch").stage("2 batch")), 3, whole).unwrap();
        writer.push_with(&Err(Error::data("no element").index(8)), slot).unwrap();
        writer.push_with(&Ok(Some(9)), slot).unwrap();
    });
    assert_eq!(written.indices, 10);
    let parts = read_parts(&extent(&bytes), written.used, slot, Some(whole)).unwrap();
    assert_eq!(parts.iter().map(Part::len).sum::<u64>(), 10);
    let texts: Vec<String> = parts
        .into_iter()
        .map(|part| match part {
            Part::Slots(slots) => format!("{:?}", slots.into_iter().collect::<Vec<_>>()),
            Part::Rows(rows) => format!("{} rows", rows.len()),
            Part::Whole(whole, indices) => format!("{indices} {whole:?}"),
        })
        .collect();
    let expected = [
        "[Ok(Some(1)), Ok(None)]",
        "3 Ok([2, 3, 4])",
        "3 Err(Data: stage 2 batch: no batch)",
        "[Err(Data: element 8: no element), Ok(Some(9))]",
    ];
    assert_eq!(texts, expected);
    assert!(read::<i64>(&extent(&bytes), written.used).unwrap_err().message().contains("no slot of kind"));
}

/// Writes a chunk of `len` bytes of these elements, and reads it: the length of each part that is rows, 0 for one
/// that is not.
fn runs_of(all: &[Slot]) -> Vec<usize> {
    let (bytes, written) = chunk(1 << 20, |writer| all.iter().for_each(|slot| writer.push(slot).unwrap()));
    assert_eq!(written.indices, all.len() as u64);
    let owner = extent(&bytes);
    assert!(same(&read::<Element>(&owner, written.used).unwrap(), all));
    check_views(&read::<Element>(&owner, written.used).unwrap(), &owner);
    let parts = read_parts(&owner, written.used, Crossing::<Element>::OF, None::<Crossing<i64>>).unwrap();
    parts.iter().map(|part| if let Part::Rows(rows) = part { rows.len() } else { 0 }).collect()
}

fn row(n: usize, x: i64) -> Slot {
    let numbers = Array::from_vec(vec![x as i32; n]);
    let array = Array::new(DType::I32, &[1, n, 1], numbers.buffer().clone()).unwrap();
    Ok(Some(
        Element::new().with("a", Array::scalar(x as i16)).with("x", array).with("none", Array::from_vec(vec![x; 0])),
    ))
}

#[test]
fn elements_of_one_kind_are_rows() {
    let all: Vec<Slot> = (0..1000).map(|x| row(20, x)).collect();
    assert_eq!(runs_of(&all), [1000]);
    let mixed: Vec<Slot> = (0..30).map(|x| row(20, x)).chain([Ok(None)]).chain((0..30).map(|x| row(21, x))).collect();
    assert_eq!(runs_of(&mixed), [30, 0, 30]);
}

#[test]
fn elements_of_many_kinds_are_no_rows_of_one() {
    let ragged: Vec<Slot> = (0..100).map(|x| row(3 + x as usize % 7, x)).collect();
    let runs = runs_of(&ragged);
    // One in so many is tried.
    assert!(runs.iter().filter(|rows| **rows == 1).count() <= 7, "{runs:?}");
    // Then equal ones come.
    let all: Vec<Slot> = ragged.into_iter().chain((0..100).map(|x| row(9, x))).collect();
    assert!(runs_of(&all).into_iter().max() > Some(80));
}

#[test]
fn rows_without_a_byte_are_none() {
    let empty = |_| Ok(Some(Element::new().with("x", Array::from_vec(vec![0u8; 0]))));
    assert_eq!(runs_of(&(0..10).map(empty).collect::<Vec<_>>()), [10]);
    assert_eq!(runs_of(&(0..10).map(|_| Ok(Some(Element::new()))).collect::<Vec<_>>()), [0]);
}
