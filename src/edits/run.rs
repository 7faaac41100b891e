//! The edits of a run while a pass makes its batches.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::Edits;
use crate::cx::Cx;
use crate::error::{Error, Result};
use crate::rng::Row;
use crate::sync::Locked;

/// Number of positions that are kept of batches before the last delivered batch.
const KEPT: u64 = 64;

/// Progress of a mix in a run with [edits](Edits::mix) of the mix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EditedMix {
    /// Position of the mix at which each change of weights took effect, in elements or tokens.
    pub changes: Vec<u64>,
    /// Position of the mix before the first element that was not read, which may be after the elements of all batches so far.
    pub read: u64,
}

/// The mix that edits change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MixPlace {
    /// The stage id.
    pub(crate) stage: usize,
    /// Names of the datasets.
    pub(crate) names: Vec<String>,
    /// True if later stages may hold elements between two batches.
    pub(crate) is_held: bool,
}

/// The stages that edits change.
#[derive(Clone, Debug, Default)]
pub(crate) struct EditedStages {
    /// The mix, if edits change a mix.
    pub(crate) mix: Option<MixPlace>,
    /// The id of the last stage that makes batches, if edits change their size.
    pub(crate) batch: Option<usize>,
}

/// The edits of a run, shared by the loader and its pass.
pub(crate) struct RunEdits {
    /// True if there are no edits.
    is_idle: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    edits: Edits,
    stages: EditedStages,
    /// First batch of each change of weights.
    due: Vec<u64>,
    /// Position of the mix at the start of each change that has begun.
    changes: Vec<u64>,
    /// The last batch that has begun.
    begun: Option<u64>,
    /// Positions of the mix before recent batches, with the numbers of the batches.
    read: VecDeque<(u64, u64)>,
    /// Progress to which the next move leads, if it is not a move within the run.
    resumed: Option<Option<EditedMix>>,
}

impl Default for RunEdits {
    fn default() -> Self {
        Self::new(Edits::default(), EditedStages::default())
    }
}

impl fmt::Debug for RunEdits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.locked().edits.fmt(f)
    }
}

impl RunEdits {
    /// Shares `edits`, which change `stages`.
    pub(crate) fn new(edits: Edits, stages: EditedStages) -> Self {
        let is_idle = AtomicBool::new(edits.is_empty());
        let due = edits.due();
        Self { is_idle, inner: Mutex::new(Inner { edits, stages, due, ..Inner::default() }) }
    }

    /// Returns batch `number` of the run. `next` yields the batches of the stream without edits; the batches to leave out
    /// are dropped.
    ///
    /// # Errors
    /// Errors of `next`.
    #[inline]
    pub(crate) fn batch<T>(
        &self,
        number: u64,
        cx: &mut Cx,
        mut next: impl FnMut(&mut Cx) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if self.is_idle.load(Ordering::Relaxed) {
            cx.begin_batch(number);
            return next(cx);
        }
        for _ in 0..self.begin(number, cx) {
            if next(cx)?.is_none() {
                return Ok(None);
            }
        }
        let batch = next(cx)?;
        self.end(number, cx);
        Ok(batch)
    }

    /// Begins batch `number`, if it has not begun: its changes take effect at the position up to which the mix was read.
    /// Returns the number of batches to leave out first.
    pub(super) fn begin(&self, number: u64, cx: &mut Cx) -> u64 {
        cx.begin_batch(number);
        if self.is_idle.load(Ordering::Relaxed) {
            return 0;
        }
        let mut inner = self.inner.locked();
        if inner.begun.is_none_or(|begun| begun < number) {
            let known = inner.read.back().filter(|(of, _)| *of == number);
            let read = known.map_or(cx.read(), |(_, read)| *read);
            while inner.due.get(inner.changes.len()).is_some_and(|due| *due <= number) {
                inner.changes.push(read);
            }
            inner.begun = Some(number);
        }
        cx.set_changes(inner.version(number));
        inner.edits.skipped_at(number)
    }

    /// Ends batch `number`, if no later batch has begun.
    pub(super) fn end(&self, number: u64, cx: &Cx) {
        if self.is_idle.load(Ordering::Relaxed) {
            return;
        }
        let mut inner = self.inner.locked();
        let is_last = inner.read.back().is_none_or(|(of, _)| *of <= number);
        if inner.stages.mix.is_some() && is_last {
            inner.read.push_back((number + 1, cx.read()));
        }
    }

    /// Drops positions that no state needs after `delivered` batches.
    pub(crate) fn delivered(&self, delivered: u64) {
        if self.is_idle.load(Ordering::Relaxed) {
            return;
        }
        let mut inner = self.inner.locked();
        while inner.read.front().is_some_and(|(number, _)| number.saturating_add(KEPT) < delivered) {
            inner.read.pop_front();
        }
    }

    /// Returns the number of batches to leave out before batch `number` of the run.
    pub(super) fn skipped_at(&self, number: u64) -> u64 {
        if self.is_idle.load(Ordering::Relaxed) { 0 } else { self.inner.locked().edits.skipped_at(number) }
    }

