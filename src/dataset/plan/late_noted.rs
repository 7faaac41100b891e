//! Notes the keys of a stage after the border while a pass evaluates it.

use std::any::Any;
use std::sync::Arc;

use super::late_keys::LateKeys;
use crate::cx::ElementId;
use crate::keys::Key;

/// Number and lengths of the elements that a stage has made so far from an input element.
pub(in crate::dataset) struct Counted {
    of: ElementId,
    count: u32,
    lens: Vec<u32>,
}

/// Notes the keys of a stage after the border, for records that yield a single element before the stage.
pub(in crate::dataset) struct LateNoted(pub(super) Arc<LateKeys>);

impl LateNoted {
    /// Notes the element that the stage made from the element `of`. `None` means that the stage dropped it.
    pub(in crate::dataset) fn note(&self, of: Option<ElementId>, made: Option<&dyn Any>) {
        if let Some(of) = of {
            self.0.note(of, made);
        }
    }

    /// Starts to count the elements that the stage makes from the element `of`.
    pub(in crate::dataset) fn begin(&self, of: Option<ElementId>) -> Option<Counted> {
        of.map(|of| Counted { of, count: 0, lens: Vec::new() })
    }

    /// Counts an element. If its lengths cannot be measured, discards the count, and nothing is noted.
    pub(in crate::dataset) fn count(&self, counted: &mut Option<Counted>, piece: &dyn Any) {
        *counted = counted.take().and_then(|mut counted| {
            counted.count = counted.count.checked_add(1)?;
            self.0.add_lens(piece, &mut counted.lens).then_some(counted)
        });
    }

    /// Notes the key, after the last element.
    pub(in crate::dataset) fn end(&self, counted: Option<Counted>) {
        if let Some(Counted { of, count, lens }) = counted {
            self.0.note_key(of, Key::Elements(count), &lens);
        }
    }
}
