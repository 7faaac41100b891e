//! Keys of a stage behind borders, noted while a pass evaluates it.

use std::any::Any;
use std::sync::Arc;

use super::late_keys::LateKeys;
use crate::element::Tag;
use crate::keys::Key;

/// Count and lengths of what a stage has made so far of one element.
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
