//! Elements of the elementwise prefix in order, without bad records and dropped elements.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunks::Roots;
use super::evaluate::{Apart, Gather};
use super::excluding::Excluding;
use super::skipping::{BadRecords, Skipping};
use super::thresholds::{FilterThresholds, WINDOW, Watch};
use crate::cx::{Cx, StageId};
use crate::dataset::map::MapDataset;
use crate::dataset::plan::BorderRecorder;
use crate::element::{Name, Ragged};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Runtime;

/// Options for reading a prefix. They shape the data.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::dataset) struct PrefixOptions {
    pub(in crate::dataset) bad: BadRecords,
    pub(in crate::dataset) thresholds: FilterThresholds,
}

impl PrefixOptions {
    pub(in crate::dataset) fn params(&self) -> String {
        let parts = [self.bad.params(), self.thresholds.params()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// Position of a pass over a [`Stream`](crate::dataset::iter::Stream).
///
/// A state nested in a filter's state is accepted, too: older checkpoints have it if a filter follows a cut prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct StreamState {
    /// The next index of the dataset. Empty slots count.
    pub next_index: u64,
    /// Number of indices that yielded nothing, since the last multiple of 1000.
    pub dropped: u64,
    /// Bad records skipped since the start.
    pub skipped: u64,
    /// Number of consecutive bad records skipped just before this position. It is 0 in older states, which lack the
    /// count.
    pub in_a_row: u64,
}

/// The accepted forms of a state: the state of a stream, or of a filter and its stream.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    next_index: Option<u64>,
    skipped: Option<u64>,
    #[serde(default)]
    in_a_row: u64,
    dropped: u64,
    seen: Option<u64>,
    parent: Option<Box<StreamState>>,
}

impl TryFrom<Written> for StreamState {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written {
                next_index: Some(next_index),
                skipped: Some(skipped),
                in_a_row,
                dropped,
                seen: None,
                parent: None,
            } => Ok(Self { next_index, dropped, skipped, in_a_row }),
            // The filter's window affects only warnings, so it starts again.
            Written { next_index: None, skipped: None, seen: Some(_), parent: Some(parent), .. } => Ok(*parent),
            _ => Err("the state of a stream has next_index, dropped and skipped"),
        }
    }
}

/// A pass over the elements of a prefix.
pub(in crate::dataset) struct Prefix<D: MapDataset, G: Gather<D::Item> = Apart> {
    roots: Roots<D, G>,
    bad: Skipping,
    watch: Watch,
    /// The recorder of the elements' keys; `None` if keys are not recorded.
    recorder: Option<Arc<BorderRecorder<D::Item>>>,
    /// The excluded records. `None` if the elements are a selection of the stream's.
    excluding: Option<Box<Excluding>>,
    /// True if an edit of the run excludes records, now or later.
    excludes: bool,
    /// For each row read last, the number of indices up to and including the row, if indices between rows may yield
    /// nothing.
    ends: Vec<u32>,
    /// Number of these rows that were consumed.
    passed: usize,
    /// Position before the slot that was read last.
    pub(in crate::dataset) before: StreamState,
}

impl<D: MapDataset<Item: Send + 'static> + 'static, G: Gather<D::Item>> Prefix<D, G> {
    pub(in crate::dataset) fn new(roots: Roots<D, G>, options: PrefixOptions) -> Self {
        let watch = Watch::new(options.thresholds);
        Self {
            roots,
            bad: Skipping::new(options.bad),
            watch,
            recorder: None,
            excluding: None,
            excludes: false,
            ends: Vec::new(),
            passed: 0,
            before: StreamState::default(),
        }
    }

    /// Notes the keys of the elements that pass the border `stage`, if keys are recorded.
    pub(in crate::dataset) fn recording(self, run: &Runtime, stage: StageId) -> Self
    where
        D::Item: 'static,
    {
        Self { recorder: run.key_recorder(stage), ..self }
    }

