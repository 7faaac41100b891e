//! Keys of what a pass evaluates, for files of them that are not there yet.

use std::sync::Arc;

use super::keys::PrefixKeys;
use super::late_notes::LateNotes;
use super::stand_in::place;
use super::visit::Visit;
use crate::element::{Slot, Tag};
use crate::error::ErrorKind;
use crate::keys::Key;

/// Notes the keys of the elements that pass a border.
pub(in crate::dataset) struct Noted<T> {
    /// The number of the border.
    pub(super) leaf: u32,
    pub(super) keys: Arc<PrefixKeys>,
    pub(super) names: Vec<String>,
    pub(super) visit: Visit<T>,
    /// Stages behind the border whose keys are noted, too.
    pub(super) late: Arc<LateNotes>,
}

impl<T> Noted<T> {
    /// The one element of an index, as stages behind the border know it.
    pub(in crate::dataset) fn member(&self, index: u64) -> Tag {
        [index, place(self.leaf, 0)]
    }

    /// Notes what has come of an index. An error that is not of the data says nothing of the record.
    pub(in crate::dataset) fn note(&self, index: u64, slot: &Slot<T>) {
        let mut lens = Vec::new();
        let key = match slot {
            Ok(item) => self.visit.key_of(item.as_ref(), &self.names, &mut lens),
            Err(error) if error.kind() == ErrorKind::Data => Ok(Key::Bad),
            Err(_) => return,
        };
        let Ok(key) = key else { return };
        self.keys.note(index, key, &lens);
        match slot {
            Ok(Some(_)) => {}
            Ok(None) => self.late.note_end(0, index, Key::Elements(0)),
            Err(_) => self.late.note_end(0, index, Key::Bad),
        }
    }
}
