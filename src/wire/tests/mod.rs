mod damage;
mod generate;
mod lanes;
mod parcels;
mod round_trip;
mod speed;
mod trees;
mod types;

use std::sync::Arc;

use super::ALIGN;
use crate::element::Part;
use crate::element::{Buffer, Element, Owner, Value};
use crate::error::Result;

/// The slots of a chunk that has no wholes.
fn slots_of<T, W>(parts: Vec<Part<T, W>>) -> Vec<crate::element::Slot<T>> {
    let slots = |part: Part<T, W>| if let Part::Slots(slots) = part.made() { slots } else { panic!("a whole") };
    parts.into_iter().flat_map(slots).collect()
}

type Slot = Result<Option<Element>>;

fn same(a: &[Slot], b: &[Slot]) -> bool {
    let one = |(a, b): (&Slot, &Slot)| match (a, b) {
        (Ok(a), Ok(b)) => a == b,
        (Err(a), Err(b)) => format!("{a:?}") == format!("{b:?}") && a.help_text() == b.help_text(),
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(one)
}

/// Calls `visit` for every leaf that views bytes.
fn buffers<'e>(value: &'e Value, visit: &mut dyn FnMut(&'e Buffer)) {
    match value {
        Value::Array(array) => visit(array.buffer()),
        Value::Bytes(bytes) => visit(bytes),
        Value::List(list) => list.iter().for_each(|value| buffers(value, visit)),
        Value::Tree(tree) => tree.iter().for_each(|(_, value)| buffers(value, visit)),
        _ => {}
    }
}

fn check_views(slots: &[Slot], owner: &Arc<dyn Owner>) {
    let inside = owner.bytes().as_ptr_range();
    for element in slots.iter().flatten().flatten() {
        buffers(&Value::Tree(element.clone()), &mut |buffer| {
            let at = buffer.as_bytes().as_ptr();
            if buffer.len() > 8 {
                assert!(inside.contains(&at) && at.align_offset(ALIGN) == 0, "{at:?} in {inside:?}");
            }
        });
    }
}
