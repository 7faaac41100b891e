//! Errors, and sizes of arguments.

use std::ffi::c_void;

pub struct Error {
    code: i32,
    message: String,
}

/// An error to return: it belongs to the caller.
pub fn fail(code: i32, message: &str) -> *mut Error {
    Box::into_raw(Box::new(Error { code, message: message.to_owned() }))
}

/// What XLA says of arguments that are shorter than `need` bytes.
pub unsafe fn too_short(name: &str, size: *const usize, need: usize) -> Option<*mut Error> {
    // SAFETY: arguments begin with their size (the caller).
    let got = unsafe { *size };
    (got < need).then(|| fail(3, &format!("Unexpected {name} size: expected {need}, got {got}")))
}

/// Arguments as a reference, or an early return where they are too short.
#[macro_export]
macro_rules! checked {
    ($args:ident, $name:literal, $need:literal) => {{
        // SAFETY: arguments begin with their size.
        if let Some(refused) = unsafe { $crate::status::too_short($name, $args.cast(), $need) } {
            return refused;
        }
        // SAFETY: they are as long as they must be.
        unsafe { &mut *$args }
    }};
}

#[repr(C)]
pub struct DestroyArgs {
    size: usize,
    extensions: *const c_void,
    error: *mut Error,
}

pub unsafe extern "C" fn error_destroy(args: *mut DestroyArgs) {
    // SAFETY: it came from `fail`, and is not used again.
    drop(unsafe { Box::from_raw((*args).error) });
}

#[repr(C)]
pub struct MessageArgs {
    size: usize,
    extensions: *const c_void,
    error: *const Error,
    message: *const u8,
    message_size: usize,
}

pub unsafe extern "C" fn error_message(args: *mut MessageArgs) {
    // SAFETY: the caller's struct, and a live error.
    let args = unsafe { &mut *args };
    // SAFETY: as above.
    let error = unsafe { &*args.error };
    args.message = error.message.as_ptr();
    args.message_size = error.message.len();
}

#[repr(C)]
pub struct CodeArgs {
    size: usize,
    extensions: *const c_void,
    error: *const Error,
    code: i32,
}

pub unsafe extern "C" fn error_code(args: *mut CodeArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Error_GetCode_Args", 28);
    // SAFETY: a live error.
    args.code = unsafe { &*args.error }.code;
    std::ptr::null_mut()
}
