//! The edits of a run while a pass makes its batches.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::begun::Begun;
use super::{Edits, ExcludedRecords};
use crate::cx::{Cx, ReadPositions};
use crate::error::{Error, Result};
use crate::rng::Row;
use crate::sync::Locked;

/// Number of positions that are kept of batches before the last delivered batch.
const KEPT: u64 = 64;

/// Progress of the stages that [edits](Edits) change: a mix, and borders before which records are excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EditedMix {
    /// Position of the mix at which each change of weights took effect, in elements or tokens.
    pub changes: Vec<u64>,
    /// Position of the mix before the first element that was not read, which may be after the elements of all batches so far.
    pub read: u64,
    /// The next index of each border at which each edit that excludes records took effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<Vec<u64>>,
    /// The next index of each border, after the elements that were read. Empty if no edit excludes records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub borders: Vec<u64>,
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
    /// The excluded records, if edits exclude records.
    pub(crate) excluded: Option<Arc<ExcludedRecords>>,
}

impl EditedStages {
    /// Returns true if edits begin at positions of the pass.
    fn have_positions(&self) -> bool {
        self.mix.is_some() || self.excluded.is_some()
    }

    /// Returns true if edits of the mix need a position that `progress` lacks, because later stages may hold elements.
    pub(crate) fn lack_mix(&self, progress: Option<&EditedMix>) -> bool {
        self.mix.as_ref().is_some_and(|mix| mix.is_held) && progress.is_none()
    }

    /// Returns true if edits that exclude records need positions that `progress` lacks, because later stages may hold
    /// elements.
    pub(crate) fn lack_borders(&self, progress: Option<&EditedMix>) -> bool {
        self.excluded.as_ref().is_some_and(|excluded| excluded.is_held)
            && progress.is_none_or(|progress| progress.borders.is_empty())
    }

    /// Returns the number of borders whose positions edits need.
    fn borders(&self) -> usize {
        self.excluded.as_ref().map_or(0, |excluded| excluded.borders.len())
    }
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
    /// The changes of weights, by positions of the mix.
    mix: Begun<u64>,
    /// The exclusions of records, by the next index of each border.
    excluded: Begun<Vec<u64>>,
    /// The last batch that has begun.
    begun: Option<u64>,
    /// Positions before recent batches, with the numbers of the batches.
    read: VecDeque<(u64, ReadPositions)>,
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
        let mut inner = Inner::default();
        inner.replace(edits, stages);
        Self { is_idle, inner: Mutex::new(inner) }
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

