//! From elements to the cells the kernels take, and from written rows to elements.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::rows::RowSpec;
use crate::dataset::plan;
use crate::element::{Array, Buffer, DType, Element, Name, Ragged, RaggedColumn, Value};
use crate::error::{Error, Result};
use crate::pack::arena::{Arena, Part};
use crate::pack::feature::Feature;
use crate::sync::Locked;

const PARTS: [Part; 6] =
    [Part::Values, Part::SegmentIds, Part::Positions, Part::Targets, Part::TargetSegmentIds, Part::TargetPositions];

/// The columns of a stage, once the first element has shown their dtypes.
#[derive(Debug)]
pub(super) struct Columns {
    names: Arc<[Name]>,
    listed: Vec<Name>,
    /// Dtype and inner dimensions of each feature.
    cells: Vec<(DType, Vec<usize>)>,
    outputs: Vec<Output>,
    /// Whether elements are stand-ins: rows say which of them are in them, and nothing is written.
    planned: bool,
}

/// One array of a row.
#[derive(Debug)]
struct Output {
    name: Name,
    feature: usize,
    part: Part,
    dtype: DType,
    shape: Vec<usize>,
}

/// Sets of columns that a process is told of; more than that are no news any more.
const MOST_TOLD: usize = 64;

/// Warns of columns that packed rows do not have, once for each set of them.
///
/// DIFFERENCE from Grain, where `length_struct` must name all features: naming some is how the others are dropped here.
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
    pub(super) fn learn(rows: &RowSpec, first: &Element) -> Result<(Self, Vec<Feature>)> {
        if plan::is_stand_in(first) {
            return Self::counted(rows);
        }
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
        Ok((Self { names, listed, cells, outputs, planned: false }, features))
    }

    /// The columns of stand-ins, of which nothing is written.
    fn counted(rows: &RowSpec) -> Result<(Self, Vec<Feature>)> {
        let (names, features) = (rows.features().map(Name::new).collect(), rows.resolve_counted()?);
        let cells = vec![(DType::U8, Vec::new()); features.len()];
        Ok((Self { names, listed: Vec::new(), cells, outputs: Vec::new(), planned: true }, features))
    }

    /// Runs `run` with the cells of every feature of `element`, which was [checked](Self::check).
    #[inline]
    pub(super) fn with_cells<R>(&self, element: &Element, run: impl FnOnce(&[&[u8]]) -> R) -> R {
        let cells = self.names.iter().map(|name| element.array(name).map_or(&[][..], Array::bytes));
        with_slices(self.names.len(), cells, run)
    }

    /// The names of the features, if rows of them are all that is asked of elements.
    pub(super) fn names_of_rows(&self) -> Option<&Arc<[Name]>> {
        self.listed.is_empty().then_some(&self.names)
    }

    /// Whether elements are stand-ins, of which rows say which they are.
    pub(super) fn are_planned(&self) -> bool {
        self.planned
    }

    /// Whether the features of rows are of the kind of those in the first element.
    pub(super) fn takes(&self, rows: &Ragged) -> bool {
        let alike = |(column, (dtype, inner)): (&RaggedColumn, &(DType, Vec<usize>))| {
            column.dtype() == *dtype && are_alike(column.inner(), inner)
        };
        let is_alike = rows.stands_for().is_some() == self.planned && rows.columns().len() == self.cells.len();
        is_alike && rows.columns().iter().zip(&self.cells).all(alike)
    }

    /// Row `row` of rows that [are taken](Self::takes), as an element.
    pub(super) fn element(&self, rows: &Ragged, row: usize) -> Result<Element> {
        if self.planned { plan::stand_in_of(rows, &self.names, row) } else { rows.row(&self.names, row) }
    }

    /// Whether the features of `element` are of the kind of those in the first.
    #[inline]
    pub(super) fn check(&self, element: &Element) -> Result<()> {
        for (name, (dtype, inner)) in self.names.iter().zip(&self.cells) {
            let array = element.array(name)?;
            if array.dtype() != *dtype || !are_alike(array.shape().get(1..).unwrap_or_default(), inner) {
                return Err(other_kind(name, array, *dtype, inner));
            }
        }
        Ok(())
    }

    /// The number of cells of every feature of `element`, into `lens`.
    pub(super) fn lens(&self, element: &Element, lens: &mut Vec<usize>) -> Result<()> {
        lens.clear();
        for name in &*self.names {
            lens.push(element.array(name)?.shape().first().copied().unwrap_or(1));
        }
        Ok(())
    }

    /// The values of the listed meta features of `element`.
    pub(super) fn listed(&self, element: &Element) -> Result<Vec<Value>> {
        self.listed.iter().map(|name| element.field(name).cloned()).collect()
    }

    /// A list for every listed meta feature.
    pub(super) fn no_lists(&self) -> Vec<Vec<Value>> {
        vec![Vec::new(); self.listed.len()]
    }

    /// The values of the listed meta features of `element`, each to its list.
    pub(super) fn list(&self, element: &Element, lists: &mut Vec<Vec<Value>>) -> Result<()> {
        let values = self.listed(element)?;
        lists.resize(self.listed.len(), Vec::new());
        lists.iter_mut().zip(values).for_each(|(list, value)| list.push(value));
        Ok(())
    }

    /// Lists that there is no value of any meta feature.
    pub(super) fn list_nothing(&self, lists: &mut Vec<Vec<Value>>) {
        lists.resize(self.listed.len(), Vec::new());
        lists.iter_mut().for_each(|list| list.push(Value::Null));
    }

    /// Whether meta features are listed at all.
    pub(super) fn lists(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Row `row` as an element that shares its memory.
    pub(super) fn row(&self, arena: &Arc<Arena>, row: usize, lists: Vec<Vec<Value>>) -> Result<Element> {
        self.views(arena, row..row + 1, None, lists)
    }

    /// The first `rows` rows as the batch that stacking them gives, in the same memory.
    pub(super) fn rows(&self, arena: &Arc<Arena>, rows: usize, lists: &[Vec<Vec<Value>>]) -> Result<Element> {
        let column = |at: usize| lists.iter().filter_map(|row| row.get(at).cloned().map(Value::List)).collect();
        let lists = (0..self.listed.len()).map(column).collect();
        self.views(arena, 0..rows, Some(rows), lists)
    }

    /// Rows as an element: its arrays have one dimension more, of length `outer`, if that is given.
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
        // Rows whose outputs have one name are refused.
        Ok(Element::from_unique(fields))
    }

    /// The dtype of a feature.
    pub(super) fn dtype(&self, feature: usize) -> DType {
        self.cells[feature].0
    }
}

/// Runs `run` with a list of `count` slices; up to four need no memory for it.
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

/// Whether the cells of two features have one shape, which as a rule is none. Comparing slices calls the C library, and where that masks its loads,
/// those of no bytes from the place of an empty list, which is no address, take a hundred times as long as others.
#[inline]
fn are_alike(shape: &[usize], other: &[usize]) -> bool {
    shape.len() == other.len() && shape.iter().zip(other).all(|(n, other)| n == other)
}

#[cold]
fn other_kind(name: &str, got: &Array, dtype: DType, inner: &[usize]) -> Error {
    let inner: String = inner.iter().map(|dim| format!(", {dim}")).collect();
    Error::data(format!("feature {name:?} is {got:?}, in the first element it was {dtype}[len{inner}]"))
}

/// Runs `run` with the cells of every feature of row `row`.
#[inline]
pub(super) fn with_cells_of_row<R>(rows: &Ragged, row: usize, run: impl FnOnce(&[&[u8]]) -> R) -> R {
    match rows.columns() {
        [only] => run(&[only.cells(row)]),
        columns => with_slices(columns.len(), columns.iter().map(|column| column.cells(row)), run),
    }
}
