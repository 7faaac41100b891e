//! Slots from an extent.

#[cfg(any(test, fuzzing))]
use std::convert::Infallible;
use std::sync::Arc;

#[cfg(any(test, fuzzing))]
use super::cross::Cross;
use super::crossing::Crossing;
use super::input::In;
use super::rows::ElementRows;
use super::{DROPPED, ERROR, ITEM, ROWS, WHOLE, WHOLE_ERROR};
use crate::element::Owner;
use crate::element::{Many, Part, Rows, Slot};
use crate::error::{Error, Result, Told};

/// Reads slots of a built-in type from the first `used` bytes of `owner`. Arrays are views of `owner`.
///
/// # Errors
/// At the first invalid word. Nothing of the chunk may be used in that case.
#[cfg(any(test, fuzzing))]
pub(crate) fn read<T: Cross>(owner: &Arc<dyn Owner>, used: usize) -> Result<Vec<Slot<T>>> {
    let mut all = Vec::new();
    for part in read_parts::<T, Infallible>(owner, used, Crossing::OF, None)? {
        match part {
            Part::Slots(slots) => all.extend(slots),
            Part::Rows(rows) => all.extend(rows.map(|item| Ok(Some(item)))),
            Part::Whole(whole, _) => match whole? {},
        }
    }
    Ok(all)
}

/// Reads slots from the first `used` bytes of `owner`, of a type that was [looked up](super::crossing). Also reads groups that
/// were combined into a single item, if the codec of a `whole` is given.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_parts<T, W>(
    owner: &Arc<dyn Owner>,
    used: usize,
    item: Crossing<T>,
    whole: Option<Crossing<W>>,
) -> Result<Vec<Part<T, W>>> {
    let (mut from, len) = In::open(owner, used)?;
    let mut parts = Vec::new();
    for _ in 0..len {
        match read_one(&mut from, item, whole)? {
            One::Whole(whole, indices) => parts.push(Part::Whole(whole, indices)),
            One::Rows(rows) => parts.push(Part::Rows(rows)),
            One::Slot(slot) => match parts.last_mut() {
                Some(Part::Slots(slots)) => slots.push(slot),
                last => {
                    // A chunk with wholes or rows has few slots.
                    let mut slots = Many::with_capacity(if last.is_none() { len } else { 0 });
                    slots.push(slot);
                    parts.push(Part::Slots(slots));
                }
            },
        }
    }
    from.finish()?;
    Ok(parts)
}

enum One<T, W> {
    Slot(Slot<T>),
    Rows(Rows<T>),
    Whole(Result<W>, u64),
}

#[inline]
fn read_one<T, W>(from: &mut In<'_>, item: Crossing<T>, whole: Option<Crossing<W>>) -> Result<One<T, W>> {
    let word = from.word()?;
    match (word as u32, (word >> 32) as u32, whole) {
        (ITEM, kind, _) if kind == item.kind => (item.read)(from).map(|item| One::Slot(Ok(Some(item)))),
        (ROWS, kind, _) if kind == item.kind => match item.rows {
            Some(rows) => ElementRows::read(from).map(|run| One::Rows((rows.items)(run))),
            None => Err(no_slot(from, word)),
        },
        (DROPPED, 0, _) => Ok(One::Slot(Ok(None))),
        (ERROR, 0, _) => read_error(from).map(|error| One::Slot(Err(error))),
        (WHOLE, kind, Some(whole)) if kind == whole.kind => {
            let indices = from.word()?;
            (whole.read)(from).map(|whole| One::Whole(Ok(whole), indices))
        }
        (WHOLE_ERROR, 0, Some(_)) => {
            let indices = from.word()?;
            read_error(from).map(|error| One::Whole(Err(error), indices))
        }
        (ITEM, kind, _) => Err(from.damaged(format!("an item of kind {kind:#x}, expected {:#x}", item.kind))),
        _ => Err(no_slot(from, word)),
    }
}

#[cold]
fn no_slot(from: &In<'_>, word: u64) -> Error {
    from.damaged(format!("there is no slot of kind {word:#x}"))
}

#[cold]
pub(super) fn read_error(from: &mut In<'_>) -> Result<Error> {
    let told = from.text(|text| serde_json::from_str::<Told>(text))?;
    told.map(Told::into_error).map_err(|e| from.damaged(format!("an error cannot be read: {e}")))
}
