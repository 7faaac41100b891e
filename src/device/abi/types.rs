//! Handles, values and layouts that cross the border.

use std::ffi::c_void;

use bytemuck::Zeroable;

use crate::element::DType;

/// Objects of the plugin, seen only by address.
macro_rules! opaque {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub(in crate::device) struct $name { _private: [u8; 0] }
    )*};
}
opaque!(RawBuffer, RawClient, RawDescription, RawDevice, RawError, RawEvent, RawExecutable, RawLoaded);

/// Called once an event is there, with its error; the error then belongs to the callee.
pub(in crate::device) type Callback = unsafe extern "C" fn(error: *mut RawError, argument: *mut c_void);

/// The host's promise of memory that it gives: `PJRT_HostBufferSemantics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(in crate::device) enum Semantics {
    /// Unchanged until the event of the host's memory: always a copy.
    UntilTransferCompletes = 1,
    /// Unchanged while the buffer lives, which may then view it.
    ImmutableZeroCopy = 2,
}

/// An option of a client: `PJRT_NamedValue`.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
pub(in crate::device) struct NamedValue {
    pub(in crate::device) struct_size: usize,
    pub(in crate::device) extensions: *mut c_void,
    pub(in crate::device) name: *const u8,
    pub(in crate::device) name_len: usize,
    pub(in crate::device) kind: i32,
    /// A pointer, an integer, or the bits of a smaller number: as the kind says.
    pub(in crate::device) value: u64,
    pub(in crate::device) value_len: usize,
}

/// Kinds of [`NamedValue`].
pub(in crate::device) mod named {
    pub(in crate::device) const STRING: i32 = 0;
    pub(in crate::device) const INT64: i32 = 1;
    pub(in crate::device) const FLOAT: i32 = 3;
    pub(in crate::device) const BOOL: i32 = 4;
}

/// Source code to compile: `PJRT_Program`.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
pub(in crate::device) struct Program {
    pub(in crate::device) struct_size: usize,
    pub(in crate::device) extensions: *mut c_void,
    pub(in crate::device) code: *const u8,
    pub(in crate::device) code_len: usize,
    pub(in crate::device) format: *const u8,
    pub(in crate::device) format_len: usize,
}

/// Options of running a program: `PJRT_ExecuteOptions`, all 0 but for its size.
///
/// Plugins refuse it where it is shorter than theirs, so there is room for what later versions add.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
pub(in crate::device) struct ExecuteOptions {
    pub(in crate::device) struct_size: usize,
    pub(in crate::device) fields: [usize; 23],
}

/// The order of dimensions in memory: `PJRT_Buffer_MemoryLayout`, its tiled form, of no tiles.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
pub(in crate::device) struct MemoryLayout {
    pub(in crate::device) struct_size: usize,
    pub(in crate::device) extensions: *mut c_void,
    pub(in crate::device) tiled: Tiled,
    pub(in crate::device) kind: i32,
}

/// `PJRT_Buffer_MemoryLayout_Tiled`.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
pub(in crate::device) struct Tiled {
    pub(in crate::device) struct_size: usize,
    extensions: *mut c_void,
    pub(in crate::device) minor_to_major: *const i64,
    pub(in crate::device) minor_to_major_len: usize,
    tile_dims: *const i64,
    tile_dim_sizes: *const usize,
    tiles: usize,
}

/// The number of a [`DType`] in `PJRT_Buffer_Type`. Plugins end the process for one that they do not know.
pub(in crate::device) const fn buffer_type(dtype: DType) -> i32 {
    match dtype {
        DType::Bool => 1,
        DType::I8 => 2,
        DType::I16 => 3,
        DType::I32 => 4,
        DType::I64 => 5,
        DType::U8 => 6,
        DType::U16 => 7,
        DType::U32 => 8,
        DType::U64 => 9,
        DType::F16 => 10,
        DType::F32 => 11,
        DType::F64 => 12,
        DType::BF16 => 13,
    }
}

/// The dtype of that number.
pub(in crate::device) fn dtype_of(buffer_type: i32) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| self::buffer_type(*dtype) == buffer_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths that the header's `PJRT_STRUCT_SIZE` gives at 0.81, but for room.
    #[test]
    fn structs_are_as_long_as_in_the_header() {
        assert_eq!(size_of::<NamedValue>(), 56);
        assert_eq!(size_of::<Program>(), 48);
        assert_eq!(size_of::<Tiled>(), 56);
        assert_eq!(size_of::<MemoryLayout>(), 80);
        assert!(size_of::<ExecuteOptions>() >= 112);
    }

    #[test]
    fn dtypes_there_and_back() {
        for dtype in DType::ALL {
            assert_eq!(dtype_of(buffer_type(dtype)), Some(dtype));
        }
        assert_eq!((dtype_of(0), dtype_of(14)), (None, None));
    }
}
