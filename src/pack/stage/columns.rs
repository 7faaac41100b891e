//! Conversion of elements to cells for the kernels, and of written rows to elements.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::item::PackItem;
use super::rows::RowSpec;
use crate::element::{Array, Buffer, DType, Element, Name, Ragged, RaggedColumn, Value};
use crate::error::{Error, Result};
use crate::pack::arena::{Arena, Part};
use crate::pack::feature::Feature;
use crate::sync::Locked;

const PARTS: [Part; 6] =
    [Part::Values, Part::SegmentIds, Part::Positions, Part::Targets, Part::TargetSegmentIds, Part::TargetPositions];

/// Columns of a stage, learned from the first element.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) names: Arc<[Name]>,
    listed: Vec<Name>,
    /// Dtype and inner dimensions of each feature.
    cells: Vec<(DType, Vec<usize>)>,
    outputs: Vec<Output>,
}

/// Output array of a row.
#[derive(Debug)]
struct Output {
    name: Name,
    feature: usize,
    part: Part,
    dtype: DType,
    shape: Vec<usize>,
}

/// Maximum number of column sets to warn about in a process.
const MOST_TOLD: usize = 64;

/// Warns about columns that packed rows omit, once for each set of columns.
///
/// DIFFERENCE: in Grain, `length_struct` must name all features. Here, unnamed features are dropped.
fn say_left_out(columns: &[&str]) {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    if columns.is_empty() {
        return;
    }
    let columns = columns.join(", ");
    let mut told = TOLD.locked();
    if told.len() < MOST_TOLD && !told.contains(&columns) {
        tracing::warn!("packing leaves out {columns}: neither in `length` nor in `meta_features`");
        told.push(columns);
    }
}

impl Columns {
    /// Learns dtypes and inner dimensions from the first element.
    ///
    /// # Errors
    /// As [`RowSpec::resolve`], and if the element lacks a feature.
    pub(super) fn learn<T: PackItem>(rows: &RowSpec, first: &T) -> Result<(Self, Vec<Feature>)> {
        let Some(first) = first.element() else { return Self::counted(rows) };
        let names: Arc<[Name]> = rows.features().map(Name::new).collect();
        let mut cells = Vec::with_capacity(names.len());
        for name in &*names {
            let array = first.array(name)?;
            cells.push((array.dtype(), array.shape().get(1..).unwrap_or_default().to_vec()));
        }
        let features = rows.resolve(&cells)?;
        let mut outputs = Vec::new();
        for (feature, kernel) in features.iter().enumerate() {
            for (name, part) in rows.outputs(feature).into_iter().zip(PARTS) {
                let (dtype, inner) = match part {
                    Part::Values | Part::Targets => (cells[feature].0, cells[feature].1.as_slice()),
                    _ => (DType::I32, [].as_slice()),
                };
                let shape = [&[kernel.length], inner].concat();
                outputs.push(Output { name: Name::new(name), feature, part, dtype, shape });
            }
        }
        let listed: Vec<Name> = rows.listed().cloned().collect();
        let left_out =
            first.iter().map(|(name, _)| name).filter(|name| !names.iter().chain(&listed).any(|n| n == name));
        say_left_out(&left_out.collect::<Vec<_>>());
        Ok((Self { names, listed, cells, outputs }, features))
    }

    /// Returns the columns for stand-ins, without outputs.
    fn counted(rows: &RowSpec) -> Result<(Self, Vec<Feature>)> {
        let (names, features) = (rows.features().map(Name::new).collect(), rows.resolve_counted()?);
        let cells = vec![(DType::U8, Vec::new()); features.len()];
        Ok((Self { names, listed: Vec::new(), cells, outputs: Vec::new() }, features))
    }

    /// Returns the names of the features if elements may arrive as rows. This requires that no meta feature is listed.
    pub(super) fn names_of_rows(&self) -> Option<&Arc<[Name]>> {
        self.listed.is_empty().then_some(&self.names)
    }

    /// Returns true if `rows` match the first element in dtypes and inner dimensions.
    pub(super) fn takes(&self, rows: &Ragged) -> bool {
        let alike = |(column, (dtype, inner)): (&RaggedColumn, &(DType, Vec<usize>))| {
            column.dtype() == *dtype && are_alike(column.inner(), inner)
        };
        rows.columns().len() == self.cells.len() && rows.columns().iter().zip(&self.cells).all(alike)
    }

    /// Checks dtypes and inner dimensions of an element against the first element.
    ///
    /// # Errors
    /// `Data` if a feature differs.
    #[inline]
    pub(super) fn check<T: PackItem>(&self, item: &T) -> Result<()> {
        let Some(element) = item.element() else { return Ok(()) };
        for (name, (dtype, inner)) in self.names.iter().zip(&self.cells) {
            let array = element.array(name)?;
            if array.dtype() != *dtype || !are_alike(array.shape().get(1..).unwrap_or_default(), inner) {
                return Err(other_kind(name, array, *dtype, inner));
            }
        }
        Ok(())
    }

    /// Writes the number of cells of every feature of `item` into `lens`.
    pub(super) fn lens<T: PackItem>(&self, item: &T, lens: &mut Vec<usize>) -> Result<()> {
        lens.clear();
        for name in &*self.names {
            lens.push(item.len_of(name)?);
        }
        Ok(())
    }

