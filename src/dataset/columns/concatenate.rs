//! `concatenate_columns`: the cells of several columns of an element as one column, with a mask or labels for training.

use super::NamedFn;
use crate::dataset::entry::prelude::*;
use crate::element::{Array, DType, Value, cast};
use crate::error::Error;

/// Label that losses ignore: the default `ignore_index` of PyTorch.
const IGNORED: i64 = -100;

pub(super) const ENTRY: StageEntry = StageEntry::each(
    "concatenate_columns",
    "Concatenates columns of an element, such as a prompt and its completion, as one column.\n\n\
     The concatenated column replaces the columns. With `mask` or `labels`, the loss can be limited to the columns in \
     `trained`.\n\n\
     DataError: A column is not an array, or differs from the first column in its dtype or the shape of its cells.",
    &Of(concatenate_columns),
)
.new_columns();

arguments! {
    struct ConcatenateColumnsArgs(columns) {
        /// Columns to concatenate, in this order: arrays of one dtype.
        columns: Given<Vec<String>>,
        /// Name of the concatenated column.
        into: String = "tokens",
        /// Name of a column to add, which contains 1 for each cell of a column in `trained`, and 0 for other cells (`int32`).
        mask: Option<String>,
        /// Name of a column to add, which contains each cell of a column in `trained`, and -100 for other cells and for the first cell (`int64`).
        labels: Option<String>,
        /// Columns that are trained on. By default, the last of `columns`.
        trained: Option<Vec<String>>,
    }
}

/// Columns to concatenate, and columns to add.
struct Concatenation {
    /// Each column, and whether it is trained on.
    columns: Vec<(String, bool)>,
    into: String,
    mask: Option<String>,
    labels: Option<String>,
}

fn concatenate_columns(args: ConcatenateColumnsArgs, at: &Site<'_>) -> Result<NamedFn<Element>> {
    let ConcatenateColumnsArgs { columns, into, mask, labels, trained } = args;
    let names = at.columns_in(&columns)?;
    if names.is_empty() {
        return Err(columns.error("names no column"));
    }
    let added = [Some(&into), mask.as_ref(), labels.as_ref()];
    let added: Vec<&String> = added.into_iter().flatten().collect();
    if let Some(twice) = added.iter().enumerate().find(|(at, name)| added[..*at].contains(name)) {
        return Err(at.error(format!("`{}` is the name of two new columns", twice.1)));
    }
    if let Some(name) = trained.iter().flatten().find(|name| !names.contains(name)) {
        return Err(at.error(format!("`trained` names `{name}`, which is not in `columns`")));
    }
    if trained.is_some() && mask.is_none() && labels.is_none() {
        return Err(at.error("`trained` requires `mask` or `labels`"));
    }
    let trained = trained.unwrap_or_else(|| names.last().cloned().into_iter().collect());
    let columns = names.into_iter().map(|name| (trained.contains(&name), name)).map(|(is, name)| (name, is)).collect();
    let concatenation = Concatenation { columns, into, mask, labels };
    Ok(NamedFn::map("concatenate_columns", concatenation.params(), move |element| concatenation.make(element)))
}

impl Concatenation {
    fn params(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        let mut text = format!("{}, into={}", names.join("+"), self.into);
        for (name, column) in [("mask", &self.mask), ("labels", &self.labels)] {
            if let Some(column) = column {
                text += &format!(", {name}={column}");
            }
        }
        if self.mask.is_some() || self.labels.is_some() {
            let trained: Vec<&str> = self.columns.iter().filter(|(_, is)| *is).map(|(name, _)| name.as_str()).collect();
            text += &format!(", trained={}", trained.join("+"));
        }
        text
    }

    fn make(&self, mut element: Element) -> Result<Element> {
        let arrays = self.columns.iter().map(|(name, _)| element.array(name)).collect::<Result<Vec<_>>>()?;
        let ((dtype, inner), cells) = alike(&self.columns, &arrays)?;
        let shape = [&[cells], inner].concat();
        let mut whole = Array::builder(dtype, &shape)?;
        let mut rest = whole.bytes_mut();
        for array in &arrays {
            let place = rest.split_off_mut(..array.bytes().len()).unwrap_or_default();
            place.copy_from_slice(array.bytes());
        }
        let runs = || self.columns.iter().zip(&arrays).map(|((_, is_trained), array)| (array, *is_trained));
        let mask = self.mask.as_ref().map(|name| mask(cells, runs()).map(|array| (name, array))).transpose()?;
        let labels = self.labels.as_ref().map(|name| labels(&shape, runs()).map(|array| (name, array))).transpose()?;
        let whole = whole.freeze();
        self.columns.iter().for_each(|(name, _)| drop(element.remove(name)));
        for (name, array) in [Some((&self.into, whole)), mask, labels].into_iter().flatten() {
            if element.insert(name, Value::Array(array)).is_some() {
                return Err(
                    Error::data(format!("there is a column `{name}` already")).help("rename it before this stage")
                );
            }
        }
        Ok(element)
    }
}

