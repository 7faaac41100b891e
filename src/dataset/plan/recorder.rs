//! Recorders of the keys of evaluated elements, for key files that are missing.

use std::any::Any;
use std::sync::{Arc, Mutex};

use super::measure::{Measure, key_of_one, lengths};
use super::prefix_keys::PrefixKeys;
use super::stage_keys::StageKeys;
use crate::cx::ElementId;
use crate::element::Slot;
use crate::error::ErrorKind;
use crate::keys::Key;
use crate::sync::Locked;

/// Records the keys of the elements that pass a border.
pub(in crate::dataset) struct BorderRecorder<T> {
    /// The number of the border.
    pub(super) border: u32,
    pub(super) keys: Arc<PrefixKeys>,
    pub(super) names: Vec<String>,
    pub(super) measure: Measure<T>,
    /// Records the keys of the stages after the border.
    pub(super) chain: Arc<ChainRecorder>,
}

impl<T> BorderRecorder<T> {
    /// Returns the identity of the single element of an index.
    pub(in crate::dataset) fn id_of(&self, index: u64) -> ElementId {
        ElementId::new(self.border, index, 0)
    }

    /// Records the key of an evaluated index. An error other than bad data does not describe the record and is ignored.
    pub(in crate::dataset) fn record(&self, index: u64, slot: &Slot<T>) {
        let mut lens = Vec::new();
        let key = match slot {
            Ok(item) => self.measure.key_of(item.as_ref(), &self.names, &mut lens),
            Err(error) if error.kind() == ErrorKind::Data => Ok(Key::Bad),
            Err(_) => return,
        };
        let Ok(key) = key else { return };
        self.keys.note(index, key, &lens);
        match slot {
            Ok(Some(_)) => {}
            Ok(None) => self.chain.record_end(0, index, Key::Elements(0)),
            Err(_) => self.chain.record_end(0, index, Key::Bad),
        }
    }
}

/// Records the keys of the stages after a border. Contains the keys of each stage, first to last.
#[derive(Default)]
pub(in crate::dataset) struct ChainRecorder(Mutex<Vec<Arc<PrefixKeys>>>);

impl ChainRecorder {
    /// Adds a stage and returns its number.
    pub(super) fn add(&self, keys: &Arc<PrefixKeys>) -> usize {
        let mut stages = self.0.locked();
        stages.push(keys.clone());
        stages.len() - 1
    }

    /// Records the key of an index at a stage.
    fn record(&self, stage: usize, index: u64, key: Key, lens: &[u32]) {
        if let Some(keys) = self.0.locked().get(stage) {
            keys.note(index, key, lens);
        }
    }

    /// Records `key` at stage number `from` and all later stages, because no element of the index reaches them.
    fn record_end(&self, from: usize, index: u64, key: Key) {
        self.0.locked().iter().skip(from).for_each(|keys| keys.note(index, key, &[]));
    }
}

/// Records the keys of a stage after a border, for records that yield a single element before the stage.
pub(in crate::dataset) struct StageRecorder(pub(super) Arc<StageKeys>);

/// Number and lengths of the elements that a stage has made so far from an input element.
pub(in crate::dataset) struct Counted {
    of: ElementId,
    count: u32,
    lens: Vec<u32>,
}

impl StageRecorder {
    /// Returns the recorder of the chain, and the number of the stage there.
    fn chain(&self, of: ElementId) -> Option<&(usize, Arc<ChainRecorder>)> {
        self.0.of(of).ok()?.recorder.as_ref()
    }

    /// Records the element that the stage made from the element `of`. `None` means that the stage dropped it.
    pub(in crate::dataset) fn record(&self, of: Option<ElementId>, made: Option<&dyn Any>) {
        let Some((of, (stage, chain))) = of.and_then(|of| Some((of, self.chain(of)?))) else { return };
        let mut lens = Vec::new();
        match made.map(|made| key_of_one(made, &self.0.texts, &mut lens)) {
            Some(Ok(key)) => chain.record(*stage, of.index, key, &lens),
            None => chain.record_end(*stage, of.index, Key::Elements(0)),
            // Errors other than bad data do not describe the record.
            Some(Err(_)) => {}
        }
    }

    /// Starts to count the elements that the stage makes from the element `of`.
    pub(in crate::dataset) fn begin(&self, of: Option<ElementId>) -> Option<Counted> {
        of.map(|of| Counted { of, count: 0, lens: Vec::new() })
    }

    /// Counts an element. If its lengths cannot be measured, discards the count, and nothing is recorded.
    pub(in crate::dataset) fn count(&self, counted: &mut Option<Counted>, piece: &dyn Any) {
        *counted = counted.take().and_then(|mut counted| {
            counted.count = counted.count.checked_add(1)?;
            lengths(piece, &self.0.texts, &mut counted.lens).is_ok().then_some(counted)
        });
    }

    /// Records the key, after the last element.
    pub(in crate::dataset) fn end(&self, counted: Option<Counted>) {
        let Some(Counted { of, count, lens }) = counted else { return };
        if let Some((stage, chain)) = self.chain(of) {
            chain.record(*stage, of.index, Key::Elements(count), &lens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;
    use crate::dataset::map::{MapDatasetExt, Range};
    use crate::element::{Array, Element, Name};
    use crate::error::{Error, Result};
    use crate::keys::{KeySource, Keyed, Keys};
    use crate::sync::Locked;

    /// The number, key and lengths of a record.
    type Note = (u64, Key, Vec<u32>);

    /// The recorded keys, in order.
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
        let keys = PrefixKeys::find(&prefix, &names, Measure::element(), &run).unwrap().unwrap();
        let (names, measure) = (vec!["t".to_owned()], Measure::element());
        let recorder = BorderRecorder { border: 0, keys, names, measure, chain: Arc::default() };
        recorder.record(3, &Ok(Some(element(5))));
        recorder.record(4, &Ok(None));
        recorder.record(5, &Err(Error::data("no text")));
        recorder.record(6, &Err(Error::new(ErrorKind::Io, "the disk is gone")));
        // The element lacks the array.
        recorder.record(7, &Ok(Some(Element::new())));
        let expected = [
            (3, Key::Elements(1), vec![5]),
            (4, Key::Elements(0), vec![]),
            (5, Key::Bad, vec![]),
            (7, Key::Bad, vec![]),
        ];
        assert_eq!(*notes.0.locked(), expected);
    }
}