    /// Begins batch `number`, if it has not begun: its changes take effect at the positions up to which stages were read.
    /// Returns the number of batches to leave out first.
    pub(super) fn begin(&self, number: u64, cx: &mut Cx) -> u64 {
        cx.begin_batch(number);
        if self.is_idle.load(Ordering::Relaxed) {
            return 0;
        }
        let mut inner = self.inner.locked();
        if inner.begun.is_none_or(|begun| begun < number) {
            let known = inner.read.back().filter(|(of, _)| *of == number);
            let mut read = known.map_or_else(|| cx.read().clone(), |(_, read)| read.clone());
            if read.borders.is_empty() {
                read.borders.clone_from(&cx.read().borders);
            }
            read.borders.resize(inner.stages.borders(), 0);
            inner.mix.begin(number, &read.mix);
            inner.excluded.begin(number, &read.borders);
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
        if inner.stages.have_positions() && is_last {
            let mut read = cx.read().clone();
            read.borders.resize(inner.stages.borders(), 0);
            inner.read.push_back((number + 1, read));
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

    /// Returns the progress of the edited stages after `delivered` batches. Returns `None` if no edit changes a mix or excludes
    /// records.
    pub(crate) fn progress(&self, delivered: u64) -> Option<EditedMix> {
        if self.is_idle.load(Ordering::Relaxed) {
            return None;
        }
        let inner = self.inner.locked();
        if !inner.stages.have_positions() {
            return None;
        }
        let (changes, excluded) = (inner.mix.before(delivered).to_vec(), inner.excluded.before(delivered).to_vec());
        let known = inner.read.iter().find(|(number, _)| *number == delivered);
        let ReadPositions { mix, borders } = known.map_or_else(ReadPositions::default, |(_, read)| read.clone());
        Some(EditedMix { changes, read: mix, excluded, borders })
    }

    /// Sets the progress to which the next move leads: the progress in a state after `delivered` batches.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if the progress does not fit the edits, or if the state does not determine the
    /// first element that the edit at batch `delivered` changes.
    pub(crate) fn resume(&self, delivered: u64, progress: Option<EditedMix>) -> Result<()> {
        let mut inner = self.inner.locked();
        let counts = progress.as_ref().map_or((0, 0), |progress| (progress.changes.len(), progress.excluded.len()));
        let due = [inner.mix.due_before(delivered), inner.excluded.due_before(delivered)];
        let lacking = [(due[0], counts.0, "changes of the mix"), (due[1], counts.1, "exclusions of records")];
        if let Some((due, _, what)) = lacking.into_iter().find(|(due, count, _)| due != count) {
            let text = format!("the state lacks the positions of {due} {what} before batch {delivered}");
            return Err(Error::state(text).help("resume an earlier state, or start without the checkpoint"));
        }
        if let Some((edit, without)) = inner.unknown(delivered, progress.as_ref()) {
            let text = format!(
                "{edit} is at batch {delivered}, and the state before this batch was written without {without}"
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
        inner.replace(edits, stages);
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
        let known = inner.read.iter().find(|(of, _)| *of == number).map(|(_, read)| read.clone());
        let read = match inner.resumed.take() {
            Some(progress) => {
                let EditedMix { changes, read, excluded, borders } = progress.unwrap_or_default();
                (inner.mix.at, inner.excluded.at) = (changes, excluded);
                ReadPositions { mix: read, borders }
            }
            None => {
                inner.mix.forget(number);
                inner.excluded.forget(number);
                known.unwrap_or_default()
            }
        };
        inner.begun = number.checked_sub(1);
        let is_known = read != ReadPositions::default();
        inner.read = if is_known { VecDeque::from([(number, read.clone())]) } else { VecDeque::new() };
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

    /// Returns the excluded records of the pipeline.
    pub(crate) fn excluded(&self) -> Option<Arc<ExcludedRecords>> {
        if self.is_idle.load(Ordering::Relaxed) { None } else { self.inner.locked().stages.excluded.clone() }
    }

    /// Returns true if edits exclude records before the border `stage`.
    pub(crate) fn excludes_at(&self, stage: usize) -> bool {
        self.excluded().is_some_and(|excluded| excluded.borders.contains(&stage))
    }

    /// Returns the next index of border number `border` at the start of each exclusion that has begun.
    pub(crate) fn excluded_from(&self, border: usize) -> Vec<u64> {
        let inner = self.inner.locked();
        inner.excluded.at.iter().map(|next| next.get(border).copied().unwrap_or(0)).collect()
    }

    /// Returns the weights of the edited mix, whose weights without edits are `base`. Also returns true if the first of
    /// them is the first of `base`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if no dataset with a weight is left.
    pub(crate) fn rows(&self, base: &[Row]) -> Result<(Vec<Row>, bool)> {
        let inner = self.inner.locked();
        let names = inner.stages.mix.as_ref().map_or(&[][..], |mix| &mix.names);
        let rows = inner.edits.rows(base, names, &inner.mix.at)?;
        Ok((rows, inner.mix.at.first() != Some(&0)))
    }
}

impl Inner {
    fn replace(&mut self, edits: Edits, stages: EditedStages) {
        self.mix.due = edits.due();
        self.excluded.due = edits.exclusions().map(|(at, _)| at).collect();
        (self.edits, self.stages) = (edits, stages);
    }

    /// Returns the edit at batch `delivered` whose position is unknown after a restore to `progress`, and its kind, in words.
    fn unknown(&self, delivered: u64, progress: Option<&EditedMix>) -> Option<(&'static str, &'static str)> {
        if delivered == 0 {
            return None;
        }
        if self.stages.lack_mix(progress) && self.mix.begins_at(delivered) {
            return Some(("an edit of the mix", "edits of the mix"));
        }
        let is_unknown = self.stages.lack_borders(progress) && self.excluded.begins_at(delivered);
        is_unknown.then_some(("an edit that excludes records", "such edits"))
    }

    /// Returns the number of changes that have begun, if batch `number` has begun.
    fn version(&self, number: u64) -> u64 {
        (self.mix.at.len() + self.excluded.at.len() + self.edits.sizes().filter(|(at, _)| *at <= number).count()) as u64
    }
}
