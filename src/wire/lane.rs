//! Elements of a lane, and the lane states recorded after some of them.

use std::sync::Arc;

use super::crossing::Crossing;
use super::input::In;
use super::read::read_error;
use super::write::{ChunkWriter, Full, told};
use super::{ENDED, ERROR, FAILED, ITEM, MARKED_ERROR, MARKED_ITEM};
use crate::element::Owner;
use crate::error::{Error, Result};

/// Contents of a chunk of a lane.
pub(crate) struct LaneSlots<T> {
    /// Elements and errors, each with the lane state after it, if recorded, as JSON.
    pub(crate) slots: Vec<(Result<T>, Option<String>)>,
    pub(crate) end: LaneEnd,
}

/// State of the lane after the slots.
#[derive(Debug)]
pub(crate) enum LaneEnd {
    /// More elements follow.
    Open,
    /// No elements follow.
    Ended,
    /// The lane cannot be read further because of this error.
    Failed(Error),
}

impl ChunkWriter<'_> {
    /// Adds an element or error of a lane, with the lane state after it if `mark` is given. Adds all or nothing.
    ///
    /// # Errors
    /// An error of the item if it cannot be encoded; [`Full`] in the inner result if there is no room. Adds nothing in either case.
    pub(crate) fn push_lane<T>(
        &mut self,
        slot: &Result<T>,
        mark: Option<&str>,
        crossing: Crossing<T>,
    ) -> Result<Result<(), Full>> {
        let error = slot.as_ref().err().map(told);
        self.record(1, |out| {
            let kind = match (slot, mark) {
                (Ok(_), None) => ITEM,
                (Ok(_), Some(_)) => MARKED_ITEM,
                (Err(_), None) => ERROR,
                (Err(_), Some(_)) => MARKED_ERROR,
            };
            let item = slot.as_ref().map_or(0, |_| crossing.kind);
            out.word(u64::from(kind) | u64::from(item) << 32)?;
            if let Ok(item) = slot {
                (crossing.write)(item, out)?;
            }
            error.iter().map(String::as_str).chain(mark).try_for_each(|text| out.text(text))
        })
    }

    /// Adds the end of the lane, or the error that prevents reading it further.
    ///
    /// # Errors
    /// [`Full`] if there is no room.
    pub(crate) fn push_end(&mut self, failure: Option<&Error>) -> Result<(), Full> {
        let failure = failure.map(told);
        let written = self.record(0, |out| match &failure {
            None => out.word(u64::from(ENDED)),
            Some(text) => {
                out.word(u64::from(FAILED))?;
                out.text(text)
            }
        });
        // Text always fits the format, so the only error is lack of room.
        written.unwrap_or(Err(Full { need: usize::MAX }))
    }
}

/// Reads the elements of a lane from the first `used` bytes of `owner`. Arrays are views of `owner`.
///
/// # Errors
/// At the first invalid word. Nothing of the chunk may be used in that case.
pub(crate) fn read_lane<T>(owner: &Arc<dyn Owner>, used: usize, crossing: Crossing<T>) -> Result<LaneSlots<T>> {
    let (mut from, len) = In::open(owner, used)?;
    let (mut slots, mut end) = (Vec::with_capacity(len), LaneEnd::Open);
    for _ in 0..len {
        if !matches!(end, LaneEnd::Open) {
            return Err(from.damaged("there are slots after the end of a lane".into()));
        }
        let word = from.word()?;
        let slot = match (word as u32, (word >> 32) as u32) {
            (ITEM | MARKED_ITEM, kind) if kind == crossing.kind => Ok((crossing.read)(&mut from)?),
            (ERROR | MARKED_ERROR, 0) => Err(read_error(&mut from)?),
            (ENDED, 0) => {
                end = LaneEnd::Ended;
                continue;
            }
            (FAILED, 0) => {
                end = LaneEnd::Failed(read_error(&mut from)?);
                continue;
            }
            _ => return Err(from.damaged(format!("there is no slot of kind {word:#x} in a lane"))),
        };
        let marked = matches!(word as u32, MARKED_ITEM | MARKED_ERROR);
        slots.push((slot, if marked { Some(from.text(str::to_owned)?) } else { None }));
    }
    from.finish()?;
    Ok(LaneSlots { slots, end })
}
