//! Moves of a loader: to a state, back by some elements, and to the rows of another part.

use std::sync::atomic::Ordering::Relaxed;

use super::{Checkpoint, typed_state};
use super::{Drive, Guarded, KEPT, Limit, Loader, Parted, Pass, StateOf};
use crate::cx::Cause;
use crate::dataset::{DatasetIterator, IterDataset};
use crate::error::{Error, ErrorKind, Result};
use crate::part::{Part, RowBatch};
use crate::sync::Locked;

/// Makes the error for a thread that does not follow a move.
#[cold]
pub(super) fn too_busy() -> Error {
    let text = "the loader's thread is too busy to move";
    Error::new(ErrorKind::Worker, text).help("build another loader that resumes from its `state`")
}

impl<D: IterDataset + 'static> Loader<D> {
    /// Takes back the last `count` elements, at most 2, which the loader then delivers again.
    ///
    /// A trainer calls `back` for a step that other hosts did not commit.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if fewer elements were delivered or are kept.
    /// Errors of [`LoaderBuilder::build`](crate::LoaderBuilder::build) if elements are read again.
    /// [`ErrorKind::Worker`](crate::ErrorKind::Worker) if the thread of the stateful stages does not answer within a second.
    /// After an error of the last two kinds, the loader has ended. A new loader can resume from [`state`](Self::state).
    pub fn back(&mut self, count: usize) -> Result<()> {
        self.check_process()?;
        let Some(checkpoint) = count.checked_sub(1) else { return Ok(()) };
        let Some(state) = self.position.earlier.iter().take(KEPT).nth(checkpoint).cloned() else {
            let kept = self.position.earlier.len().min(KEPT);
            let text = format!("cannot go back {count} elements, only {kept} are kept");
            return Err(Error::state(text).help(format!(
                "at most {KEPT} elements since the start or a restore are kept; for older positions, restore a saved state"
            )));
        };
        let delivered = self.position.delivered - count as u64;
        (self.position.state, self.position.delivered) = (state.clone(), delivered);
        // After the end no thread is left to follow the move.
        let started = self.ended && self.start_again(&state)?;
        self.ended = false;
        if !started && !self.go_to(state, delivered)? {
            return Err(too_busy());
        }
        Ok(())
    }

    /// Starts another thread at `state` if the previous thread has ended. Returns false if that thread still runs, or if there was none.
    fn start_again(&mut self, state: &StateOf<D>) -> Result<bool> {
        let Drive::Ahead(ahead) = &mut self.drive else { return Ok(false) };
        let Some(ahead) = ahead.get_mut().filter(|ahead| ahead.has_ended()) else { return Ok(false) };
        let wanted = self.host.by_rows.clone().unwrap_or_default();
        let iter = Pass::start(self.dataset.clone(), &self.run, wanted)?;
        let (mut iter, mut cx) = (iter.restored_at(&self.position.restored), self.run.cx());
        self.position.restored.store(self.position.delivered, Relaxed);
        iter.restore(state.clone(), &mut cx)?;
        self.position.state = iter.state();
        ahead.start_again(iter, cx)?;
        self.forget_elements();
        Ok(true)
    }

    /// Forgets the delivered elements: the next element does not follow them.
    fn forget_elements(&mut self) {
        self.position.earlier.clear();
        self.position.withheld = None;
        self.host.guarded.iter_mut().for_each(Guarded::go_on);
        self.limit.iter_mut().for_each(Limit::end);
    }

    /// Moves to `state`: see [`restore`](Self::restore).
    pub(super) fn go_to(&mut self, state: StateOf<D>, delivered: u64) -> Result<bool> {
        self.forget_elements();
        if std::mem::replace(&mut self.ended, true) {
            return Ok(false);
        }
        self.position.restored.store(delivered, Relaxed);
        let restored = match &mut self.drive {
            Drive::Inline { iter, cx, begins } => {
                *begins = Some(Cause::Restore);
                iter.restore(state, cx).map(|()| iter.state())
            }
            Drive::Ahead(ahead) => match ahead.get_mut().and_then(|ahead| ahead.restore(state)) {
                Some(restored) => restored,
                None => return Ok(false),
            },
        };
        (self.position.state, self.position.delivered, self.ended) = (restored?, delivered, false);
        Ok(true)
    }

    /// Takes the rows of another part from the next batch on, without a restart, after hosts have joined or left.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for an invalid part, and for listed rows if rows are balanced. The old part is kept.
    /// Errors of [`back`](Self::back) if the loader evaluates only the rows of its part.
    pub fn repart(&mut self, part: Part) -> Result<()>
    where
        D::Item: RowBatch,
    {
        let parted = Parted::new(part.clone()).dealt(self.deal().cloned().unwrap_or_default())?;
        self.check_process()?;
        self.host.parted = Some(parted);
        self.host.guarded.iter_mut().for_each(Guarded::restart);
        match &self.host.by_rows {
            Some(wanted) => *wanted.locked() = Some(part),
            // A withheld element has rows of the previous part.
            None if self.position.withheld.is_none() => return Ok(()),
            None => {}
        }
        // Elements made ahead have other rows; after the end there are none. States cover all rows, so earlier states stay valid.
        let earlier = self.position.earlier.clone();
        if !self.ended && !self.go_to(self.position.state.clone(), self.position.delivered)? {
            return Err(too_busy());
        }
        self.position.earlier = earlier;
        Ok(())
    }
}

impl<D: IterDataset + 'static> Loader<D> {
    /// Moves to the position of `checkpoint`, with the same threads, worker processes and open files.
    /// Returns false if this requires other threads: after the end, after an error, and if a thread is still busy.
    ///
    /// # Errors
    /// As [`LoaderBuilder::build`] with a checkpoint to resume. After an error the loader has ended.
    pub(crate) fn restore(&mut self, checkpoint: &Checkpoint) -> Result<bool> {
        self.check_process()?;
        let identity = self.identity.after(checkpoint, self.accepts_changes)?;
        self.host.guarded.iter_mut().for_each(Guarded::restart);
        self.run.edits().resume(checkpoint.delivered, checkpoint.edited_mix.clone())?;
        let has_gone = self.go_to(typed_state::<D>(checkpoint.state.clone())?, checkpoint.delivered)?;
        if has_gone {
            identity.log_change_since(checkpoint);
            self.identity = identity;
        }
        Ok(has_gone)
    }

    /// Takes back element number `delivered`, which could not be handed over.
    ///
    /// The state before that element is current until [`hand_over`](Self::hand_over) or a call that moves the loader.
    /// Returns false if another thread has taken more elements since.
    pub(crate) fn withhold(&mut self, delivered: u64) -> bool {
        if self.position.delivered != delivered || self.position.withheld.is_some() {
            return false;
        }
        let Some(before) = self.position.earlier.pop_front() else { return false };
        self.position.withheld = Some(std::mem::replace(&mut self.position.state, before));
        self.position.delivered -= 1;
        true
    }

    /// Counts the withheld element as delivered. Returns false if the loader has moved since, so that another element is next.
    pub(crate) fn hand_over(&mut self) -> bool {
        let Some(after) = self.position.withheld.take() else { return false };
        self.position.advance(after);
        true
    }
}
