//! Keys of stages behind a border, noted by a pass that evaluates them.

use std::any::Any;
use std::sync::{Arc, Mutex};

use super::keys::PrefixKeys;
use super::late_keys::LateKeys;
use crate::element::Tag;
use crate::keys::Key;
use crate::sync::Locked;

/// The stages behind a border whose keys are noted, first to last.
#[derive(Default)]
pub(in crate::dataset) struct LateNotes(Mutex<Vec<Arc<PrefixKeys>>>);

impl LateNotes {
    /// Adds a stage, and gives its number.
    pub(super) fn add(&self, keys: &Arc<PrefixKeys>) -> usize {
        let mut stages = self.0.locked();
        stages.push(keys.clone());
        stages.len() - 1
    }

    /// Notes the key that an index has at a stage.
    pub(super) fn note(&self, stage: usize, index: u64, key: Key, lens: &[u32]) {
        if let Some(keys) = self.0.locked().get(stage) {
            keys.note(index, key, lens);
        }
    }

    /// Notes that no element of an index comes to what is behind stage `from`: it has this key from there on.
    pub(super) fn note_end(&self, from: usize, index: u64, key: Key) {
        self.0.locked().iter().skip(from).for_each(|keys| keys.note(index, key, &[]));
    }
}

/// What a stage has made so far of one element.
pub(in crate::dataset) struct Counted {
    of: Tag,
    count: u32,
    lens: Vec<u32>,
}

/// Notes the keys of what a stage behind borders makes of elements that are single ones of their records.
pub(in crate::dataset) struct LateNoted(pub(super) Arc<LateKeys>);

impl LateNoted {
    /// Notes what the stage has made of the element `of`; `None` is what it drops.
    pub(in crate::dataset) fn note(&self, of: Option<Tag>, made: Option<&dyn Any>) {
        if let Some([slot, place]) = of {
            self.0.note((place >> 32) as u32, slot, made);
        }
    }

    /// Begins to count what the stage makes of the element `of`.
    pub(in crate::dataset) fn begin(&self, of: Option<Tag>) -> Option<Counted> {
        of.map(|of| Counted { of, count: 0, lens: Vec::new() })
    }

    /// Counts one more. Where its length cannot be told, nothing is noted.
    pub(in crate::dataset) fn count(&self, counted: &mut Option<Counted>, piece: &dyn Any) {
        *counted = counted.take().and_then(|mut counted| {
            counted.count = counted.count.checked_add(1)?;
            self.0.add_lens(piece, &mut counted.lens).then_some(counted)
        });
    }

    /// Notes that those are all.
    pub(in crate::dataset) fn end(&self, counted: Option<Counted>) {
        if let Some(Counted { of: [slot, place], count, lens }) = counted {
            self.0.note_key((place >> 32) as u32, slot, Key::Elements(count), &lens);
        }
    }
}
