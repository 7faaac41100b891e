//! Rows of a batch, along the leading dimension that all leaves share.

use std::ops::Range;

use super::{Array, Element, ElementSpec, Value};
use crate::error::{Error, Result};

impl Element {
    /// Returns the number of rows: the leading dimension of all arrays and the length of all lists.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if leaves differ in length, if a leaf has no rows, or if there are no
    /// leaves.
    pub fn num_rows(&self) -> Result<usize> {
        let mut first: Option<(&str, usize)> = None;
        each_leaf(self, &mut |name, rows| match (first, rows) {
            (_, None) => Err(Error::data(format!("field {name:?} has no leading dimension"))),
            (None, Some(rows)) => {
                first = Some((name, rows));
                Ok(())
            }
            (Some((other, expected)), Some(rows)) if rows != expected => {
                Err(Error::data(format!("field {other:?} has {expected} rows and {name:?} has {rows}")))
            }
            _ => Ok(()),
        })?;
        first.map(|(_, rows)| rows).ok_or_else(|| Error::data("an element without fields has no rows"))
    }

    /// Returns rows `range` of the batch. Arrays share their memory with the batch.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a leaf lacks any of these rows.
    pub fn rows(&self, range: Range<usize>) -> Result<Self> {
        let mut rows = Self::with_capacity(self.len());
        for (name, value) in self.iter() {
            let part = match value {
                Value::Array(array) => array.rows(range.clone()).map(Value::Array),
                Value::List(list) => list.get(range.clone()).map(|part| Value::List(part.to_vec())),
                Value::Tree(tree) => Some(Value::Tree(tree.rows(range.clone())?)),
                _ => None,
            };
            let part = part.ok_or_else(|| Error::data(format!("field {name:?}, {value:?}, has no rows {range:?}")))?;
            rows.fields.push((name.into(), part));
        }
        Ok(rows)
    }

    /// Copies the rows with these indices, in this order.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a leaf lacks any of these rows.
    pub fn rows_at(&self, rows: &[usize]) -> Result<Self> {
        let mut taken = Self::with_capacity(self.len());
        for (name, value) in self.iter() {
            let part = match value {
                Value::Array(array) => array.rows_at(rows).map(Value::Array),
                Value::List(list) => {
                    rows.iter().map(|&row| list.get(row).cloned()).collect::<Option<_>>().map(Value::List)
                }
                Value::Tree(tree) => Some(Value::Tree(tree.rows_at(rows)?)),
                _ => None,
            };
            let part = part.ok_or_else(|| Error::data(format!("field {name:?}, {value:?}, has no rows {rows:?}")))?;
            taken.fields.push((name.into(), part));
        }
        Ok(taken)
    }

    /// Returns row `row` of the batch: arrays lose their leading dimension, and lists yield an item.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a leaf lacks this row.
    pub fn row(&self, row: usize) -> Result<Self> {
        let mut element = Self::with_capacity(self.len());
        for (name, value) in self.iter() {
            let part = match value {
                Value::Array(array) => array.row(row).map(Value::Array),
                Value::List(items) => items.get(row).cloned(),
                Value::Tree(tree) => Some(Value::Tree(tree.row(row)?)),
                _ => None,
            };
            let part = part.ok_or_else(|| Error::data(format!("field {name:?} has no row {row}")))?;
            element.fields.push((name.into(), part));
        }
        Ok(element)
    }

    /// Copies the rows of all `parts`, in order, into a single batch.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if `parts` is empty, or if parts differ in anything but their number of
    /// rows.
    pub fn concat_rows(parts: &[Self]) -> Result<Self> {
        let first = parts.first().ok_or_else(|| Error::data("no batches to concatenate"))?;
        let mut whole = Self::with_capacity(first.len());
        for (at, (name, value)) in first.iter().enumerate() {
            let column: Option<Vec<&Value>> = parts.iter().map(|part| part.column(at, name, first.len())).collect();
            let joined = column.and_then(|column| concat_values(value, &column)).ok_or_else(|| differ(parts))??;
            whole.fields.push((name.into(), joined));
        }
        Ok(whole)
    }

    fn column(&self, at: usize, name: &str, width: usize) -> Option<&Value> {
        let (own, value) = self.fields.get(at)?;
        (own == name && self.len() == width).then_some(value)
    }
}

