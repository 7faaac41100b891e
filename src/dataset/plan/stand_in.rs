//! Stand-ins: the items of a plan. They identify elements and contain lengths, but no payload.

use std::sync::{Arc, LazyLock};

use super::rows::PlannedRows;
use crate::cx::ElementId;
use crate::element::{Buffer, BufferMut, DType, Name, Ragged, RaggedColumn, RowIds, Stack};
use crate::error::{Error, ErrorKind, Result};

/// An item of a plan. Represents an element, or rows of elements, without the payload.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct StandIn(pub(crate) Content);

/// The content of a [`StandIn`].
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A single element, with the lengths of its arrays.
    Element { id: ElementId, names: Arc<[Name]>, lens: Box<[u32]> },
    /// Planned rows.
    Rows(PlannedRows),
    /// A batch of `length_buckets`: the number of the bucket, and a row for each element.
    Bucket(usize, PlannedRows),
}

impl StandIn {
    /// Creates a stand-in for a single element, whose arrays `names` have `lens` cells.
    pub(crate) fn new(id: ElementId, names: &Arc<[Name]>, lens: &[u32]) -> Self {
        Self(Content::Element { id, names: names.clone(), lens: lens.into() })
    }

    /// Returns the stand-in of row number `row`. `names` are the names of the columns.
    pub(crate) fn of_row(rows: &Ragged, names: &Arc<[Name]>, row: usize) -> Result<Self> {
        let id = rows.ids().and_then(|ids| ids.elements.get(row)).ok_or_else(nothing)?;
        let lens: Vec<u32> = rows.columns().iter().map(|column| column.len_of(row) as u32).collect();
        Ok(Self::new(*id, names, &lens))
    }

    /// Returns the single element of the stand-in.
    pub(crate) fn id(&self) -> Result<ElementId> {
        if let Content::Element { id, .. } = &self.0 { Ok(*id) } else { Err(nothing()) }
    }

    /// Returns the number of cells of the array `name`.
    pub(crate) fn len_of(&self, name: &str) -> Result<usize> {
        let Content::Element { names, lens, .. } = &self.0 else { return Err(nothing()) };
        let len = names.iter().zip(lens).find_map(|(other, len)| (*other == name).then_some(*len as usize));
        len.ok_or_else(|| Error::state(format!("a plan lacks the lengths of {name:?}")))
    }
}

/// A batch contains the rows of its items.
impl Stack for StandIn {
    type Batch = Self;

    fn stack(items: Vec<Self>) -> Result<Self> {
        let mut rows = PlannedRows::default();
        items.iter().for_each(|item| rows.add(item));
        Ok(Self(Content::Rows(rows)))
    }

    fn padding(&self) -> Self {
        self.clone()
    }

    fn nbytes(&self) -> usize {
        0
    }
}

/// Shared zero bytes, enough for the cells of most sequences.
static ZEROS: LazyLock<Buffer> = LazyLock::new(|| BufferMut::zeroed(MOST_SHARED).freeze());
const MOST_SHARED: usize = 1 << 20;

/// Returns at least `len` zero bytes.
pub(crate) fn zeros(len: usize) -> Result<Buffer> {
    match ZEROS.slice(0..len) {
        Some(zeros) => Ok(zeros),
        // Zeroed memory takes no pages until it is written.
        None => BufferMut::try_zeroed(len).map(BufferMut::freeze),
    }
}

/// Returns stand-ins for elements, as rows. `lens` holds the lengths row by row, each row with a length for each of the
/// `columns`.
pub(super) fn stand_ins(ids: RowIds, columns: usize, lens: &[u32]) -> Result<Ragged> {
    let mut rows = Ragged::new(ids.elements.len());
    let longest = lens.iter().copied().max().unwrap_or_default() as usize;
    let memory = zeros(longest.max(MOST_SHARED))?;
    for number in 0..columns {
        let mut column = RaggedColumn::new(DType::U8, &[], ids.elements.len());
        let memory = column.add_memory(memory.clone());
        for (row, lens) in lens.chunks_exact(columns).enumerate() {
            column.place(row, memory, 0, lens[number] as usize).ok_or_else(nothing)?;
        }
        rows = rows.with_column(column)?;
    }
    Ok(rows.with_ids(ids))
}

#[cold]
fn nothing() -> Error {
    Error::new(ErrorKind::State, "a planned row does not identify its elements")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::plan::Member;

    #[test]
    fn a_stand_in_has_lengths_and_names_its_element() {
        let one = StandIn::new(ElementId::new(3, 1 << 40, 7), &[Name::new("a"), Name::new("b")].into(), &[5, u32::MAX]);
        assert_eq!(["a", "b"].map(|name| one.len_of(name).unwrap()), [5, u32::MAX as usize]);
        assert!(one.len_of("c").is_err());
        let rows = StandIn::stack(vec![one.clone(), one]).unwrap();
        let Content::Rows(planned) = &rows.0 else { panic!("{rows:?}") };
        assert_eq!(*planned.recipe(1), [Member { id: ElementId::new(3, 1 << 40, 7), cut: None }]);
        assert!(planned.len() == 2 && rows.id().is_err() && rows.len_of("a").is_err());
    }

    #[test]
    fn zeros_are_shared_up_to_a_limit() {
        assert_eq!([5, MOST_SHARED + 1].map(|len| zeros(len).unwrap().len()), [5, MOST_SHARED + 1]);
    }
}
