//! An edit of a run: a change and its first batch.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::excluded::Excluded;
use crate::declare::arguments::{Arguments, Kind, arguments, read, words};
use crate::declare::node::Node;
use crate::declare::values::{AtLeast, Decode, Map};
use crate::error::{Error, Result};

arguments! {
    pub(crate) struct EditArgs {
        /// Number of the first batch that changes, from 0 on. It counts the batches that the run delivers.
        at: u64,
        /// Number of batches to leave out. The batch after them takes their place.
        skip: Option<AtLeast<1>>,
        /// Weights of the parts of a mix of streams, by the names of the parts. Parts that are not named have weight 0. The weights
        /// replace later entries of a schedule.
        mix: Option<Map<f64>>,
        /// Number of batches of a linear transition to the weights of `mix`, in at most 100 equal steps. By default, weights change at
        /// once.
        over: Option<u64>,
        /// Names of parts to remove from a mix of streams. The other parts keep their proportions.
        remove: Option<Vec<String>>,
        /// Number of rows of each batch of the stream. The last `batch` stage makes batches of this size.
        global_batch: Option<AtLeast<1>>,
        /// Records to leave out: a list of files and record numbers, or a file with the output of `gristmill which`.
        exclude: Option<Excluded>,
        /// What comes in place of excluded records. `refill`: the records after them.
        how: Option<Instead>,
    }
}

/// What comes in place of excluded records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instead {
    /// The records after them.
    Refill,
}

words!(Instead { "refill" => Instead::Refill });

/// An edit of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Edit {
    pub(super) at: u64,
    #[serde(flatten)]
    pub(super) change: Change,
}

/// A change of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// Leaves out a number of batches.
    Skip(u64),
    /// Changes the weights of a mix, at once or over a number of batches.
    Mix {
        weights: BTreeMap<String, f64>,
        #[serde(default, skip_serializing_if = "is_zero")]
        over: u64,
    },
    /// Removes datasets from a mix.
    Remove(Vec<String>),
    /// Sets the number of rows of a batch.
    GlobalBatch(u64),
    /// Leaves out records.
    Exclude(Excluded),
}

// Weights are finite numbers: see `Edit::check`.
impl Eq for Change {}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Edit {
    /// Returns true if the edit changes a mix.
    pub(super) fn is_of_mix(&self) -> bool {
        matches!(self.change, Change::Mix { .. } | Change::Remove(_))
    }

    /// Returns the batches of the transition of the edit.
    pub(super) fn over(&self) -> u64 {
        if let Change::Mix { over, .. } = self.change { over } else { 0 }
    }

    /// Returns the first batch after the transition of the edit.
    pub(super) fn end(&self) -> u64 {
        self.at.saturating_add(self.over())
    }

    /// Returns the names of datasets in the edit.
    pub(super) fn names(&self) -> Vec<&str> {
        match &self.change {
            Change::Skip(_) | Change::GlobalBatch(_) | Change::Exclude(_) => Vec::new(),
            Change::Mix { weights, .. } => weights.keys().map(String::as_str).collect(),
            Change::Remove(names) => names.iter().map(String::as_str).collect(),
        }
    }

    /// Checks the change.
    pub(super) fn check(&self) -> Result<()> {
        match &self.change {
            Change::Skip(0) => Err(Error::config("`skip` is 0, and must be 1 or more")),
            Change::GlobalBatch(0) => Err(Error::config("`global_batch` is 0, and must be 1 or more")),
            Change::Remove(names) if names.is_empty() => Err(Error::config("`remove` names no part")),
            Change::Mix { weights, .. } => {
                if let Some((name, weight)) =
                    weights.iter().find(|(_, weight)| !(weight.is_finite() && **weight >= 0.0))
                {
                    let text = format!("the weight of `{name}` is {weight}, which is not a finite number, 0 or above");
                    return Err(Error::config(text));
                }
                match weights.values().any(|weight| *weight > 0.0) {
                    true => Ok(()),
                    false => Err(Error::config("`mix` has no weight above 0")),
                }
            }
            Change::Exclude(records) if records.is_empty() => Err(Error::config("`exclude` names no record")),
            Change::Skip(_) | Change::Remove(_) | Change::GlobalBatch(_) | Change::Exclude(_) => Ok(()),
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at, self.change)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skip(batches) => write!(f, "skip {batches}"),
            Self::Mix { weights, over } => {
                let weights: Vec<_> = weights.iter().map(|(name, weight)| format!("{name}: {weight:?}")).collect();
                write!(f, "mix {{{}}}", weights.join(", "))?;
                if *over > 0 { write!(f, " over {over}") } else { Ok(()) }
            }
            Self::GlobalBatch(rows) => write!(f, "global_batch {rows}"),
            Self::Exclude(records) => write!(f, "exclude {records}"),
            Self::Remove(names) => write!(f, "remove {}", names.join(", ")),
        }
    }
}

impl Decode for Edit {
    const KIND: Kind = Kind::Section(&EditArgs::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let EditArgs { at, skip, mix, over, remove, global_batch, exclude, how } = read(node)?;
        let mut changes = Vec::new();
        changes.extend(skip.map(|AtLeast(batches)| Change::Skip(batches)));
        let (has_mix, excludes) = (mix.is_some(), exclude.is_some());
        changes.extend(
            mix.map(|Map(weights)| Change::Mix { weights: weights.into_iter().collect(), over: over.unwrap_or(0) }),
        );
        changes.extend(remove.map(Change::Remove));
        changes.extend(global_batch.map(|AtLeast(rows)| Change::GlobalBatch(rows)));
        changes.extend(exclude.map(Change::Exclude));
        if how.is_some() && !excludes {
            return Err(node.error("`how` is an argument of `exclude`").help("remove `how`"));
        }
        if over.is_some() && !has_mix {
            return Err(node.error("`over` is the length of a transition of `mix`").help("remove `over`"));
        }
        match (changes.pop(), changes.pop()) {
            (Some(change), None) => {
                let edit = Self { at, change };
                edit.check().map_err(|error| node.error(error.message()))?;
                Ok(edit)
            }
            (None, _) => Err(node
                .error("an edit without a change")
                .help("add `skip`, `mix`, `remove`, `global_batch` or `exclude`")),
            (Some(_), Some(_)) => {
                Err(node.error("an edit with two changes").help("write an edit for each change, with an equal `at`"))
            }
        }
    }
}
