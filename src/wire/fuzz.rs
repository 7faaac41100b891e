//! The reader on arbitrary bytes, for `fuzz/` and the tests of damage.

use super::samples::{chunk, extent, slots, trees};
use super::{Cross, Crossing, HEADER, MAGIC, VERSION, read, read_lane, read_parts};
use crate::element::Padded;
use crate::element::Part;
use crate::element::{Element, Tree, Value};
use crate::error::{Error, Result};

/// Reads arbitrary bytes as a chunk, as a chunk after a valid header, or as damage to a valid chunk.
pub(crate) fn wire(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    match first % 3 {
        0 => survives(rest),
        1 => survives(&framed(rest)),
        _ => {
            let (mut bytes, _) = chunk(1 << 16, |writer| {
                slots().iter().for_each(|slot| writer.push(slot).expect("room for all of them"));
                let batch = slots().swap_remove(0);
                let batch = batch.map(Option::unwrap_or_default);
                writer.push_whole(&batch, 3, Crossing::OF).expect("room for this one, too");
                writer.push_whole::<Element>(&Err(Error::data("no")), 3, Crossing::OF).expect("room for an error");
            });
            damage(&mut bytes, rest);
            survives(&bytes);
            let (mut bytes, _) = chunk(1 << 16, |writer| {
                for (n, slot) in slots().into_iter().filter_map(Result::transpose).enumerate() {
                    let mark = (n % 2 == 0).then_some("{\"dataset\": 1, \"state\": null}");
                    let written = writer.push_lane(&slot, mark, Crossing::OF).expect("it can be written");
                    written.expect("room for all of them");
                }
                writer.push_end(None).expect("room for the end");
            });
            damage(&mut bytes, rest);
            survives(&bytes);
            let (mut bytes, _) = chunk(1 << 16, |writer| {
                trees().into_iter().for_each(|tree| writer.push(&Ok(Some(tree))).expect("room for all of them"));
            });
            damage(&mut bytes, rest);
            survives(&bytes);
        }
    }
}

/// Changes a byte for every four bytes of `hits`.
fn damage(bytes: &mut [u8], hits: &[u8]) {
    for hit in hits.as_chunks::<4>().0 {
        let at = usize::from(u16::from_le_bytes([hit[0], hit[1]])) % bytes.len();
        // Numbers of the table are small, so only the lowest byte of most words matters.
        let at = if hit[2] & 3 == 0 { at } else { at / 8 * 8 };
        bytes[at] = hit[3];
    }
}

/// Returns a chunk of this table and payload. The first byte is the number of slots.
fn framed(rest: &[u8]) -> Vec<u8> {
    let len = (HEADER + rest.len()) as u64;
    let slots = rest.first().copied().unwrap_or(0).into();
    let header = [MAGIC, VERSION, len, slots, len / 8, 0, 0, 0].map(u64::to_le_bytes);
    [header.as_flattened(), rest].concat()
}

