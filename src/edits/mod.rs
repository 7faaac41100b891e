//! Edits of a run: changes of its stream, each from a batch on.
//!
//! [`RunEdits`] begins and ends the batches of a pass, and sets the number of the present batch in the context
//! ([`Cx::batch`](crate::cx::Cx::batch)). A pass that plans ahead numbers its batches by [`BatchNumbers`].
//!
//! An edit of a mix takes effect at a position of the mix: the first element that no stage has read when its batch begins.
//! The context contains this position ([`Cx::read`](crate::cx::Cx::read)). The mix advances it, and stages that read ahead
//! in chunks return it with each element. Elements that such a stage has read after the position are read again.
//! An edit that excludes records takes effect at the next index of each border, in the same way.
//! [`EditedMix`] holds the positions. A restore reads elements of open rows again, and applies each change at its position.

mod begun;
mod change;
mod excluded;
mod names;
mod numbers;
mod run;
mod sizes;
mod steps;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::change::Edit;
use self::excluded::Excluded;
use crate::declare::arguments::Kind;
use crate::declare::node::Node;
use crate::declare::values::Decode;
use crate::error::{Error, Result};

pub(crate) use self::change::Change;
pub(crate) use self::excluded::ExcludedRecords;
pub(crate) use self::names::records_in;
pub(crate) use self::numbers::BatchNumbers;
pub use self::run::EditedMix;
pub(crate) use self::run::{EditedStages, MixPlace, RunEdits};
pub(crate) use self::sizes::BatchSize;

/// A log of edits of a run, in the order of their batches: see [`LoaderBuilder::edits`](crate::LoaderBuilder::edits).
///
/// An edit at batch `b` changes no batch before `b`. The log may therefore grow during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edits(Vec<Edit>);

impl Decode for Edits {
    const KIND: Kind = Kind::List(&Edit::KIND);

    fn decode(node: &Node) -> Result<Self> {
        let edits = Self(Vec::decode(node)?);
        edits.check().map_err(|e| node.error(e.message()).help(e.help_text().unwrap_or_default()))?;
        Ok(edits)
    }
}

impl Edits {
    /// Leaves out `batches` batches at batch `at`: the batch after them takes their place.
    pub fn skip(self, at: u64, batches: u64) -> Self {
        self.with(at, Change::Skip(batches))
    }

    /// Changes the weights of a mix of streams from batch `at` on. Weights are by the names of the datasets; datasets
    /// without a name in `weights` have weight 0.
    ///
    /// Weights apply exactly as written, and replace later entries of a [`Schedule`](crate::rng::Schedule).
    pub fn mix<N: Into<String>>(self, at: u64, weights: impl IntoIterator<Item = (N, f64)>) -> Self {
        self.mix_over(at, weights, 0)
    }

    /// Like [`mix`](Self::mix), with a linear transition over `batches`: at most 100 equal steps.
    pub fn mix_over<N>(self, at: u64, weights: impl IntoIterator<Item = (N, f64)>, batches: u64) -> Self
    where
        N: Into<String>,
    {
        let weights: BTreeMap<String, f64> = weights.into_iter().map(|(name, weight)| (name.into(), weight)).collect();
        self.with(at, Change::Mix { weights, over: batches })
    }

    /// Removes datasets from a mix of streams from batch `at` on. The other datasets keep their proportions.
    pub fn remove<N: Into<String>>(self, at: u64, names: impl IntoIterator<Item = N>) -> Self {
        self.with(at, Change::Remove(names.into_iter().map(Into::into).collect()))
    }

    /// Makes batches of `rows` rows from batch `at` on. The last [`batch`](crate::IterDatasetExt::batch) stage of the stream
    /// makes them.
    pub fn global_batch(self, at: u64, rows: u64) -> Self {
        self.with(at, Change::GlobalBatch(rows))
    }

    /// Leaves out records from batch `at` on, as a filter after [`to_iter`](crate::MapDatasetExt::to_iter) would. Each record is a file, or the
    /// end of its path, and the number of the record in the file. A source without files has its name in place of a file.
    ///
    /// Elements that stages have read before batch `at` stay.
    pub fn exclude<F: Into<String>>(self, at: u64, records: impl IntoIterator<Item = (F, u64)>) -> Self {
        self.with(at, Change::Exclude(records.into_iter().map(|(file, record)| (file.into(), record)).collect()))
    }

    fn with(mut self, at: u64, change: Change) -> Self {
        self.0.push(Edit { at, change });
        self
    }

    /// Moves all edits to batch `at`.
    pub fn all_at(mut self, at: u64) -> Self {
        self.0.iter_mut().for_each(|edit| edit.at = at);
        self
    }

