//! Columns of arrays whose shape is in the schema, by Arrow's extension type or by the extension types of Hugging Face.
//!
//! Sources: <https://arrow.apache.org/docs/format/CanonicalExtensions.html#fixed-shape-tensor>; `Array2D` to `Array5D`
//! as written by `datasets` 5.2.0.

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{DataType, Field};
use serde::Deserialize;

use super::types::EXTENSION;
use super::value::{Memory, numbers};
use crate::element::Array;

/// Metadata key for the parameters of a field's extension type.
const METADATA: &str = "ARROW:extension:metadata";

/// Dimensions of the arrays of a column. The first dimension may be open (`None`).
pub(super) type Shape = Vec<Option<usize>>;

/// Returns row `row` as an array of the shape in the field; `None` if the field has no shape or the row does not fit.
pub(super) fn tensor(field: &Field, array: &dyn arrow_array::Array, row: usize, memory: Memory) -> Option<Array> {
    let mut shape = shape(field)?;
    let (item, items) = match array.data_type() {
        DataType::List(item) => (item, array.as_list::<i32>().value(row)),
        DataType::LargeList(item) => (item, array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(item, _) => (item, array.as_fixed_size_list().value(row)),
        _ => return None,
    };
    let (item, items) = innermost(item, items, shape.get(1..)?)?;
    let (dtype, data) = numbers(item, &items, memory).filter(|_| items.null_count() == 0)?;
    let known = shape.iter().flatten().try_fold(dtype.size(), |n, &size| n.checked_mul(size))?;
    if let Some(open) = shape.iter_mut().find(|size| size.is_none()) {
        *open = Some(data.len().checked_div(known).unwrap_or(0));
    }
    Array::new(dtype, &shape.into_iter().collect::<Option<Vec<_>>>()?, data).ok()
}

/// Returns the numbers inside of nested lists that all have these lengths.
fn innermost<'a>(item: &'a Field, items: ArrayRef, lengths: &[Option<usize>]) -> Option<(&'a Field, ArrayRef)> {
    let (DataType::List(inner), Some((length, rest))) = (item.data_type(), lengths.split_first()) else {
        return Some((item, items));
    };
    let lists = items.as_list::<i32>();
    let offsets = lists.value_offsets();
    let fits = |pair: &[i32]| usize::try_from(pair[1] - pair[0]).ok() == *length;
    if lists.null_count() > 0 || !offsets.windows(2).all(fits) {
        return None;
    }
    let (begin, end) = (*offsets.first()?, *offsets.last()?);
    let values = lists.values().slice(usize::try_from(begin).ok()?, usize::try_from(end - begin).ok()?);
    // The field of the items is borrowed from the column's field.
    innermost(inner, values, rest)
}

/// Returns the shape from a field's metadata, if present.
pub(super) fn shape(field: &Field) -> Option<Shape> {
    let metadata = field.metadata();
    let name = metadata.get(EXTENSION).filter(|_| !metadata.is_empty())?;
    let told = metadata.get(METADATA)?;
    if name == "arrow.fixed_shape_tensor" {
        #[derive(Deserialize)]
        struct Tensor {
            shape: Shape,
            permutation: Option<Vec<usize>>,
        }
        let Tensor { shape, permutation } = serde_json::from_str(told).ok()?;
        return Some(shape).filter(|_| permutation.is_none_or(|order| order.is_sorted()));
    }
    let number = name.strip_prefix("datasets.features.features.Array")?;
    number.strip_suffix("DExtensionType")?;
    let (shape, _): (Shape, String) = serde_json::from_str(told).ok()?;
    Some(shape)
}
