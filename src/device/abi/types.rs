//! Handles, values and layouts shared with the plugin.

use std::ffi::c_void;

use bytemuck::Zeroable;

use crate::element::DType;

/// Declares opaque objects of the plugin, used only by address.
macro_rules! opaque {
    ($($name:ident),*) => {$(
        #[repr(C)]
        pub(in crate::device) struct $name { _private: [u8; 0] }
    )*};
}
opaque!(RawBuffer, RawClient, RawDescription, RawDevice, RawError, RawEvent, RawExecutable, RawLoaded);

/// A function that the plugin calls when an event is ready, with its error. The callee owns the error.
pub(in crate::device) type Callback = unsafe extern "C" fn(error: *mut RawError, argument: *mut c_void);

/// The host's guarantee about memory passed to the plugin: `PJRT_HostBufferSemantics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(in crate::device) enum Semantics {
    /// The memory stays unchanged until the transfer completes. The plugin always copies.
    UntilTransferCompletes = 1,
    /// The memory stays unchanged while the buffer lives. The buffer may be a view.
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
    /// A pointer, an integer, or the bits of a smaller number, depending on `kind`.
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

/// Options for a run of a program: `PJRT_ExecuteOptions`, all 0 except its size.
///
/// Plugins refuse a struct that is shorter than their own, so the struct has room for the fields of later versions.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
pub(in crate::device) struct ExecuteOptions {
    pub(in crate::device) struct_size: usize,
    pub(in crate::device) fields: [usize; 23],
}

/// The order of dimensions in memory: `PJRT_Buffer_MemoryLayout` in its tiled form, without tiles.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
pub(in crate::device) struct MemoryLayout {
    pub(in crate::device) struct_size: usize,
    pub(in crate::device) extensions: *mut c_void,
    pub(in crate::device) tiled: Tiled,
    pub(in crate::device) kind: i32,
}

/// A tiled layout: `PJRT_Buffer_MemoryLayout_Tiled`.
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

/// Returns the number of a [`DType`] in `PJRT_Buffer_Type`. Plugins abort the process on an unknown number.
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

/// Returns the dtype of a number in `PJRT_Buffer_Type`.
pub(in crate::device) fn dtype_of(buffer_type: i32) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| self::buffer_type(*dtype) == buffer_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes by the header's `PJRT_STRUCT_SIZE` at 0.81, without the added room.
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
