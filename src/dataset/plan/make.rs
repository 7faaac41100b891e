//! The maker of planned elements or rows.

use std::ops::Range;

use super::rows::{Member, PlannedRows};
use crate::cx::{Cx, ElementId};
use crate::error::{Error, Result};
use crate::exec::Failed;

/// Makes planned elements or rows, in the expected order.
pub(crate) trait Make<T>: Send {
    /// Announces a recipe that [`make`](Self::make) will receive, so that its elements are evaluated ahead.
    fn expect(&mut self, recipe: &[Member]);

    /// Makes the element or row of `recipe`. `failed` is the policy for failed elements.
    ///
    /// If the policy is padding, a failed member of a row becomes padding in the row. Returns `None` for a single
    /// element that failed.
    ///
    /// # Errors
    /// Errors of the evaluation, and [`ErrorKind::Data`](crate::ErrorKind::Data) if an element does not match its key.
    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<T>>;

    /// Makes an element or row from indices near a failed `recipe`, as a sample for padding. Returns `None` if
    /// all of them fail.
    ///
    /// # Errors
    /// Errors of the evaluation other than bad data.
    fn sample(&mut self, recipe: &[Member]) -> Result<Option<T>> {
        let _ = recipe;
        Ok(None)
    }

    /// Appends the lengths of an element's requested arrays to `lens`, according to its key.
    ///
    /// # Errors
    /// Errors of the key lookup, and [`ErrorKind::State`](crate::ErrorKind::State) if the maker has no keys.
    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        let _ = (id, lens);
        Err(Error::state("a plan does not contain the lengths of its elements"))
    }

    /// Appends the lengths of each of `ids` to `lens`, as [`lens`](Self::lens) does. Override this method if a batched
    /// lookup is faster.
    ///
    /// # Errors
    /// As [`lens`](Self::lens).
    fn lens_of(&self, ids: &[ElementId], lens: &mut Vec<u32>) -> Result<()> {
        ids.iter().try_for_each(|id| self.lens(*id, lens))
    }

    /// Finds the first array whose name `is_it` accepts. Returns `None` unless keys determine the segments of this
    /// array.
    fn find_segments(&self, is_it: &mut dyn FnMut(&str) -> bool) -> Option<Segments> {
        let _ = is_it;
        None
    }

    /// Returns the lengths of the segments of `recipe` in the array `of`, in order.
    ///
    /// # Errors
    /// Errors of [`lens`](Self::lens).
    fn segments(&self, recipe: &[Member], of: &Segments) -> Result<Vec<u64>> {
        let _ = (recipe, of);
        Err(Error::state("a plan does not contain the segments of its rows"))
    }

    /// Returns the arrays of segment ids in planned rows, if keys determine the segments.
    fn segment_arrays(&self) -> Vec<Segments> {
        Vec::new()
    }

    /// Appends the cells of each member of `rows` in the array `of` to `cells`, and the place of the member's part in its
    /// element to `parts`. Appends no part if every member is a whole element.
    ///
    /// # Errors
    /// Errors of [`lens`](Self::lens).
    fn cells(&self, rows: &PlannedRows, of: &Segments, cells: &mut Vec<u64>, parts: &mut Vec<Part>) -> Result<()> {
        let _ = (rows, of, cells, parts);
        Ok(())
    }

    /// Returns the cells of the row of `recipe` that each member fills, in the first feature that is not a meta feature.
    /// Returns `None` unless the row is packed.
    ///
    /// # Errors
    /// Errors of [`lens`](Self::lens).
    fn spans(&self, recipe: &[Member]) -> Result<Option<Vec<Span>>> {
        let _ = recipe;
        Ok(None)
    }

    /// Discards the expected recipes, because the plan moves to another position.
    fn forget(&mut self) -> Result<()>;
}

/// An array of segment ids in planned rows.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// The name of the array.
    pub(crate) name: String,
    /// The number of its feature.
    pub(crate) feature: usize,
    /// True if the array has the segment ids of targets. Each segment is then one cell shorter.
    pub(crate) of_targets: bool,
    /// The number of cells of a row.
    pub(crate) length: usize,
}

/// The place of a member's part in its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole element, or all of it that reaches a row.
    Whole,
    /// The first of several parts.
    First,
    /// A later part.
    Later,
}

/// The cells of a packed row that a member fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The cells of the element.
    pub(crate) tokens: Range<u64>,
    /// The cells of the row.
    pub(crate) cells: Range<u64>,
}

/// Returns the only element of a recipe.
pub(super) fn only(recipe: &[Member]) -> Result<ElementId> {
    match recipe {
        [only] => Ok(only.id),
        _ => Err(Error::state(format!("{} elements are planned, expected 1", recipe.len()))),
    }
}
