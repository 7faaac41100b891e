//! The functions in use: index in the table, name and arguments.
#![expect(unsafe_code, reason = "each struct belongs to one function of the C API")]

use std::ffi::c_void;

use bytemuck::Zeroable;

use super::types::*;

/// Arguments of a function of the API.
///
/// # Safety
/// The struct must have the layout of the function's struct in the header, and `INDEX` must be its index in the table.
pub(in crate::device) unsafe trait Args: Zeroable + Copy {
    /// Index in the function table.
    const INDEX: usize;
    /// Name of the function in the header.
    const NAME: &'static str;
    /// Sets the size field, which every struct of the API has.
    fn set_size(&mut self, size: usize);
}

macro_rules! functions {
    ($($index:literal $name:literal $args:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        #[doc = concat!("`", $name, "_Args`.")]
        #[repr(C)]
        #[derive(Clone, Copy, Zeroable)]
        pub(in crate::device) struct $args {
            pub(in crate::device) struct_size: usize,
            pub(in crate::device) extensions: *mut c_void,
            $(pub(in crate::device) $field: $type,)*
        }

        // SAFETY: the fields, their order and the index match the header.
        unsafe impl Args for $args {
            const INDEX: usize = $index;
            const NAME: &'static str = $name;
            fn set_size(&mut self, size: usize) {
                self.struct_size = size;
            }
        }
    )*};
}

functions! {
    0 "PJRT_Error_Destroy" ErrorDestroy { error: *mut RawError }
    1 "PJRT_Error_Message" ErrorMessage { error: *mut RawError, message: *const u8, message_len: usize }
    2 "PJRT_Error_GetCode" ErrorGetCode { error: *mut RawError, code: i32 }
    3 "PJRT_Plugin_Initialize" PluginInitialize {}

    5 "PJRT_Event_Destroy" EventDestroy { event: *mut RawEvent }
    6 "PJRT_Event_IsReady" EventIsReady { event: *mut RawEvent, is_ready: u8 }
    7 "PJRT_Event_Error" EventError { event: *mut RawEvent }
    8 "PJRT_Event_Await" EventAwait { event: *mut RawEvent }
    9 "PJRT_Event_OnReady" EventOnReady {
        event: *mut RawEvent,
        callback: Option<Callback>,
        argument: *mut c_void,
    }

    10 "PJRT_Client_Create" ClientCreate {
        options: *const NamedValue,
        options_len: usize,
        kv_get: *mut c_void,
        kv_get_argument: *mut c_void,
        kv_put: *mut c_void,
        kv_put_argument: *mut c_void,
        client: *mut RawClient,
        kv_try_get: *mut c_void,
        kv_try_get_argument: *mut c_void,
    }
    11 "PJRT_Client_Destroy" ClientDestroy { client: *mut RawClient }
    12 "PJRT_Client_PlatformName" ClientPlatformName { client: *mut RawClient, name: *const u8, name_len: usize }
    16 "PJRT_Client_AddressableDevices" ClientAddressableDevices {
        client: *mut RawClient,
        devices: *const *mut RawDevice,
        devices_len: usize,
    }
    20 "PJRT_Client_Compile" ClientCompile {
        client: *mut RawClient,
        program: *const Program,
        options: *const u8,
        options_len: usize,
        executable: *mut RawLoaded,
    }
    22 "PJRT_Client_BufferFromHostBuffer" BufferFromHostBuffer {
        client: *mut RawClient,
        data: *const c_void,
        buffer_type: i32,
        dims: *const i64,
        dims_len: usize,
        byte_strides: *const i64,
        byte_strides_len: usize,
        semantics: i32,
        device: *mut RawDevice,
        memory: *mut c_void,
        device_layout: *mut c_void,
        done_with_host_buffer: *mut RawEvent,
        buffer: *mut RawBuffer,
    }

    23 "PJRT_DeviceDescription_Id" DescriptionId { description: *mut RawDescription, id: i32 }
    26 "PJRT_DeviceDescription_Kind" DescriptionKind { description: *mut RawDescription, kind: *const u8, kind_len: usize }
    29 "PJRT_Device_GetDescription" DeviceGetDescription { device: *mut RawDevice, description: *mut RawDescription }

    40 "PJRT_Executable_Destroy" ExecutableDestroy { executable: *mut RawExecutable }
    44 "PJRT_Executable_NumOutputs" ExecutableNumOutputs { executable: *mut RawExecutable, outputs: usize }
    50 "PJRT_LoadedExecutable_Destroy" LoadedDestroy { executable: *mut RawLoaded }
    51 "PJRT_LoadedExecutable_GetExecutable" LoadedGetExecutable {
        loaded: *mut RawLoaded,
        executable: *mut RawExecutable,
    }
    55 "PJRT_LoadedExecutable_Execute" LoadedExecute {
        executable: *mut RawLoaded,
        options: *mut ExecuteOptions,
        arguments: *const *const *mut RawBuffer,
        devices_len: usize,
        arguments_len: usize,
        outputs: *const *mut *mut RawBuffer,
        complete_events: *mut *mut RawEvent,
        device: *mut RawDevice,
    }

    58 "PJRT_Buffer_Destroy" BufferDestroy { buffer: *mut RawBuffer }
    59 "PJRT_Buffer_ElementType" BufferElementType { buffer: *mut RawBuffer, buffer_type: i32 }
    60 "PJRT_Buffer_Dimensions" BufferDimensions { buffer: *mut RawBuffer, dims: *const i64, dims_len: usize }
    70 "PJRT_Buffer_ToHostBuffer" BufferToHostBuffer {
        buffer: *mut RawBuffer,
        layout: *const MemoryLayout,
        target: *mut c_void,
        target_len: usize,
        event: *mut RawEvent,
    }
    72 "PJRT_Buffer_ReadyEvent" BufferReadyEvent { buffer: *mut RawBuffer, event: *mut RawEvent }
    73 "PJRT_Buffer_UnsafePointer" BufferUnsafePointer { buffer: *mut RawBuffer, address: usize }

    110 "PJRT_Client_DmaMap" ClientDmaMap { client: *mut RawClient, data: *mut c_void, len: usize }
    111 "PJRT_Client_DmaUnmap" ClientDmaUnmap { client: *mut RawClient, data: *mut c_void }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes by the header's `PJRT_STRUCT_SIZE` at 0.81, rounded up to whole words.
    #[test]
    fn arguments_are_as_long_as_in_the_header() {
        assert_eq!(size_of::<EventIsReady>(), 32);
        assert_eq!(size_of::<EventOnReady>(), 40);
        assert_eq!(size_of::<ClientCreate>(), 88);
        assert_eq!(size_of::<BufferFromHostBuffer>(), 120);
        assert_eq!(size_of::<LoadedExecute>(), 80);
        assert_eq!(size_of::<BufferToHostBuffer>(), 56);
    }
}
