//! Columns of arrays whose shape stands in the schema: by Arrow's own extension type, and by those of Hugging Face.
//!
//! Sources: <https://arrow.apache.org/docs/format/CanonicalExtensions.html#fixed-shape-tensor>; `Array2D` to `Array5D` as `datasets`
//! 5.2.0 writes them.

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{DataType, Field};
use serde::Deserialize;

use super::types::EXTENSION;
use super::value::{Memory, numbers};
use crate::element::Array;

/// Key under which a field has what its extension type says of itself.
const METADATA: &str = "ARROW:extension:metadata";

/// The dimensions of the arrays of a column; the first may be open.
pub(super) type Shape = Vec<Option<usize>>;

/// Row `row` of a column whose rows are arrays of a shape that stands in its field, if it is such a column.
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

/// The numbers in lists of lists, all of which are of these lengths.
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
    // Its field lives as long as that of the column.
    innermost(inner, values, rest)
}

/// The shape that stands in a field, if one does.
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
