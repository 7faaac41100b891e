//! From elements to the cells the kernels take, and from written rows to elements.

use std::sync::Arc;

use super::rows::RowSpec;
use crate::element::{Array, Buffer, DType, Element, Name, Value};
use crate::error::{Error, Result};
use crate::pack::arena::{Arena, Part};
use crate::pack::feature::Feature;

const PARTS: [Part; 6] =
    [Part::Values, Part::SegmentIds, Part::Positions, Part::Targets, Part::TargetSegmentIds, Part::TargetPositions];

/// The columns of a stage, once the first element has shown their dtypes.
#[derive(Debug)]
pub(super) struct Columns {
    names: Vec<Name>,
    listed: Vec<Name>,
    /// Dtype and inner dimensions of each feature.
    cells: Vec<(DType, Vec<usize>)>,
    outputs: Vec<Output>,
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

impl Columns {
    /// Learns dtypes and inner dimensions from the first element.
    pub(super) fn learn(rows: &RowSpec, first: &Element) -> Result<(Self, Vec<Feature>)> {
        let names: Vec<Name> = rows.features().map(Name::new).collect();
        let mut cells = Vec::with_capacity(names.len());
        for name in &names {
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
        let listed = rows.listed().cloned().collect();
        Ok((Self { names, listed, cells, outputs }, features))
    }

    /// Runs `run` with the cells of every feature of `element`; up to four features need no memory for the list.
    #[inline]
    pub(super) fn with_cells<R>(&self, element: &Element, run: impl FnOnce(&[&[u8]]) -> Result<R>) -> Result<R> {
        let (mut few, mut many) = ([[].as_slice(); 4], Vec::new());
        let cells = match few.get_mut(..self.names.len()) {
            Some(few) => few,
            None => {
                many.resize(self.names.len(), [].as_slice());
                many.as_mut_slice()
            }
        };
        for ((place, name), (dtype, inner)) in cells.iter_mut().zip(&self.names).zip(&self.cells) {
            let array = element.array(name)?;
            if array.dtype() != *dtype || array.shape().get(1..).unwrap_or_default() != inner.as_slice() {
                return Err(other_kind(name, array, *dtype, inner));
            }
            *place = array.bytes();
        }
        run(cells)
    }

    /// The number of cells of every feature of `element`, into `lens`.
    pub(super) fn lens(&self, element: &Element, lens: &mut Vec<usize>) -> Result<()> {
        lens.clear();
        for name in &self.names {
            lens.push(element.array(name)?.shape().first().copied().unwrap_or(1));
        }
        Ok(())
    }

    /// The values of the listed meta features of `element`, each to its list.
    pub(super) fn list(&self, element: &Element, lists: &mut Vec<Vec<Value>>) -> Result<()> {
        lists.resize(self.listed.len(), Vec::new());
        for (name, list) in self.listed.iter().zip(lists) {
            list.push(element.field(name)?.clone());
        }
        Ok(())
    }

    /// Whether meta features are listed at all.
    pub(super) fn lists(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Row `row` as an element that shares its memory.
    pub(super) fn row(&self, arena: &Arc<Arena>, row: usize, lists: Vec<Vec<Value>>) -> Result<Element> {
        let memory = Buffer::from_owner(arena.clone());
        let mut element = Element::with_capacity(self.outputs.len() + self.listed.len());
        for Output { name, feature, part, dtype, shape } in &self.outputs {
            let range = arena.range(*feature, *part, row..row + 1);
            let bytes = memory.slice(range).ok_or_else(|| Error::data(format!("row {row} is not in the group")))?;
            element.insert(name, Array::new(*dtype, shape, bytes)?);
        }
        for (name, list) in self.listed.iter().zip(lists) {
            element.insert(name, Value::List(list));
        }
        Ok(element)
    }

    /// The dtype of a feature.
    pub(super) fn dtype(&self, feature: usize) -> DType {
        self.cells[feature].0
    }
}

#[cold]
fn other_kind(name: &str, got: &Array, dtype: DType, inner: &[usize]) -> Error {
    let inner: String = inner.iter().map(|dim| format!(", {dim}")).collect();
    Error::data(format!("feature {name:?} is {got:?}, in the first element it was {dtype}[len{inner}]"))
}
