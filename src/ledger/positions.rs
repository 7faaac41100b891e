//! Positions of logged states at the borders of a pipeline, and the batches that can hold an index.

use std::ops::Range;

use serde_json::Value as Json;

use super::log::{Event, RunLog};
use crate::dataset::{Role, Stage, Work};
use crate::edits::Edits;

/// The next index of each border at each line of a run log.
#[derive(Debug)]
pub(super) struct Positions {
    /// Number of batches before each line.
    batches: Vec<u64>,
    /// The next index of each border, by lines. Never falls from line to line.
    next: Vec<Vec<u64>>,
    /// Elements of each batch, if indices alone determine the batches.
    pub(super) by_index: Option<u64>,
    /// False if a stage after the border holds elements before it yields them.
    pub(super) is_direct: bool,
}

impl Positions {
    /// Finds the positions of all lines of `log`.
    ///
    /// # Errors
    /// The reason if positions do not show the elements of batches.
    pub(super) fn of(dataset: &dyn Stage, log: &RunLog, borders: usize) -> Result<Self, &'static str> {
        let (mut batches, mut next) = (Vec::new(), Vec::<Vec<u64>>::new());
        for line in log.lines() {
            let mut found = Vec::new();
            collect(&line.entry.state, &mut found)?;
            if found.len() != borders {
                return Err("its states have no position for each `to_iter`");
            }
            if next.last().is_some_and(|last| last.iter().zip(&found).any(|(last, found)| last > found)) {
                return Err("its positions do not always rise");
            }
            batches.push(line.entry.at_batch);
            next.push(found);
        }
        let (mut is_direct, mut only_batches) = (true, borders == 1);
        dataset.walk_in_order(&mut |stage, is_in_order| {
            let is_border = stage.node().work == Work::Border;
            let is_each = stage.role() <= Role::Elementwise || stage.name() == "batch";
            if is_in_order && !is_border {
                is_direct &= matches!(stage.name(), "batch" | "limit" | "skip" | "mix");
            }
            only_batches &= if is_border { stage.params().is_empty() } else { is_each };
        });
        let mut positions = Self { batches, next, by_index: None, is_direct };
        // Batches of several sizes, and batches without some records, are not a function of the index.
        let edits = log.edits();
        if only_batches && edits.sizes().next().is_none() && edits.exclusions().next().is_none() {
            positions.by_index = positions.elements_of_a_batch(log, &edits);
        }
        Ok(positions)
    }

    /// Returns the elements of each batch between two lines before the end, if there are such lines and if their states
    /// are bare positions.
    fn elements_of_a_batch(&self, log: &RunLog, edits: &Edits) -> Option<u64> {
        if log.lines().iter().any(|line| !is_bare(&line.entry.state)) {
            return None;
        }
        let end =
            log.lines().iter().position(|line| line.entry.event == Event::End || line.entry.at_batch == log.batches());
        (1..end.unwrap_or(0)).find_map(|line| {
            let (from, to) = (self.batches[line - 1], self.batches[line]);
            let elements = self.next[line][0] - self.next[line - 1][0];
            let is_whole = to > from && elements.is_multiple_of(to - from) && !edits.begin_in(from..to);
            is_whole.then(|| elements / (to - from)).filter(|each| *each > 0)
        })
    }

    /// Returns the next index of a border at a line.
    pub(super) fn at(&self, line: usize, border: usize) -> u64 {
        self.next[line][border]
    }

    /// Returns the last line at which `index` of a border has not been read yet: the first line if there is none. Elements
    /// that stages hold do not count as read.
    pub(super) fn line_before(&self, border: usize, index: u64) -> usize {
        self.next.partition_point(|next| next[border] < index).saturating_sub(1)
    }

    /// Returns the batches from `line` on that can hold `index` of a border: up to the first line after the index, or to
    /// `end`.
    pub(super) fn batches(&self, line: usize, border: usize, index: u64, end: u64) -> Range<u64> {
        let after = self.next.partition_point(|next| next[border] <= index);
        self.batches[line]..self.batches.get(after).copied().unwrap_or(end)
    }

    /// Returns the batch of `index`, if indices alone determine the batches from `line` on.
    pub(super) fn batch_of(&self, line: usize, index: u64, edits: &Edits) -> Option<u64> {
        let batch = self.batches[line] + index.checked_sub(self.next[line][0])? / self.by_index?;
        (!edits.begin_in(self.batches[line]..batch + 1)).then_some(batch)
    }

    /// Returns the state before `batch`, if indices alone determine the batches from `line` on, whose state is `state`.
    pub(super) fn state_at(&self, line: usize, batch: u64, state: &Json, edits: &Edits) -> Option<Json> {
        let (from, mut state) = (self.batches[line], state.clone());
        let further = self.by_index?.checked_mul(batch.checked_sub(from)?)?;
        if edits.begin_in(from..batch) {
            return None;
        }
        *state.get_mut(NEXT)? = self.next[line][0].checked_add(further)?.into();
        Some(state)
    }
}

/// The field of a border's state with its next index.
const NEXT: &str = "next_index";

/// Adds the next index of each border in `state`, in the order of the borders.
fn collect(state: &Json, next: &mut Vec<u64>) -> Result<(), &'static str> {
    match state {
        Json::Object(fields) => {
            if let Some(index) = fields.get(NEXT) {
                next.extend(index.as_u64());
                return Ok(());
            }
            if fields.contains_key("epoch") || fields.contains_key("epochs") {
                return Err("it repeats its stream, so positions begin anew");
            }
            fields.values().try_for_each(|value| collect(value, next))
        }
        Json::Array(values) => values.iter().try_for_each(|value| collect(value, next)),
        _ => Ok(()),
    }
}

/// Returns true if a state is the position of a border before which nothing was dropped.
fn is_bare(state: &Json) -> bool {
    let is_zero = |(name, value): (&String, &Json)| name == NEXT || value.as_u64() == Some(0);
    state.as_object().is_some_and(|fields| fields.contains_key(NEXT) && fields.iter().all(is_zero))
}