/// Reads bytes that may be damaged.
///
/// # Panics
/// If the decoded data holds more memory than its length allows, or if encoding it again does not reproduce it.
pub(super) fn survives(bytes: &[u8]) {
    let owner = extent(bytes);
    if let Ok(slots) = read::<Element>(&owner, bytes.len()) {
        same_again(&slots);
    }
    if let Ok(parts) = read_parts::<Element, Element>(&owner, bytes.len(), Crossing::OF, Some(Crossing::OF)) {
        let held: usize = parts.into_iter().map(|part| held_by(&part.made())).sum();
        assert!(held <= 32 * bytes.len(), "{held} bytes held by a chunk of {}", bytes.len());
    }
    if let Ok(lane) = read_lane::<Element>(&owner, bytes.len(), Crossing::OF) {
        let own = |(slot, mark): &(Result<Element>, Option<String>)| {
            let element = slot.as_ref().map_or(0, |element| size_of::<Element>() + heap_of(element));
            size_of_val(slot) + size_of_val(mark) + element + mark.as_ref().map_or(0, String::len)
        };
        let held: usize = lane.slots.iter().map(own).sum();
        assert!(held <= 32 * bytes.len(), "{held} bytes held by a lane of {}", bytes.len());
    }
    if let Ok(slots) = read::<Vec<Element>>(&owner, bytes.len()) {
        same_again(&slots);
    }
    if let Ok(trees) = read::<Tree>(&owner, bytes.len()) {
        let held: usize = trees.iter().flatten().flatten().map(|tree| size_of_val(tree) + heap_of_tree(tree)).sum();
        assert!(held <= 32 * bytes.len(), "{held} bytes held by trees of {}", bytes.len());
        let once = trees_as_bytes(&trees);
        let again = read::<Tree>(&extent(&once), once.len()).expect("bytes that were just written");
        assert_eq!(trees_as_bytes(&again), once, "{again:?} was {trees:?}");
    }
    drop(read::<Vec<i64>>(&owner, bytes.len()));
    drop(read::<(String, Padded<Vec<u8>>)>(&owner, bytes.len()));
}

fn same_again<T: Cross + PartialEq + std::fmt::Debug>(slots: &[Result<Option<T>>]) {
    // Views may overlap in damaged input, and take more room if written again.
    let (bytes, written) = chunk(1 << 20, |writer| {
        let _ = slots.iter().try_for_each(|slot| writer.push(slot));
    });
    let again = read::<T>(&extent(&bytes), written.used).expect("bytes that were just written");
    let same = |(a, b): (&Result<Option<T>>, &Result<Option<T>>)| match (a, b) {
        (Ok(a), Ok(b)) => a == b,
        (a, b) => format!("{a:?}") == format!("{b:?}"),
    };
    assert!(again.iter().zip(slots).all(same), "{again:?} was {slots:?}");
}

/// Encodes trees, to compare them by bytes. A NaN does not equal itself.
fn trees_as_bytes(trees: &[Result<Option<Tree>>]) -> Vec<u8> {
    chunk(1 << 20, |writer| {
        let _ = trees.iter().try_for_each(|tree| writer.push(tree));
    })
    .0
}

/// Returns the bytes that a part holds.
fn held_by(part: &Part<Element, Element>) -> usize {
    let own = |element: &Element| size_of::<Element>() + heap_of(element);
    size_of_val(part)
        + match part {
            Part::Slots(slots) => slots.items().iter().map(own).sum(),
            Part::Rows(_) => 0,
            Part::Whole(whole, _) => whole.as_ref().map_or(0, own),
        }
}

/// Returns the heap bytes that an element owns, without the bytes that it views.
fn heap_of(element: &Element) -> usize {
    element.iter().map(|(name, value)| 24 + name.len() + size_of::<Value>() + heap_of_value(value)).sum()
}

/// Returns the heap bytes that a tree owns, without the bytes that it views.
fn heap_of_tree(tree: &Tree) -> usize {
    match tree {
        Tree::Str(text) => text.len(),
        Tree::Array(array) => size_of_val(array.shape()),
        Tree::List(trees) | Tree::Tuple(trees) => {
            size_of_val(&trees[..]) + trees.iter().map(heap_of_tree).sum::<usize>()
        }
        Tree::Dict(fields) => {
            size_of_val(&fields[..]) + fields.iter().map(|(name, tree)| name.len() + heap_of_tree(tree)).sum::<usize>()
        }
        Tree::Pickled(_, parts) => size_of_val(&parts[..]),
        _ => 0,
    }
}

fn heap_of_value(value: &Value) -> usize {
    match value {
        Value::Str(text) => 16 + text.len(),
        Value::Array(array) => size_of_val(array.shape()),
        Value::List(list) => list.capacity() * size_of::<Value>() + list.iter().map(heap_of_value).sum::<usize>(),
        Value::Tree(tree) => heap_of(tree),
        _ => 0,
    }
}
