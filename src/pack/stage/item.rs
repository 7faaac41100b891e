//! Items of packing stages: elements in a pass, stand-ins in a plan.

use std::sync::Arc;

use super::columns::with_slices;
use crate::dataset::iter::InPlace;
use crate::dataset::plan::{StandIn, zeros};
use crate::element::{Array, Element, Name, Ragged, Stack};
use crate::error::Result;

/// An item that a packing stage reads, and yields as a row: an [`Element`], or a [`StandIn`] in a plan.
#[doc(hidden)]
pub trait PackItem: Stack<Batch = Self> + Clone + Send + 'static {
    /// True for stand-ins. Stages then list the elements of each row, and write no cells.
    const IS_PLANNED: bool;

    /// Returns the item as an element; `None` for a stand-in.
    fn element(&self) -> Option<&Element>;

    /// Returns the item as a stand-in; `None` for an element.
    fn stand_in(&self) -> Option<&StandIn>;

    /// Returns the number of cells of the array `name`.
    ///
    /// # Errors
    /// There is no such array.
    fn len_of(&self, name: &str) -> Result<usize>;

    /// Calls `run` with the cells of the arrays `names`, which exist. Stand-ins have cells of 1 zero byte.
    ///
    /// # Errors
    /// There is no memory for zero bytes.
    fn with_cells<R>(&self, names: &[Name], run: impl FnOnce(&[&[u8]]) -> R) -> Result<R>;

    /// Returns row number `row` as an item.
    ///
    /// # Errors
    /// The row does not exist.
    fn of_row(rows: &Ragged, names: &Arc<[Name]>, row: usize) -> Result<Self>;

    /// Returns the output of `packer`: written rows for elements, planned rows for stand-ins.
    ///
    /// # Errors
    /// The error of `written`.
    fn output<P>(
        packer: &mut P,
        written: impl FnOnce(&mut P) -> Result<Option<InPlace<Element>>>,
        planned: impl FnOnce(&mut P) -> Option<InPlace<StandIn>>,
    ) -> Result<Option<InPlace<Self>>>;
}

impl PackItem for Element {
    const IS_PLANNED: bool = false;

    #[inline]
    fn element(&self) -> Option<&Element> {
        Some(self)
    }

    #[inline]
    fn stand_in(&self) -> Option<&StandIn> {
        None
    }

    fn len_of(&self, name: &str) -> Result<usize> {
        Ok(self.array(name)?.shape().first().copied().unwrap_or(1))
    }

    #[inline]
    fn with_cells<R>(&self, names: &[Name], run: impl FnOnce(&[&[u8]]) -> R) -> Result<R> {
        Ok(with_slices(names.len(), names.iter().map(|name| self.array(name).map_or(&[][..], Array::bytes)), run))
    }

    fn of_row(rows: &Ragged, names: &Arc<[Name]>, row: usize) -> Result<Self> {
        rows.row(names, row)
    }

    fn output<P>(
        packer: &mut P,
        written: impl FnOnce(&mut P) -> Result<Option<InPlace<Element>>>,
        _: impl FnOnce(&mut P) -> Option<InPlace<StandIn>>,
    ) -> Result<Option<InPlace<Self>>> {
        written(packer)
    }
}

impl PackItem for StandIn {
    const IS_PLANNED: bool = true;

    fn element(&self) -> Option<&Element> {
        None
    }

    fn stand_in(&self) -> Option<&StandIn> {
        Some(self)
    }

    fn len_of(&self, name: &str) -> Result<usize> {
        self.len_of(name)
    }

    fn with_cells<R>(&self, names: &[Name], run: impl FnOnce(&[&[u8]]) -> R) -> Result<R> {
        let lens = names.iter().map(|name| self.len_of(name)).collect::<Result<Vec<_>>>()?;
        let zeros = zeros(lens.iter().copied().max().unwrap_or_default())?;
        Ok(with_slices(names.len(), lens.iter().map(|&len| &zeros.as_bytes()[..len]), run))
    }

    fn of_row(rows: &Ragged, names: &Arc<[Name]>, row: usize) -> Result<Self> {
        Self::of_row(rows, names, row)
    }

    fn output<P>(
        packer: &mut P,
        _: impl FnOnce(&mut P) -> Result<Option<InPlace<Element>>>,
        planned: impl FnOnce(&mut P) -> Option<InPlace<StandIn>>,
    ) -> Result<Option<InPlace<Self>>> {
        Ok(planned(packer))
    }
}