    /// Drops the records that edits of `run` exclude from `dataset`, the dataset before the border `stage`.
    pub(in crate::dataset) fn excluding<E>(self, dataset: &Arc<E>, run: &Runtime, stage: StageId) -> Self
    where
        E: MapDataset + 'static,
    {
        let excluding = Excluding::new(dataset.clone(), run, stage);
        Self { excludes: excluding.is_active(), excluding: Some(Box::new(excluding)), ..self }
    }

    /// Notes that the index before the position was read. Returns true if an edit excludes its record.
    #[cold]
    fn is_excluded(&mut self, index: u64, cx: &mut Cx) -> bool {
        let Some(excluding) = &mut self.excluding else { return false };
        excluding.note(self.roots.position(), cx);
        excluding.excludes(index, cx)
    }

    /// Returns the next element. An element that `empty` accepts is returned, but counts as dropped.
    #[inline]
    pub(in crate::dataset) fn next(
        &mut self,
        cx: &mut Cx,
        empty: impl Fn(&D::Item) -> bool,
    ) -> Result<Option<D::Item>> {
        loop {
            self.before = self.state();
            let index = self.roots.position();
            let Some(slot) = self.roots.next(cx) else { return Ok(None) };
            if let Some(recorder) = &self.recorder {
                recorder.record(index, &slot);
            }
            if self.excludes && self.is_excluded(index, cx) {
                self.watch.count(true, cx)?;
                continue;
            }
            let slot = match slot {
                Ok(slot) => {
                    self.bad.good();
                    slot
                }
                Err(error) => self.skip(self.placed(error), cx)?,
            };
            self.watch.count(slot.as_ref().is_none_or(&empty), cx)?;
            if slot.is_some() {
                return Ok(slot);
            }
        }
    }

    /// Sets the member of the element returned last in `cx`, if keys are recorded.
    #[inline]
    pub(in crate::dataset) fn identify(&self, cx: &mut Cx) {
        if let Some(recorder) = &self.recorder {
            cx.set_element(Some(recorder.id_of(self.before.next_index)));
        }
    }

    /// Moves up to `most` elements into `out` and returns their number. Stops at elements that are not evaluated yet.
    /// Returns 0 if the next slot is only available from [`next`](Self::next).
    pub(in crate::dataset) fn next_run(&mut self, most: usize, out: &mut Vec<D::Item>, cx: &mut Cx) -> usize {
        if self.recorder.is_some() {
            return 0;
        }
        let most = self.unjudged().map_or(most, |unjudged| most.min(unjudged as usize));
        let position = self.roots.position();
        let most = match self.excluding.as_mut().filter(|_| self.excludes) {
            Some(excluding) => excluding.kept(position, most as u64, cx) as usize,
            None => most,
        };
        if most == 0 {
            return 0;
        }
        let count = self.roots.next_run(most, out, cx);
        if let Some(excluding) = self.excluding.as_ref().filter(|_| self.excludes && count > 0) {
            excluding.note(self.roots.position(), cx);
        }
        self.watch.pass(count as u64);
        if count > 0 {
            self.bad.good();
        }
        count
    }

    /// Returns rows for the next elements, without consuming them. Returns `None` if rows are not available without
    /// elements.
    pub(in crate::dataset) fn next_ragged(&mut self, names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        if self.recorder.is_some() || self.excludes {
            return None;
        }
        if !self.roots.is_planned() {
            return self.roots.next_ragged(self.unjudged().unwrap_or(u64::MAX), names, cx);
        }
        // Any of the indices may be dropped, so the window must not end among them.
        let rows = self.roots.next_ragged((WINDOW - self.watch.seen).saturating_sub(1), names, cx)?;
        (self.ends, self.passed) = (rows.ids()?.ends.clone(), 0);
        Some(rows)
    }