/// Calls `visit` with the name and the number of rows of every leaf.
fn each_leaf<'a>(element: &'a Element, visit: &mut dyn FnMut(&'a str, Option<usize>) -> Result<()>) -> Result<()> {
    for (name, value) in element.iter() {
        match value {
            Value::Tree(tree) => each_leaf(tree, visit)?,
            Value::Array(array) => visit(name, array.shape().first().copied())?,
            Value::List(list) => visit(name, Some(list.len()))?,
            _ => visit(name, None)?,
        }
    }
    Ok(())
}

/// Concatenates the rows of a field; `None` if the values differ in structure.
fn concat_values(first: &Value, column: &[&Value]) -> Option<Result<Value>> {
    match first {
        Value::Array(_) => {
            let arrays: Option<Vec<_>> =
                column.iter().map(|v| if let Value::Array(a) = v { Some(a) } else { None }).collect();
            concat_arrays(&arrays?).map(|r| r.map(Value::Array))
        }
        Value::List(_) => {
            let lists: Option<Vec<_>> =
                column.iter().map(|v| if let Value::List(l) = v { Some(l) } else { None }).collect();
            Some(Ok(Value::List(lists?.into_iter().flatten().cloned().collect())))
        }
        Value::Tree(_) => {
            let trees: Option<Vec<_>> =
                column.iter().map(|v| if let Value::Tree(t) = v { Some(t.clone()) } else { None }).collect();
            Some(Element::concat_rows(&trees?).map(Value::Tree))
        }
        _ => None,
    }
}

fn concat_arrays(arrays: &[&Array]) -> Option<Result<Array>> {
    let first = arrays.first()?;
    let (_, inner) = first.shape().split_first()?;
    let alike =
        |a: &&&Array| a.dtype() == first.dtype() && a.shape().split_first().is_some_and(|(_, dims)| dims == inner);
    if !arrays.iter().all(|a| alike(&a)) {
        return None;
    }
    let mut shape = first.shape().to_vec();
    shape[0] = arrays.iter().map(|a| a.shape()[0]).sum();
    Some(Array::builder(first.dtype(), &shape).map(|mut out| {
        let mut rest = out.bytes_mut();
        for array in arrays {
            let (head, tail) = rest.split_at_mut(array.bytes().len());
            head.copy_from_slice(array.bytes());
            rest = tail;
        }
        out.freeze()
    }))
}

#[cold]
fn differ(parts: &[Element]) -> Error {
    let specs: Vec<_> = parts.iter().map(ElementSpec::of).collect();
    let other = specs.iter().find_map(|spec| specs[0].first_difference(spec));
    Error::data(format!("cannot join batches that differ: {}", other.unwrap_or_else(|| "their structure".into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(range: Range<i32>) -> Element {
        let texts = Value::List(range.clone().map(|i| Value::from(&*i.to_string())).collect());
        let x = Array::from_vec(range.collect());
        Element::new().with("x", x).with("in", Element::new().with("t", texts))
    }

    #[test]
    fn rows_are_views_and_join_again() {
        let whole = batch(0..7);
        assert_eq!(whole.num_rows().unwrap(), 7);
        let (a, b) = (whole.rows(0..3).unwrap(), whole.rows(3..7).unwrap());
        assert_eq!(b.array("x").unwrap().bytes().as_ptr(), whole.array("x").unwrap().bytes()[12..].as_ptr());
        assert_eq!(Element::concat_rows(&[a, b]).unwrap(), whole);
        assert!(whole.rows(3..8).is_err());
    }

    #[test]
    fn what_has_no_rows_or_other_rows_is_an_error() {
        let message = |e: Element| e.num_rows().unwrap_err().message().to_owned();
        assert_eq!(message(Element::new()), "an element without fields has no rows");
        assert_eq!(message(batch(0..2).with("y", Array::scalar(1u8))), "field \"y\" has no leading dimension");
        let ragged = batch(0..2).with("y", Array::from_vec(vec![0u8; 3]));
        assert_eq!(message(ragged), "field \"x\" has 2 rows and \"y\" has 3");
        let wide = Array::builder(crate::DType::I32, &[2, 5]).unwrap().freeze();
        let error = Element::concat_rows(&[batch(0..2), batch(0..2).with("x", wide)]).unwrap_err();
        assert!(error.message().contains("x is int32[2] in one and x is int32[2, 5]"), "{error}");
    }
}
