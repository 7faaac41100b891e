//! Stages after a border whose keys are noted during a pass.

use std::sync::{Arc, Mutex};

use super::keys::PrefixKeys;
use crate::keys::Key;
use crate::sync::Locked;

/// The stages after a border whose keys are noted, first to last.
#[derive(Default)]
pub(in crate::dataset) struct LateNotes(Mutex<Vec<Arc<PrefixKeys>>>);

impl LateNotes {
    /// Adds a stage and returns its number.
    pub(super) fn add(&self, keys: &Arc<PrefixKeys>) -> usize {
        let mut stages = self.0.locked();
        stages.push(keys.clone());
        stages.len() - 1
    }

    /// Notes the key of an index at a stage.
    pub(super) fn note(&self, stage: usize, index: u64, key: Key, lens: &[u32]) {
        if let Some(keys) = self.0.locked().get(stage) {
            keys.note(index, key, lens);
        }
    }

    /// Notes `key` at stage number `from` and all later stages, because no element of the index reaches them.
    pub(super) fn note_end(&self, from: usize, index: u64, key: Key) {
        self.0.locked().iter().skip(from).for_each(|keys| keys.note(index, key, &[]));
    }
}
