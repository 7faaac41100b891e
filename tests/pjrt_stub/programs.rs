//! Programs, which say of themselves what they return, true or not.
//!
//! Each line of a program is a result: its type and its dimensions, such as `11 2 3`, or `null`. A first line `outputs N` has
//! the program say that it has so many.

use std::ffi::c_void;
use std::sync::Arc;

use crate::buffers::{Buffer, result};
use crate::checked;
use crate::client::{Client, Shared};
use crate::status::{Error, fail};

pub struct Loaded {
    outputs: usize,
    results: Vec<Option<(i32, Vec<i64>)>>,
    shared: Arc<Shared>,
}

#[repr(C)]
struct Program {
    size: usize,
    extensions: *const c_void,
    code: *const u8,
    code_size: usize,
}

#[repr(C)]
pub struct CompileArgs {
    size: usize,
    extensions: *const c_void,
    client: *mut Client,
    program: *const Program,
    options: *const u8,
    options_size: usize,
    executable: *mut Loaded,
}

pub unsafe extern "C" fn compile(args: *mut CompileArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Client_Compile_Args", 56);
    // SAFETY: a program whose code is as long as it says.
    let code = unsafe { std::slice::from_raw_parts((*args.program).code, (*args.program).code_size) };
    // SAFETY: a live client.
    let shared = &unsafe { &*args.client }.shared;
    let loaded = std::str::from_utf8(code).ok().and_then(|code| read(code, shared));
    let Some(loaded) = loaded else { return fail(3, "no program of this plugin") };
    args.executable = Box::into_raw(Box::new(loaded));
    std::ptr::null_mut()
}

fn read(code: &str, shared: &Arc<Shared>) -> Option<Loaded> {
    let (said, code) = match code.strip_prefix("outputs ") {
        Some(code) => code.split_once('\n').map(|(said, code)| (said.parse().ok(), code))?,
        None => (None, code),
    };
    let result = |line: &str| {
        if line == "null" {
            return Some(None);
        }
        let numbers: Option<Vec<i64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        numbers.and_then(|numbers| Some(Some((*numbers.first()? as i32, numbers[1..].to_vec()))))
    };
    let results: Vec<_> = code.lines().map(result).collect::<Option<_>>()?;
    Some(Loaded { outputs: said.unwrap_or(results.len()), results, shared: shared.clone() })
}

#[repr(C)]
pub struct Args {
    size: usize,
    extensions: *const c_void,
    executable: *mut Loaded,
}

pub unsafe extern "C" fn destroy(args: *mut Args) -> *mut Error {
    let args = checked!(args, "PJRT_LoadedExecutable_Destroy_Args", 24);
    // SAFETY: it came from `compile`, and is not used again.
    drop(unsafe { Box::from_raw(args.executable) });
    std::ptr::null_mut()
}

/// The program itself stands for what it is loaded from.
pub unsafe extern "C" fn executable_destroy(args: *mut Args) -> *mut Error {
    let _ = checked!(args, "PJRT_Executable_Destroy_Args", 24);
    std::ptr::null_mut()
}

#[repr(C)]
pub struct ExecutableArgs {
    size: usize,
    extensions: *const c_void,
    loaded: *mut Loaded,
    executable: *mut Loaded,
}

pub unsafe extern "C" fn executable(args: *mut ExecutableArgs) -> *mut Error {
    let args = checked!(args, "PJRT_LoadedExecutable_GetExecutable_Args", 32);
    args.executable = args.loaded;
    std::ptr::null_mut()
}

#[repr(C)]
pub struct OutputsArgs {
    size: usize,
    extensions: *const c_void,
    executable: *mut Loaded,
    outputs: usize,
}

pub unsafe extern "C" fn num_outputs(args: *mut OutputsArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Executable_NumOutputs_Args", 32);
    // SAFETY: a live program.
    args.outputs = unsafe { &*args.executable }.outputs;
    std::ptr::null_mut()
}

#[repr(C)]
pub struct ExecuteArgs {
    size: usize,
    extensions: *const c_void,
    executable: *mut Loaded,
    options: *const c_void,
    arguments: *const *const *mut Buffer,
    num_devices: usize,
    num_arguments: usize,
    outputs: *const *mut *mut Buffer,
}

pub unsafe extern "C" fn execute(args: *mut ExecuteArgs) -> *mut Error {
    let args = checked!(args, "PJRT_LoadedExecutable_Execute_Args", 80);
    // SAFETY: a live program.
    let program = unsafe { &*args.executable };
    for (at, returned) in program.results.iter().take(program.outputs).enumerate() {
        let Some((buffer_type, dims)) = returned else { continue };
        // What can be is there, as four bytes a number.
        let len = dims.iter().try_fold(4usize, |len, &dim| len.checked_mul(usize::try_from(dim).ok()?));
        let len = len.filter(|&len| len <= 1 << 20).unwrap_or(0);
        let made = result(&program.shared, *buffer_type, dims.clone(), len);
        // SAFETY: one list for one device, with as many places as the program says that it has results.
        unsafe { (*args.outputs).add(at).write(made) };
    }
    std::ptr::null_mut()
}
