//! Records the keys of evaluated elements, for key files that are missing.

use std::sync::Arc;

use super::keys::PrefixKeys;
use super::late_notes::LateNotes;
use super::visit::Visit;
use crate::cx::ElementId;
use crate::element::Slot;
use crate::error::ErrorKind;
use crate::keys::Key;

/// Notes the keys of the elements that pass a border.
pub(in crate::dataset) struct Noted<T> {
    /// The number of the border.
    pub(super) leaf: u32,
    pub(super) keys: Arc<PrefixKeys>,
    pub(super) names: Vec<String>,
    pub(super) visit: Visit<T>,
    /// The stages after the border whose keys are noted, too.
    pub(super) late: Arc<LateNotes>,
}

impl<T> Noted<T> {
    /// Returns the identity of the single element of an index.
    pub(in crate::dataset) fn member(&self, index: u64) -> ElementId {
        ElementId::new(self.leaf, index, 0)
    }

    /// Notes the key of an evaluated index. An error other than bad data does not describe the record and is ignored.
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::Runtime;
    use crate::dataset::map::{MapDatasetExt, Range};
    use crate::element::{Array, Element, Name};
    use crate::error::{Error, Result};
    use crate::keys::{KeySource, Keyed, Keys};
    use crate::sync::Locked;

    /// The number, key and lengths of a record.
    type Note = (u64, Key, Vec<u32>);

    /// The noted keys, in order.
    #[derive(Clone, Debug, Default)]
    struct Notes(Arc<Mutex<Vec<Note>>>);

    impl Keys for Notes {
        fn key(&self, _: u64, _: &mut Vec<u32>) -> Result<Key> {
            Err(Error::state("none yet"))
        }
        fn note(&self, record: u64, key: Key, lens: &[u32]) {
            self.0.locked().push((record, key, lens.to_vec()));
        }
    }

    impl KeySource for Notes {
        fn find(&self, _: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
            Ok(Some(Arc::new(self.clone())))
        }
    }

    #[test]
    fn a_record_is_bad_only_if_its_data_are() {
        let notes = Notes::default();
        let element = |len: i64| Element::new().with("t", Array::from_vec(vec![0i32; len as usize]));
        let prefix = Arc::new(Range::new(0, 9).map(element));
        let run = Runtime::inline().with_keys(Some(Arc::new(notes.clone())));
        let names: [Name; 1] = ["t".into()];
        let keys = PrefixKeys::find(&prefix, &names, Visit::element(), &run).unwrap().unwrap();
        let noted = Noted { leaf: 0, keys, names: vec!["t".to_owned()], visit: Visit::element(), late: Arc::default() };
        noted.note(3, &Ok(Some(element(5))));
        noted.note(4, &Ok(None));
        noted.note(5, &Err(Error::data("no text")));
        noted.note(6, &Err(Error::new(ErrorKind::Io, "the disk is gone")));
        // The element lacks the array.
        noted.note(7, &Ok(Some(Element::new())));
        let expected = [
            (3, Key::Elements(1), vec![5]),
            (4, Key::Elements(0), vec![]),
            (5, Key::Bad, vec![]),
            (7, Key::Bad, vec![]),
        ];
        assert_eq!(*notes.0.locked(), expected);
    }
}