/// Returns the dtype and the inner shape of all arrays, and the sum of their lengths.
///
/// # Errors
/// `Data` if an array is a scalar or differs from the first array.
fn alike<'a>(columns: &[(String, bool)], arrays: &[&'a Array]) -> Result<((DType, &'a [usize]), usize)> {
    let mut cells = 0usize;
    let mut kind: Option<(DType, &[usize])> = None;
    for ((name, _), array) in columns.iter().zip(arrays) {
        let Some((len, inner)) = array.shape().split_first() else {
            return Err(Error::data(format!("column `{name}` is {array:?}, a single number")));
        };
        let (dtype, shape) = *kind.get_or_insert((array.dtype(), inner));
        if (array.dtype(), inner) != (dtype, shape) {
            let (name_of_first, first) = (&columns[0].0, arrays[0]);
            return Err(Error::data(format!(
                "column `{name}` is {array:?}, but column `{name_of_first}` is {first:?}"
            )));
        }
        cells = cells.saturating_add(*len);
    }
    kind.map(|kind| (kind, cells)).ok_or_else(|| Error::data("there are no columns to concatenate"))
}

/// Returns 1 for each cell of an array that is trained on, 0 for each cell of another array.
fn mask<'a>(cells: usize, arrays: impl Iterator<Item = (&'a &'a Array, bool)>) -> Result<Array> {
    let mut mask = Array::builder(DType::I32, &[cells])?;
    let mut rest = mask.as_mut_slice::<i32>();
    for (array, is_trained) in arrays {
        rest.split_off_mut(..array.shape()[0]).unwrap_or_default().fill(is_trained.into());
    }
    Ok(mask.freeze())
}

/// Returns the cells of arrays that are trained on as labels.
///
/// The first cell has no label: in a packed row, its label would be predicted from the sequence before it.
///
/// # Errors
/// `Data` if the cells are not whole numbers that fit in `i64`.
fn labels<'a>(shape: &[usize], arrays: impl Iterator<Item = (&'a &'a Array, bool)>) -> Result<Array> {
    let mut labels = Array::builder(DType::I64, shape)?;
    let all = labels.as_mut_slice::<i64>();
    all.fill(IGNORED);
    let first = shape[1..].iter().product::<usize>().min(all.len());
    let mut rest = &mut *all;
    for (array, is_trained) in arrays {
        let place = rest.split_off_mut(..array.size()).unwrap_or_default();
        match array.dtype() {
            _ if !is_trained => {}
            DType::I32 => place.iter_mut().zip(array.as_slice::<i32>()?).for_each(|(to, from)| *to = (*from).into()),
            dtype => {
                let whole = dtype.whole_reader().and_then(|_| cast(array, DType::I64));
                let whole = whole
                    .ok_or_else(|| Error::data(format!("{array:?} cannot be labels: its cells are not integers")))?;
                place.copy_from_slice(whole.as_slice()?);
            }
        }
    }
    all[..first].fill(IGNORED);
    Ok(labels.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(mask: bool, labels: bool) -> Concatenation {
        let name = |is: bool, name: &str| is.then(|| name.to_owned());
        Concatenation {
            columns: vec![("a".into(), false), ("b".into(), true), ("c".into(), false)],
            into: "tokens".into(),
            mask: name(mask, "mask"),
            labels: name(labels, "labels"),
        }
    }

    fn element() -> Element {
        Element::new()
            .with("a", Array::from_vec(vec![1i32, 2]))
            .with("x", "kept")
            .with("c", Array::from_vec(Vec::<i32>::new()))
            .with("b", Array::from_vec(vec![3i32, 4, 5]))
    }

    #[test]
    fn cells_are_in_the_order_of_the_columns() {
        let out = turns(true, true).make(element()).unwrap();
        let names: Vec<&str> = out.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["x", "tokens", "mask", "labels"]);
        assert_eq!(out.array("tokens").unwrap().as_slice::<i32>().unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(out.array("mask").unwrap().as_slice::<i32>().unwrap(), [0, 0, 1, 1, 1]);
        assert_eq!(out.array("labels").unwrap().as_slice::<i64>().unwrap(), [-100, -100, 3, 4, 5]);
        assert_eq!(turns(false, false).make(element()).unwrap().len(), 2);
    }

    #[test]
    fn the_first_cell_has_no_label() {
        let concatenation = Concatenation { columns: vec![("a".into(), true)], ..turns(true, true) };
        for cells in [Array::from_vec(vec![7i32, 8]), Array::from_vec(vec![7u16, 8]), Array::from_vec(vec![7i64, 8])] {
            let out = concatenation.make(Element::new().with("a", cells)).unwrap();
            assert_eq!(out.array("labels").unwrap().as_slice::<i64>().unwrap(), [-100, 8]);
            assert_eq!(out.array("mask").unwrap().as_slice::<i32>().unwrap(), [1, 1]);
        }
        let out = concatenation.make(Element::new().with("a", Array::from_vec(Vec::<i32>::new()))).unwrap();
        assert_eq!(out.array("labels").unwrap().shape(), [0]);
    }

    #[test]
    fn columns_that_differ_are_refused() {
        let wrong = |name: &str, value: Value| {
            let mut element = element();
            element.insert(name, value);
            turns(true, true).make(element).unwrap_err().message().to_owned()
        };
        let array = |array: Array| Value::Array(array);
        assert_eq!(
            wrong("b", array(Array::from_vec(vec![1i64]))),
            "column `b` is int64[1], but column `a` is int32[2]"
        );
        assert_eq!(wrong("b", array(Array::scalar(1i32))), "column `b` is int32[], a single number");
        assert_eq!(wrong("mask", array(Array::scalar(1i32))), "there is a column `mask` already");
        assert!(wrong("b", "text".into()).contains("text"));
        let mut floats = element();
        for name in ["a", "b", "c"] {
            floats.insert(name, Array::from_vec(vec![0.5f32]));
        }
        assert_eq!(turns(true, false).make(floats.clone()).unwrap().array("tokens").unwrap().shape(), [3]);
        let error = turns(false, true).make(floats).unwrap_err();
        assert_eq!(error.message(), "float32[1] cannot be labels: its cells are not integers");
    }
}
