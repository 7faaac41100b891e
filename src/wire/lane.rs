//! Elements of a lane, and the states behind some of them.

use std::sync::Arc;

use super::crossing::Crossing;
use super::input::In;
use super::read::read_error;
use super::write::{ChunkWriter, Full, told};
use super::{ENDED, ERROR, FAILED, ITEM, MARKED_ERROR, MARKED_ITEM};
use crate::element::Owner;
use crate::error::{Error, Result};

/// The contents of a chunk of a lane.
pub(crate) struct LaneSlots<T> {
    /// Elements and errors; and the state behind each that has one, in JSON.
    pub(crate) slots: Vec<(Result<T>, Option<String>)>,
    pub(crate) end: LaneEnd,
}

/// The end behind them.
#[derive(Debug)]
pub(crate) enum LaneEnd {
    /// More.
    Open,
    /// Nothing.
    Ended,
    /// The error for which the lane cannot be read.
    Failed(Error),
}

impl ChunkWriter<'_> {
    /// Adds an element of a lane, or an error, and the state behind it: both or neither.
    ///
    /// # Errors
    /// Of an item that cannot be written anywhere; and in the inner result where there is no room. Then nothing was added.
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

    /// Adds that the lane ends here, or why it cannot be read on.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn push_end(&mut self, failure: Option<&Error>) -> Result<(), Full> {
        let failure = failure.map(told);
        let written = self.record(0, |out| match &failure {
            None => out.word(u64::from(ENDED)),
            Some(text) => {
                out.word(u64::from(FAILED))?;
                out.text(text)
            }
        });
        // Text can be written anywhere that has room.
        written.unwrap_or(Err(Full { need: usize::MAX }))
    }
}

/// Reads what lies in the first `used` bytes of `owner`: elements of one lane. Arrays are views of `owner`.
///
/// # Errors
/// At the first word that cannot be: then nothing of the chunk is to be used.
pub(crate) fn read_lane<T>(owner: &Arc<dyn Owner>, used: usize, crossing: Crossing<T>) -> Result<LaneSlots<T>> {
    let (mut from, len) = In::open(owner, used)?;
    let (mut slots, mut end) = (Vec::with_capacity(len), LaneEnd::Open);
    for _ in 0..len {
        if !matches!(end, LaneEnd::Open) {
            return Err(from.damaged("there are slots behind the end of a lane".into()));
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