    /// Consumes `rows` of these rows.
    pub(in crate::dataset) fn pass_ragged(&mut self, rows: u64) {
        if rows == 0 {
            return;
        }
        if self.roots.is_planned() {
            let end = |passed: usize| passed.checked_sub(1).map_or(0, |row| self.ends.get(row).copied().unwrap_or(0));
            let behind = self.passed.saturating_add(rows as usize);
            let indices = u64::from(end(behind).saturating_sub(end(self.passed)));
            self.passed = behind;
            self.roots.pass_ragged(indices);
            self.watch.pass_some(indices, indices.saturating_sub(rows));
        } else {
            self.roots.pass_ragged(rows);
            self.watch.pass(rows);
        }
        self.bad.good();
    }

    /// Returns the number of good elements that may follow within the window, if the window has dropped elements. Such
    /// a window may end with an error, and that error may come between any two elements.
    fn unjudged(&self) -> Option<u64> {
        (self.watch.dropped > 0).then(|| (WINDOW - self.watch.seen).saturating_sub(1))
    }

    /// Returns the group that starts here, with its number of indices, if it arrived as a single value. None of its
    /// elements was dropped.
    pub(in crate::dataset) fn next_group(&mut self, cx: &mut Cx) -> Option<(Result<G::Whole>, u64)> {
        if self.excludes {
            return None;
        }
        let (whole, indices) = self.roots.next_group(cx)?;
        self.watch.pass(indices);
        self.bad.good();
        Some((whole, indices))
    }

    /// Sets the start of the next groups of `size`. `held` is the number of elements already held for an incomplete
    /// group.
    ///
    /// No group starts within a window that has dropped elements. The window may end with an error, between any two
    /// elements.
    pub(in crate::dataset) fn regroup(&mut self, size: u64, held: u64) {
        if self.excludes {
            return self.ungroup();
        }
        let missing = if held == 0 { 0 } else { size - held };
        let mut first = self.roots.position().saturating_add(missing);
        if self.watch.dropped > 0 {
            let window = self.roots.position().saturating_add(WINDOW - self.watch.seen);
            first = first.saturating_add(window.saturating_sub(first).next_multiple_of(size));
        }
        self.roots.regroup(first);
    }

    /// Ends the groups: all later elements are read one by one.
    pub(in crate::dataset) fn ungroup(&mut self) {
        self.roots.regroup(u64::MAX);
    }

    /// Returns the index that is read next.
    pub(in crate::dataset) fn position(&self) -> u64 {
        self.roots.position()
    }

    /// Adds the file and the record to an error of a stage after the source.
    #[cold]
    fn placed(&self, error: Error) -> Error {
        let index = error.element_index().filter(|_| error.kind() == ErrorKind::Data && error.file().is_none());
        if let Some(place) = index.and_then(|index| self.roots.place_of(index)) { error.of(&place) } else { error }
    }

    /// Skips a bad record if the policy allows it.
    #[cold]
    fn skip(&mut self, error: Error, cx: &mut Cx) -> Result<Option<D::Item>> {
        if let Err(error) = self.bad.skip(error, cx) {
            // The index is consumed, so it also counts in the window.
            self.watch.count(true, cx)?;
            return Err(error);
        }
        Ok(None)
    }

    pub(in crate::dataset) fn state(&self) -> StreamState {
        let (skipped, in_a_row) = self.bad.counts();
        StreamState { next_index: self.roots.position(), dropped: self.watch.dropped, skipped, in_a_row }
    }

    pub(in crate::dataset) fn restore(&mut self, state: StreamState, cx: &mut Cx) -> Result<()> {
        self.excludes = self.excluding.as_mut().is_some_and(|excluding| excluding.renew());
        if let Some(excluding) = &self.excluding {
            excluding.note(state.next_index, cx);
        }
        self.roots.seek(state.next_index)?;
        self.watch.restore(state.next_index % WINDOW, state.dropped)?;
        self.bad.restore(state.skipped, state.in_a_row)
    }
}
