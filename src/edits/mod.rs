//! Edits of a run: changes of its stream, each from a batch on.

mod numbers;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::declare::arguments::{Arguments, Kind, arguments, read};
use crate::declare::node::Node;
use crate::declare::values::{AtLeast, Decode};
use crate::error::{Error, Result};

pub(crate) use self::numbers::{BatchNumbers, RunEdits};

arguments! {
    pub(crate) struct EditArgs {
        /// Number of the first batch that changes, from 0 on. It counts the batches that the run delivers.
        at: u64,
        /// Number of batches to leave out. The batch after them takes their place.
        skip: AtLeast<1>,
    }
}

/// A log of edits of a run, in the order of their batches: see [`LoaderBuilder::edits`](crate::LoaderBuilder::edits).
///
/// An edit at batch `b` changes no batch before `b`. The log may therefore grow during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edits(Vec<Edit>);

/// An edit: some batches are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Edit {
    at: u64,
    skip: u64,
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: skip {}", self.at, self.skip)
    }
}

impl Decode for Edit {
    const KIND: Kind = Kind::Section(&EditArgs::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let EditArgs { at, skip } = read(node)?;
        Ok(Self { at, skip: skip.0 })
    }
}

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
    pub fn skip(mut self, at: u64, batches: u64) -> Self {
        self.0.push(Edit { at, skip: batches });
        self
    }

    /// Returns true if there are no edits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks the order of the edits.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.windows(2).position(|pair| pair[1].at < pair[0].at) {
            None => Ok(()),
            Some(place) => {
                let [before, edit] = [self.0[place], self.0[place + 1]];
                let text = format!(
                    "edit {} is at batch {}, before batch {} of the edit before it",
                    place + 1,
                    edit.at,
                    before.at
                );
                Err(Error::config(text)
                    .help("list the edits in the order of their batches; append new edits at the end"))
            }
        }
    }

    /// Returns the number of batches to leave out before batch `number` of the run.
    #[inline]
    fn skipped_at(&self, number: u64) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let first = self.0.partition_point(|edit| edit.at < number);
        self.0[first..].iter().take_while(|edit| edit.at == number).map(|edit| edit.skip).fold(0, u64::saturating_add)
    }

    /// Returns batch `number` of the run. `next` yields the batches of the stream without edits; the batches to leave out
    /// are dropped.
    ///
    /// # Errors
    /// Errors of `next`.
    #[inline]
    pub(crate) fn batch<T>(&self, number: u64, mut next: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
        for _ in 0..self.skipped_at(number) {
            if next()?.is_none() {
                return Ok(None);
            }
        }
        next()
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
