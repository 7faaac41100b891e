use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::rng::Schedule;

/// Position of an [`IterMixIter`](super::IterMixIter).
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixState<S> {
    /// Position of each parent.
    pub parents: Vec<S>,
    /// Next position in the mix, in elements or tokens.
    pub index: u64,
    /// True if the mix has ended.
    pub stop: bool,
    /// Further facts. `None` if weights are constant and count elements, and the mix ends with its first parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<MixProgress>>,
}

/// Facts about a mix on which its next elements depend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MixProgress {
    /// Entries of the schedule that have taken effect.
    #[serde(skip_serializing_if = "Effective::is_empty")]
    pub schedule: Effective,
    /// Tokens or elements of each parent, if the mix counts tokens or has a budget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<u64>,
    /// Number of restarts of each parent, if parents repeat.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub epochs: Vec<u64>,
    /// Numbers of the parents that have ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<usize>,
    /// Position at which the last of them ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<MixOrigin>,
}

/// Position at which a parent of a mix has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixOrigin {
    /// Position in the mix, in elements or tokens.
    pub index: u64,
    /// Tokens of each parent at this position. Empty if the mix counts elements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<u64>,
}

/// Entries of a schedule that have taken effect, as texts. Clones share the texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Effective {
    all: Arc<[String]>,
    count: usize,
}

impl Effective {
    /// Returns the entries.
    pub fn entries(&self) -> &[String] {
        self.all.get(..self.count).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl PartialEq for Effective {
    fn eq(&self, other: &Self) -> bool {
        self.entries() == other.entries()
    }
}

impl Eq for Effective {}

impl From<Vec<String>> for Effective {
    fn from(entries: Vec<String>) -> Self {
        Self { count: entries.len(), all: entries.into() }
    }
}

impl From<Effective> for Vec<String> {
    fn from(entries: Effective) -> Self {
        entries.entries().to_vec()
    }
}

/// The schedule of a pass, by which it compares and makes states.
#[derive(Default)]
pub(super) struct Entries {
    positions: Box<[u64]>,
    texts: Arc<[String]>,
    /// Number of parents up to the last with a weight, for each entry and the entries before it.
    present: Box<[usize]>,
}

impl Entries {
    pub(super) fn new(schedule: &Schedule) -> Self {
        let entries = schedule.entries();
        let (positions, texts) = entries.iter().map(|entry| (entry.at, entry.to_string())).unzip();
        let (positions, texts): (Vec<u64>, Vec<String>) = (positions, texts);
        let present = entries.iter().scan(0, |most, entry| {
            let last = entry.weights.iter().rposition(|weight| *weight != 0.0);
            *most = last.map_or(0, |last| last + 1).max(*most);
            Some(*most)
        });
        Self { positions: positions.into(), texts: texts.into(), present: present.collect() }
    }

    /// Returns true if the weights are constant.
    pub(super) fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Returns the entries with an effect on elements before `position`.
    pub(super) fn effective(&self, position: u64) -> Effective {
        Effective { count: self.positions.partition_point(|at| *at < position), all: self.texts.clone() }
    }

    /// Returns the number of parents up to the last with a weight before `position`. Later parents are at their starts.
    pub(super) fn present(&self, position: u64) -> usize {
        let count = self.positions.partition_point(|at| *at < position);
        count.checked_sub(1).and_then(|last| self.present.get(last)).copied().unwrap_or(0)
    }

    /// Compares the entries that have taken effect in a state at `position`.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) with the first entry that differs.
    pub(super) fn check(&self, theirs: &Effective, position: u64) -> Result<()> {
        let ours = self.effective(position);
        // A state of constant weights, whose change was accepted, has no entries.
        if theirs.is_empty() || *theirs == ours {
            return Ok(());
        }
        let (theirs, ours) = (theirs.entries(), ours.entries());
        let number = theirs.iter().zip(ours).take_while(|(a, b)| a == b).count();
        let side = |entries: &[String]| entries.get(number).map_or_else(|| "nothing".to_owned(), |e| format!("`{e}`"));
        let (was, is) = (side(theirs), side(ours));
        let text =
            format!("entry {number} of the schedule was {was} and is {is}, but the state is at position {position}");
        Err(Error::state(text)
            .help("restore the entries before this position; only later entries may be added or changed"))
    }
}
