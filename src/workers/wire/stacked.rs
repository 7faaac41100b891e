//! A batch, stacked in its place.

use super::element::{write_list, write_shape};
use super::output::{Out, Stop};
use super::structure::{Tag, write_structure};
use super::{ALIGN, INLINE};
use crate::element::{DType, Element, StackSink, Value, stack_into};

/// Writes what `Element::stack` would make of `items`.
pub(super) fn write_stacked(out: &mut Out<'_>, items: &[&Element]) -> Result<(), Stop> {
    stack_into(items, &mut ExtentSink(out))
}

struct ExtentSink<'a, 'b>(&'a mut Out<'b>);

impl StackSink for ExtentSink<'_, '_> {
    type Stop = Stop;

    fn open(&mut self, _: &str, first: &Element) -> Result<(), Stop> {
        self.0.enter()?;
        write_structure(self.0, first.iter().map(|(name, value)| (name, Tag::stacked(value))))
    }

    fn close(&mut self) {
        self.0.leave();
    }

    fn array<'a>(
        &mut self,
        _: &str,
        _: DType,
        shape: &[usize],
        rows: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    ) -> Result<(), Stop> {
        write_shape(self.0, shape)?;
        let len = rows.clone().map(<[u8]>::len).try_fold(0usize, usize::checked_add).ok_or(Stop::Full)?;
        if len <= INLINE {
            let mut word = Vec::with_capacity(INLINE);
            rows.for_each(|row| word.extend_from_slice(row));
            return self.0.bytes(ALIGN, &word);
        }
        let start = self.0.reserve(ALIGN, len)?;
        let mut at = start;
        for row in rows {
            self.0.put(at, row);
            at += row.len();
        }
        self.0.word(start as u64)
    }

    fn list(&mut self, _: &str, values: &[&Value]) -> Result<(), Stop> {
        write_list(self.0, values.iter().copied())
    }
}
