//! Arrays over memory that other processes may write to: a mapped file, or a table that views a mapped file.
//!
//! Arrow locates values by offsets and views, which are checked only when an array is made. So offsets and views are
//! copied, and the copies are checked: no value ever reaches outside of its buffer, even if the memory changes later.
//! Values are not copied, and dictionary keys are checked at every use.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, BinaryViewType, ByteArrayType, ByteViewType, LargeBinaryType, LargeUtf8Type, StringViewType, Utf8Type,
};
use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, GenericByteArray, GenericByteViewArray, GenericListArray, MapArray,
    OffsetSizeTrait, RecordBatch, StructArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};

type Result<T> = std::result::Result<T, ArrowError>;

/// Copies the offsets and views of a batch, which takes 4 to 16 bytes for each text and list.
///
/// # Errors
/// If an offset or a view points outside of its buffer, or a text is not UTF-8.
pub(crate) fn batch(batch: &RecordBatch) -> Result<RecordBatch> {
    columns(batch, Values::Owned)
}

/// Like `batch`, but shares the values of dictionaries, whose offsets were copied before.
pub(crate) fn batch_of_file(batch: &RecordBatch) -> Result<RecordBatch> {
    columns(batch, Values::Shared)
}

/// Copies the offsets and views of an array.
pub(crate) fn array(array: &ArrayRef) -> Result<ArrayRef> {
    own(array, Values::Owned)
}

/// Whether to copy the offsets of dictionary values, or to share the values unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Owned,
    Shared,
}

fn columns(batch: &RecordBatch, values: Values) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| own(column, values)).collect::<Result<Vec<_>>>()?;
    let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &rows)
}

fn own(array: &ArrayRef, values: Values) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Utf8 => bytes::<Utf8Type>(array)?,
        DataType::LargeUtf8 => bytes::<LargeUtf8Type>(array)?,
        DataType::Binary => bytes::<BinaryType>(array)?,
        DataType::LargeBinary => bytes::<LargeBinaryType>(array)?,
        DataType::Utf8View => views::<StringViewType>(array)?,
        DataType::BinaryView => views::<BinaryViewType>(array)?,
        DataType::List(_) => list::<i32>(array, values)?,
        DataType::LargeList(_) => list::<i64>(array, values)?,
        DataType::FixedSizeList(..) => {
            let (field, size, items, nulls) = array.as_fixed_size_list().clone().into_parts();
            Arc::new(FixedSizeListArray::try_new(field, size, own(&items, values)?, nulls)?)
        }
        DataType::Map(..) => {
            let (field, offsets, entries, nulls, is_ordered) = array.as_map().clone().into_parts();
            let (offsets, (first, length)) = copied(&offsets, entries.len())?;
            let entries = own(&(Arc::new(entries.slice(first, length)) as ArrayRef), values)?;
            Arc::new(MapArray::try_new(field, offsets, entries.as_struct().clone(), nulls, is_ordered)?)
        }
        DataType::Struct(_) => {
            let (length, (fields, columns, nulls)) = (array.len(), array.as_struct().clone().into_parts());
            let columns = columns.iter().map(|column| own(column, values)).collect::<Result<_>>()?;
            Arc::new(StructArray::try_new_with_length(fields, columns, nulls, length)?)
        }
        DataType::Dictionary(..) if values == Values::Owned => {
            let dictionary = array.as_any_dictionary();
            dictionary.with_values(own(dictionary.values(), values)?)
        }
        _ => array.clone(),
    })
}

fn bytes<T: ByteArrayType>(array: &ArrayRef) -> Result<ArrayRef> {
    let (offsets, values, nulls) = array.as_bytes::<T>().clone().into_parts();
    let (offsets, (first, length)) = copied(&offsets, values.len())?;
    Ok(Arc::new(GenericByteArray::<T>::try_new(offsets, values.slice_with_length(first, length), nulls)?))
}

fn views<T: ByteViewType>(array: &ArrayRef) -> Result<ArrayRef> {
    let (views, buffers, nulls) = array.as_byte_view::<T>().clone().into_parts();
    Ok(Arc::new(GenericByteViewArray::<T>::try_new(views.iter().copied().collect(), buffers, nulls)?))
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef, values: Values) -> Result<ArrayRef> {
    let (field, offsets, items, nulls) = array.as_list::<O>().clone().into_parts();
    let (offsets, (first, length)) = copied(&offsets, items.len())?;
    Ok(Arc::new(GenericListArray::try_new(field, offsets, own(&items.slice(first, length), values)?, nulls)?))
}

/// Copies offsets into `room` values, shifted to begin at 0. Also returns the first value and the number of values.
fn copied<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, room: usize) -> Result<(OffsetBuffer<O>, (usize, usize))> {
    // Each offset is read only once, because the memory may change.
    let mut own: Vec<O> = offsets.iter().copied().collect();
    let (first, last) = (own.first().copied().unwrap_or_default(), own.last().copied().unwrap_or_default());
    let rises = first >= O::default() && own.windows(2).all(|pair| pair[0] <= pair[1]);
    if !rises || last.as_usize() > room {
        let text = format!("offsets from {first:?} to {last:?} that fall, or lie outside of {room} values");
        return Err(ArrowError::InvalidArgumentError(text));
    }
    own.iter_mut().for_each(|offset| *offset = *offset - first);
    Ok((OffsetBuffer::new(ScalarBuffer::from(own)), (first.as_usize(), (last - first).as_usize())))
}
