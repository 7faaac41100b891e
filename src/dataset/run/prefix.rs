//! Slots of the elementwise prefix in order, bad records and dropped elements passed over.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunks::Roots;
use super::evaluate::{Apart, Gather};
use super::skipping::{BadRecords, Skipping};
use super::thresholds::{FilterThresholds, WINDOW, Watch};
use crate::cx::{Cx, StageId};
use crate::dataset::map::MapDataset;
use crate::dataset::plan::Noted;
use crate::element::{Name, Ragged};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Runtime;

/// Options of reading a prefix: part of what shapes the data.
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
/// One in the state of a filter is read too: a filter behind a cut prefix had one of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct StreamState {
    /// The index of the dataset that is read next; empty slots count.
    pub next_index: u64,
    /// Of the indices since the last whole thousand, those that yielded nothing.
    pub dropped: u64,
    /// Bad records skipped since the start.
    pub skipped: u64,
    /// Of those, the last ones, with no good one between or behind them; 0 in states from before it was counted.
    pub in_a_row: u64,
}

/// The states that are read: of a stream, or of a filter and the stream in it.
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
            // What the filter has seen of its window matters to warnings only: they start anew.
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
    /// Who notes the keys of what comes, if anybody does.
    noted: Option<Arc<Noted<D::Item>>>,
    /// The indices up to each of the rows that came last, where some between them yield nothing, and the rows that were consumed.
    ends: Vec<u32>,
    passed: usize,
    /// Position before the slot that was read last.
    pub(in crate::dataset) before: StreamState,
}

impl<D, G> Prefix<D, G>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
    G: Gather<D::Item>,
{
    pub(in crate::dataset) fn new(roots: Roots<D, G>, options: PrefixOptions) -> Self {
        let watch = Watch::new(options.thresholds);
        Self {
            roots,
            bad: Skipping::new(options.bad),
            watch,
            noted: None,
            ends: Vec::new(),
            passed: 0,
            before: StreamState::default(),
        }
    }

    /// The same of the border `stage`, where the keys of what passes it may be recorded.
    pub(in crate::dataset) fn noted(self, run: &Runtime, stage: StageId) -> Self
    where
        D::Item: 'static,
    {
        Self { noted: run.noted(stage), ..self }
    }

    /// The next element. One that is `empty` is handed out, but counts as dropped.
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
            if let Some(noted) = &self.noted {
                noted.note(index, &slot);
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

    /// Says which element came last, where keys are noted.
    #[inline]
    pub(in crate::dataset) fn say_member(&self, cx: &mut Cx) {
        if let Some(noted) = &self.noted {
            cx.set_member(Some(noted.member(self.before.next_index)));
        }
    }

    /// Moves elements into `out`, at most so many, and as many as there are at hand or are evaluated in a moment: how many.
    /// None, where [`next`](Self::next) says what comes.
    pub(in crate::dataset) fn next_run(&mut self, most: usize, out: &mut Vec<D::Item>, cx: &mut Cx) -> usize {
        if self.noted.is_some() {
            return 0;
        }
        let most = self.unjudged().map_or(most, |unjudged| most.min(unjudged as usize));
        let count = self.roots.next_run(most, out, cx);
        self.watch.pass(count as u64);
        if count > 0 {
            self.bad.good();
        }
        count
    }

    /// The rows that stand for the next elements, where they are to be had without those; they are not consumed.
    pub(in crate::dataset) fn next_ragged(&mut self, names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        if self.noted.is_some() {
            return None;
        }
        if !self.roots.is_planned() {
            return self.roots.next_ragged(self.unjudged().unwrap_or(u64::MAX), names, cx);
        }
        // Any of them may be dropped, so the window ends with none of them.
        let rows = self.roots.next_ragged((WINDOW - self.watch.seen).saturating_sub(1), names, cx)?;
        (self.ends, self.passed) = (rows.stands_for()?.ends.clone(), 0);
        Some(rows)
    }

    /// Consumes so many of them.
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

    /// The number of good elements that may follow before the window ends, if something was dropped in it: it may then end with an error,
    /// between any two elements.
    fn unjudged(&self) -> Option<u64> {
        (self.watch.dropped > 0).then(|| (WINDOW - self.watch.seen).saturating_sub(1))
    }

    /// The group that begins here, if it has come as one, and its indices: none of them was dropped.
    pub(in crate::dataset) fn next_group(&mut self, cx: &mut Cx) -> Option<(Result<G::Whole>, u64)> {
        let (whole, indices) = self.roots.next_group(cx)?;
        self.watch.pass(indices);
        self.bad.good();
        Some((whole, indices))
    }

    /// Says where the next groups of `size` begin, when so many elements are `held` that are none yet. In a window in which
    /// something was dropped there are none: it may end with an error, between any two elements.
    pub(in crate::dataset) fn regroup(&mut self, size: u64, held: u64) {
        let missing = if held == 0 { 0 } else { size - held };
        let mut first = self.roots.position().saturating_add(missing);
        if self.watch.dropped > 0 {
            let window = self.roots.position().saturating_add(WINDOW - self.watch.seen);
            first = first.saturating_add(window.saturating_sub(first).next_multiple_of(size));
        }
        self.roots.regroup(first);
    }

    /// The index that is read next.
    pub(in crate::dataset) fn position(&self) -> u64 {
        self.roots.position()
    }

    /// Adds the file and the record to an error of a stage after the source.
    #[cold]
    fn placed(&self, error: Error) -> Error {
        let index = error.element_index().filter(|_| error.kind() == ErrorKind::Data && error.file().is_none());
        match index.and_then(|index| self.roots.place_of(index)) {
            Some(place) => error.of(&place),
            None => error,
        }
    }

    /// Passes over a bad record, if that is allowed.
    #[cold]
    fn skip(&mut self, error: Error, cx: &mut Cx) -> Result<Option<D::Item>> {
        if let Err(error) = self.bad.skip(error, cx) {
            // The index is used up: the count of the window goes along with it.
            self.watch.count(true, cx)?;
            return Err(error);
        }
        Ok(None)
    }

    pub(in crate::dataset) fn state(&self) -> StreamState {
        let (skipped, in_a_row) = self.bad.counts();
        StreamState { next_index: self.roots.position(), dropped: self.watch.dropped, skipped, in_a_row }
    }

    pub(in crate::dataset) fn restore(&mut self, state: StreamState) -> Result<()> {
        self.roots.seek(state.next_index)?;
        self.watch.restore(state.next_index % WINDOW, state.dropped)?;
        self.bad.restore(state.skipped, state.in_a_row)
    }
}
