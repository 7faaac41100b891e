//! Keys of what a pass evaluates, for files of them that are not there yet.

use std::sync::Arc;

use super::keys::PrefixKeys;
use super::visit::Visit;
use crate::element::Slot;
use crate::error::ErrorKind;
use crate::keys::Key;

/// Notes the keys of the elements that pass a border.
pub(in crate::dataset) struct Noted<T> {
    keys: Arc<PrefixKeys>,
    names: Vec<String>,
    visit: Visit<T>,
}

impl<T> Noted<T> {
    pub(super) fn new(keys: Arc<PrefixKeys>, names: Vec<String>, visit: Visit<T>) -> Self {
        Self { keys, names, visit }
    }

    /// Notes what has come of an index. An error that is not of the data says nothing of the record.
    pub(in crate::dataset) fn note(&self, index: u64, slot: &Slot<T>) {
        let mut lens = Vec::new();
        let key = match slot {
            Ok(item) => self.visit.key_of(item.as_ref(), &self.names, &mut lens),
            Err(error) if error.kind() == ErrorKind::Data => Ok(Key::Bad),
            Err(_) => return,
        };
        if let Ok(key) = key {
            self.keys.note(index, key, &lens);
        }
    }
}
