//! Slots out of an extent.

use std::sync::Arc;

use super::cross::Cross;
use super::crossing::Crossing;
use super::input::In;
use super::{DROPPED, ERROR, ITEM};
use crate::element::Owner;
use crate::error::{Error, Result, Told};

/// The slots in the first `used` bytes of `owner`, of a type that is known here.
///
/// # Errors
/// At the first word that cannot be: then nothing of the chunk is to be used.
pub(crate) fn read<T: Cross>(owner: &Arc<dyn Owner>, used: usize) -> Result<Vec<Result<Option<T>>>> {
    read_with(owner, used, Crossing::OF)
}

/// The slots in the first `used` bytes of `owner`, of a type that was [looked up](super::crossing). Arrays are views of `owner`.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_with<T>(
    owner: &Arc<dyn Owner>,
    used: usize,
    crossing: Crossing<T>,
) -> Result<Vec<Result<Option<T>>>> {
    let (mut from, len) = In::open(owner, used)?;
    let mut slots = Vec::with_capacity(len);
    for _ in 0..len {
        slots.push(read_slot(&mut from, crossing)?);
    }
    from.finish()?;
    Ok(slots)
}

fn read_slot<T>(from: &mut In<'_>, crossing: Crossing<T>) -> Result<Result<Option<T>>> {
    let word = from.word()?;
    match (word as u32, (word >> 32) as u32) {
        (ITEM, kind) if kind == crossing.kind => (crossing.read)(from).map(|item| Ok(Some(item))),
        (DROPPED, 0) => Ok(Ok(None)),
        (ERROR, 0) => read_error(from).map(Err),
        (ITEM, kind) => Err(from.damaged(format!("an item of kind {kind:#x}, expected {:#x}", crossing.kind))),
        _ => Err(from.damaged(format!("there is no slot of kind {word:#x}"))),
    }
}

#[cold]
fn read_error(from: &mut In<'_>) -> Result<Error> {
    let told = from.text(|text| serde_json::from_str::<Told>(text))?;
    told.map(Told::into_error).map_err(|e| from.damaged(format!("an error that cannot be read: {e}")))
}