    /// Returns the values of the listed meta features of `item`. A plan lists none.
    pub(super) fn listed<T: PackItem>(&self, item: &T) -> Result<Vec<Value>> {
        let Some(element) = item.element() else { return Ok(Vec::new()) };
        self.listed.iter().map(|name| element.field(name).cloned()).collect()
    }

    /// Returns an empty list for every listed meta feature.
    pub(super) fn no_lists(&self) -> Vec<Vec<Value>> {
        vec![Vec::new(); self.listed.len()]
    }

    /// Appends the value of each listed meta feature of `item` to its list.
    pub(super) fn list<T: PackItem>(&self, item: &T, lists: &mut Vec<Vec<Value>>) -> Result<()> {
        let values = self.listed(item)?;
        lists.resize(self.listed.len(), Vec::new());
        lists.iter_mut().zip(values).for_each(|(list, value)| list.push(value));
        Ok(())
    }

    /// Appends null to the list of each listed meta feature.
    pub(super) fn list_nothing(&self, lists: &mut Vec<Vec<Value>>) {
        lists.resize(self.listed.len(), Vec::new());
        lists.iter_mut().for_each(|list| list.push(Value::Null));
    }

    /// Returns true if any meta feature is listed.
    pub(super) fn lists(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Returns row `row` as an element that shares the arena's memory.
    pub(super) fn row(&self, arena: &Arc<Arena>, row: usize, lists: Vec<Vec<Value>>) -> Result<Element> {
        self.views(arena, row..row + 1, None, lists)
    }

    /// Returns the first `rows` rows as a stacked batch that shares the arena's memory.
    pub(super) fn rows(&self, arena: &Arc<Arena>, rows: usize, lists: &[Vec<Vec<Value>>]) -> Result<Element> {
        let column = |at: usize| lists.iter().filter_map(|row| row.get(at).cloned().map(Value::List)).collect();
        let lists = (0..self.listed.len()).map(column).collect();
        self.views(arena, 0..rows, Some(rows), lists)
    }

    /// Returns rows as an element. If `outer` is given, arrays have an additional first dimension of this length.
    fn views(
        &self,
        arena: &Arc<Arena>,
        rows: Range<usize>,
        outer: Option<usize>,
        lists: Vec<Vec<Value>>,
    ) -> Result<Element> {
        let memory = Buffer::from_owner(arena.clone());
        let mut fields = Vec::with_capacity(self.outputs.len() + self.listed.len());
        for Output { name, feature, part, dtype, shape } in &self.outputs {
            let bytes = memory.slice(arena.range(*feature, *part, rows.clone()));
            let bytes = bytes.ok_or_else(|| Error::data(format!("rows {rows:?} are not in the group")))?;
            let array = match outer {
                None => Array::new(*dtype, shape, bytes)?,
                Some(outer) => Array::new(*dtype, &[&[outer], shape.as_slice()].concat(), bytes)?,
            };
            fields.push((name.clone(), Value::Array(array)));
        }
        fields.extend(self.listed.iter().cloned().zip(lists.into_iter().map(Value::List)));
        // Names are unique, because `RowSpec::check` rejects duplicate output names.
        Ok(Element::from_unique(fields))
    }

    /// Returns the dtype of a feature.
    pub(super) fn dtype(&self, feature: usize) -> DType {
        self.cells[feature].0
    }
}

/// Calls `run` with a list of `count` slices. Up to four slices need no allocation.
#[inline]
pub(super) fn with_slices<'a, R>(
    count: usize,
    slices: impl Iterator<Item = &'a [u8]>,
    run: impl FnOnce(&[&'a [u8]]) -> R,
) -> R {
    let mut few = [[].as_slice(); 4];
    match few.get_mut(..count) {
        Some(few) => {
            few.iter_mut().zip(slices).for_each(|(place, slice)| *place = slice);
            run(few)
        }
        None => run(&slices.collect::<Vec<_>>()),
    }
}

/// Returns true if the cells of two features have equal inner shapes, which are usually empty.
///
/// Slice comparison calls the C library. If its loads are masked, a zero-byte load from the dangling pointer of
/// an empty list takes a hundred times as long as other loads.
#[inline]
fn are_alike(shape: &[usize], other: &[usize]) -> bool {
    shape.len() == other.len() && shape.iter().zip(other).all(|(n, other)| n == other)
}

#[cold]
fn other_kind(name: &str, got: &Array, dtype: DType, inner: &[usize]) -> Error {
    let inner: String = inner.iter().map(|dim| format!(", {dim}")).collect();
    Error::data(format!("feature {name:?} is {got:?}, in the first element it was {dtype}[len{inner}]"))
}

/// Calls `run` with the cells of every feature of row `row`.
#[inline]
pub(super) fn with_cells_of_row<R>(rows: &Ragged, row: usize, run: impl FnOnce(&[&[u8]]) -> R) -> R {
    match rows.columns() {
        [only] => run(&[only.cells(row)]),
        columns => with_slices(columns.len(), columns.iter().map(|column| column.cells(row)), run),
    }
}
