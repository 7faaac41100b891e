//! A batch that is stacked in place.

use super::ALIGN;
use super::element::{write_list, write_shape};
use super::output::{Out, Stop};
use super::structure::{Tag, write_structure};
use crate::element::{DType, Element, StackSink, Value, stack_into};

/// Writes the result of `Element::stack` on `items`.
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
        self.0.rows(ALIGN, rows)
    }

    fn list(&mut self, _: &str, values: &[&Value]) -> Result<(), Stop> {
        write_list(self.0, values.iter().copied())
    }
}
