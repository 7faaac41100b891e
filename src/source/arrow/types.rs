//! Number types of elements, and the Arrow types for them.

use arrow_schema::{DataType, Field};

use crate::element::DType;

/// Extension type of a `bfloat16` column, which Arrow does not have: a column of `uint16` holds the bits.
pub(crate) const BFLOAT16: &str = "gristmill.bfloat16";

/// Metadata key for the name of a field's extension type.
pub(crate) const EXTENSION: &str = "ARROW:extension:name";

/// Returns true if a field's `uint16` values are `bfloat16`.
pub(crate) fn is_bfloat16(field: &Field) -> bool {
    let metadata = field.metadata();
    !metadata.is_empty() && metadata.get(EXTENSION).is_some_and(|name| name == BFLOAT16)
}

/// Returns the Arrow type that stores numbers of this type.
pub(crate) fn data_type(dtype: DType) -> DataType {
    match dtype {
        DType::Bool => DataType::Boolean,
        DType::U8 => DataType::UInt8,
        DType::I8 => DataType::Int8,
        DType::U16 | DType::BF16 => DataType::UInt16,
        DType::I16 => DataType::Int16,
        DType::F16 => DataType::Float16,
        DType::U32 => DataType::UInt32,
        DType::I32 => DataType::Int32,
        DType::F32 => DataType::Float32,
        DType::U64 => DataType::UInt64,
        DType::I64 => DataType::Int64,
        DType::F64 => DataType::Float64,
    }
}
