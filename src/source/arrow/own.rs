//! Arrays over memory that others may write to: a file that is mapped, a table that views one.
//!
//! Arrow's arrays find values by offsets and views, which are checked when an array is made and never again. So those are copied, and the
//! copies are checked: whatever happens to the memory afterwards, no value lies outside of its buffer. Values stay where they are, and keys
//! of dictionaries are checked whenever one is used.

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

/// The batch with offsets and views of its own. They take 4 to 16 bytes of memory for each text and list.
///
/// # Errors
/// If one of them points outside of its buffer, or a text is not UTF-8.
#[cfg(feature = "python")]
pub(crate) fn batch(batch: &RecordBatch) -> Result<RecordBatch> {
    columns(batch, Values::Owned)
}

/// The same, where the values of dictionaries have offsets of their own already: batches share them.
#[cfg(feature = "arrow")]
pub(crate) fn batch_of_file(batch: &RecordBatch) -> Result<RecordBatch> {
    columns(batch, Values::Shared)
}

/// An array with offsets and views of its own.
#[cfg(feature = "arrow")]
pub(crate) fn array(array: &ArrayRef) -> Result<ArrayRef> {
    own(array, Values::Owned)
}

/// What is done with the values of dictionaries.
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

/// A copy of offsets into `room` values, and the range of the values that they are into: the first and how many. The copy begins at 0.
fn copied<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, room: usize) -> Result<(OffsetBuffer<O>, (usize, usize))> {
    // Each is read once.
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