    /// Returns the progress of the mix after `delivered` batches. Returns `None` if no edit changes a mix.
    pub(crate) fn progress(&self, delivered: u64) -> Option<EditedMix> {
        if self.is_idle.load(Ordering::Relaxed) {
            return None;
        }
        let inner = self.inner.locked();
        inner.stages.mix.as_ref()?;
        let count = inner.begun_before(delivered);
        let read = inner.read.iter().find(|(number, _)| *number == delivered).map_or(0, |(_, read)| *read);
        Some(EditedMix { changes: inner.changes[..count].to_vec(), read })
    }

    /// Sets the progress to which the next move leads: the progress in a state after `delivered` batches.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if the progress does not fit the edits, or if the state does not determine the
    /// first element that the edit at batch `delivered` changes.
    pub(crate) fn resume(&self, delivered: u64, progress: Option<EditedMix>) -> Result<()> {
        let mut inner = self.inner.locked();
        let due = inner.due.partition_point(|due| *due < delivered);
        if progress.as_ref().map_or(0, |progress| progress.changes.len()) != due {
            let text = format!("the state lacks the positions of {due} changes of the mix before batch {delivered}");
            return Err(Error::state(text).help("resume an earlier state, or start without the checkpoint"));
        }
        let is_held = inner.stages.mix.as_ref().is_some_and(|mix| mix.is_held);
        if is_held && progress.is_none() && delivered > 0 && inner.due.get(due) == Some(&delivered) {
            let text = format!(
                "an edit of the mix is at batch {delivered}, and the state before this batch was written without edits of the mix"
            );
            let help = format!("begin the edit at batch {}, or resume an earlier state", delivered + 1);
            return Err(Error::state(text).help(help));
        }
        inner.resumed = Some(progress);
        Ok(())
    }

    /// Replaces the edits. A move to a batch before the first new edit must follow.
    pub(crate) fn replace(&self, edits: Edits, stages: EditedStages) {
        let mut inner = self.inner.locked();
        inner.due = edits.due();
        (inner.edits, inner.stages) = (edits, stages);
        self.is_idle.store(inner.edits.is_empty(), Ordering::Relaxed);
    }

    /// Returns the edits for a pass that begins with batch `number` again.
    pub(crate) fn again_at(&self, number: u64) -> Arc<Self> {
        let progress = self.progress(number);
        let inner = self.inner.locked();
        let again = Self::new(inner.edits.clone(), inner.stages.clone());
        again.inner.locked().resumed = Some(progress);
        Arc::new(again)
    }

    /// Moves to the start of batch `number`: to the progress that was [set](Self::resume), or back in the run.
    pub(crate) fn move_to(&self, number: u64, cx: &mut Cx) {
        cx.begin_batch(number);
        let mut inner = self.inner.locked();
        let inner = &mut *inner;
        let known = inner.read.iter().find(|(of, _)| *of == number).map(|(_, read)| *read);
        let read = match inner.resumed.take() {
            Some(progress) => {
                let progress = progress.unwrap_or_default();
                inner.changes = progress.changes;
                progress.read
            }
            None => {
                inner.changes.truncate(inner.begun_before(number));
                known.unwrap_or(0)
            }
        };
        inner.begun = number.checked_sub(1);
        inner.read = if read > 0 { VecDeque::from([(number, read)]) } else { VecDeque::new() };
        cx.set_read(read);
        cx.set_changes(number.checked_sub(1).map_or(0, |last| inner.version(last)));
    }

    /// Returns the size of batch `number` that `stage` makes, if an edit has changed the size.
    #[inline]
    pub(super) fn batch_size(&self, stage: usize, number: u64) -> Option<usize> {
        if self.is_idle.load(Ordering::Relaxed) {
            return None;
        }
        let inner = self.inner.locked();
        let sizes = inner.edits.sizes().filter(|_| inner.stages.batch == Some(stage));
        sizes.rev().find(|(at, _)| *at <= number).map(|(_, size)| size)
    }

    /// Returns true if edits change the size of the batches of `stage`.
    pub(crate) fn sizes_of(&self, stage: usize) -> bool {
        !self.is_idle.load(Ordering::Relaxed) && self.inner.locked().stages.batch == Some(stage)
    }

    /// Returns true if edits change the mix `stage`.
    pub(crate) fn is_of(&self, stage: usize) -> bool {
        self.inner.locked().stages.mix.as_ref().is_some_and(|mix| mix.stage == stage)
    }

    /// Returns the weights of the edited mix, whose weights without edits are `base`. Also returns true if the first of
    /// them is the first of `base`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if no dataset with a weight is left.
    pub(crate) fn rows(&self, base: &[Row]) -> Result<(Vec<Row>, bool)> {
        let inner = self.inner.locked();
        let names = inner.stages.mix.as_ref().map_or(&[][..], |mix| &mix.names);
        let rows = inner.edits.rows(base, names, &inner.changes)?;
        Ok((rows, inner.changes.first() != Some(&0)))
    }
}

impl Inner {
    /// Returns the number of changes that have begun, if batch `number` has begun.
    fn version(&self, number: u64) -> u64 {
        (self.changes.len() + self.edits.sizes().filter(|(at, _)| *at <= number).count()) as u64
    }

    /// Returns the number of changes before batch `number` that have begun.
    fn begun_before(&self, number: u64) -> usize {
        self.due.partition_point(|due| *due < number).min(self.changes.len())
    }
}