    /// Adds `more`, each in the order of its batch.
    pub(crate) fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self.0.sort_by_key(|edit| edit.at);
        self
    }

    /// Returns the first batch that changes.
    pub(crate) fn first(&self) -> Option<u64> {
        self.0.first().map(|edit| edit.at)
    }

    /// Returns true if there are no edits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks the edits and their order.
    pub(crate) fn check(&self) -> Result<()> {
        for (number, edit) in self.0.iter().enumerate() {
            edit.check().map_err(|error| Error::config(format!("edit {number}: {}", error.message())))?;
        }
        let pairs = self.0.windows(2).enumerate();
        for (place, pair) in pairs {
            let [before, edit] = pair else { continue };
            if edit.at < before.at {
                let text = format!(
                    "edit {} is at batch {}, before batch {} of the edit before it",
                    place + 1,
                    edit.at,
                    before.at
                );
                return Err(Error::config(text)
                    .help("list the edits in the order of their batches; append new edits at the end"));
            }
        }
        let mixed: Vec<&Edit> = self.0.iter().filter(|edit| edit.is_of_mix()).collect();
        match mixed.windows(2).find(|pair| pair[1].at < pair[0].end()) {
            Some(pair) => {
                let text = format!("the edit `{}` begins before the transition `{}` ends", pair[1], pair[0]);
                Err(Error::config(text).help("shorten the transition (`over`), or begin later"))
            }
            None => Ok(()),
        }
    }

    /// Returns true if an edit changes the batches from one of `batches` on.
    pub(crate) fn begin_in(&self, batches: Range<u64>) -> bool {
        self.0.iter().any(|edit| batches.contains(&edit.at))
    }

    /// Returns the number of batches to leave out before batch `number` of the run.
    fn skipped_at(&self, number: u64) -> u64 {
        let first = self.0.partition_point(|edit| edit.at < number);
        let skipped = |edit: &Edit| if let Change::Skip(batches) = edit.change { batches } else { 0 };
        self.0[first..].iter().take_while(|edit| edit.at == number).map(skipped).fold(0, u64::saturating_add)
    }

    /// Returns the number of rows of each edit of the batch size, with its batch.
    pub(crate) fn sizes(&self) -> impl DoubleEndedIterator<Item = (u64, usize)> {
        let size = |edit: &Edit| match edit.change {
            Change::GlobalBatch(rows) => Some((edit.at, usize::try_from(rows).unwrap_or(usize::MAX))),
            _ => None,
        };
        self.0.iter().filter_map(size)
    }

    /// Returns the records of each edit that excludes records, with its batch.
    pub(crate) fn exclusions(&self) -> impl Iterator<Item = (u64, &Excluded)> {
        self.0.iter().filter_map(|edit| {
            if let Change::Exclude(records) = &edit.change { Some((edit.at, records)) } else { None }
        })
    }

    /// Returns the names of datasets that each edit of a mix contains, with the edit as text.
    pub(crate) fn names(&self) -> impl Iterator<Item = (String, Vec<&str>)> {
        self.0.iter().filter(|edit| edit.is_of_mix()).map(|edit| (edit.to_string(), edit.names()))
    }

    /// Returns the edits as lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.iter().map(Edit::to_string).collect()
    }

    /// Returns the edits that have changed one of the first `delivered` batches, as lines.
    pub(crate) fn effective(&self, delivered: u64) -> Vec<String> {
        self.0.iter().take_while(|edit| edit.at < delivered).map(Edit::to_string).collect()
    }

    /// Checks that the edits with an effect on the first `delivered` batches are `before`.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) with the first edit that differs.
    pub(crate) fn continues(&self, before: &[String], delivered: u64) -> Result<()> {
        let now = self.effective(delivered);
        let most = before.len().max(now.len());
        let Some(place) = (0..most).find(|&place| before.get(place) != now.get(place)) else { return Ok(()) };
        let side = |lines: &[String]| lines.get(place).map_or_else(|| "nothing".to_owned(), |line| format!("`{line}`"));
        let text = format!("the edits of the run differ: edit {place} was {} and is {}", side(before), side(&now));
        let help = format!(
            "restore the edits before batch {delivered}, which the run has passed; new edits apply from this batch on"
        );
        Err(Error::state(text).help(help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_continues_its_own_past_alone() {
        let edits = Edits::default().skip(3, 2).skip(3, 1).skip(9, 4);
        edits.check().unwrap();
        assert_eq!([2, 3, 4, 9].map(|number| edits.skipped_at(number)), [0, 3, 0, 4]);
        assert_eq!(edits.effective(3), [""; 0]);
        assert_eq!(edits.effective(4), ["at 3: skip 2", "at 3: skip 1"]);
        edits.continues(&edits.effective(4), 4).unwrap();
        edits.clone().skip(12, 1).continues(&edits.effective(10), 10).unwrap();
        let error = edits.continues(&edits.effective(4)[..1], 4).unwrap_err();
        assert_eq!(error.message(), "the edits of the run differ: edit 1 was nothing and is `at 3: skip 1`");
        let error = Edits::default().skip(3, 7).continues(&edits.effective(4), 4).unwrap_err();
        assert_eq!(error.message(), "the edits of the run differ: edit 0 was `at 3: skip 2` and is `at 3: skip 7`");
        let error = edits.skip(8, 1).check().unwrap_err();
        assert_eq!(error.message(), "edit 3 is at batch 8, before batch 9 of the edit before it");
    }
}
