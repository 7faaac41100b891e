//! Buffers, and how they are filled.

use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::checked;
use crate::client::{Client, Device, Shared};
use crate::events::{Event, Promise, event};
use crate::status::{Error, fail};

/// What the host promises of its memory.
const ONLY_DURING_CALL: i32 = 0;
const IMMUTABLE_ZERO_COPY: i32 = 2;

pub struct Buffer {
    buffer_type: i32,
    dims: Vec<i64>,
    memory: Memory,
    ready: Arc<Promise>,
    done: Arc<Promise>,
    shared: Arc<Shared>,
}

enum Memory {
    Own(Arc<Mutex<Vec<u8>>>),
    Host { start: usize, len: usize },
}

#[repr(C)]
pub struct FromHostArgs {
    size: usize,
    extensions: *const c_void,
    client: *mut Client,
    data: *const u8,
    buffer_type: i32,
    dims: *const i64,
    num_dims: usize,
    byte_strides: *const i64,
    num_byte_strides: usize,
    semantics: i32,
    device: *mut Device,
    memory: *const c_void,
    layout: *const c_void,
    done_with_host_buffer: *mut Event,
    buffer: *mut Buffer,
}

/// Bytes of one number, by `PJRT_Buffer_Type`. Real plugins end the process for a type that they do not know, and so does this.
fn width(buffer_type: i32) -> usize {
    match buffer_type {
        1 | 2 | 6 => 1,
        3 | 7 | 10 | 13 => 2,
        4 | 8 | 11 => 4,
        5 | 9 | 12 => 8,
        _ => std::process::abort(),
    }
}

pub unsafe extern "C" fn from_host(args: *mut FromHostArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Client_BufferFromHostBuffer_Args", 120);
    // SAFETY: a live client.
    let shared = unsafe { &*args.client }.shared.clone();
    let faults = shared.faults.clone();
    let number = shared.transfers.fetch_add(1, Ordering::SeqCst);
    if number == faults.call_fails_at {
        return fail(8, "told to refuse this transfer");
    }
    // SAFETY: there are so many dimensions.
    let dims = unsafe { std::slice::from_raw_parts(args.dims, args.num_dims) };
    let len = width(args.buffer_type) * dims.iter().product::<i64>() as usize;
    let start = args.data as usize;
    if faults.dma == 2 && !shared.is_mapped(start, len) {
        return fail(3, "memory that is not mapped");
    }
    let (ready, done) = (Arc::new(Promise::default()), Arc::new(Promise::default()));
    let never = number == faults.never_at || number >= faults.never_from;
    let error = (number == faults.event_fails_at).then_some("told to lose this transfer");
    let memory = if args.semantics == IMMUTABLE_ZERO_COPY && start % 64 == 0 {
        ready.set(error);
        Memory::Host { start, len }
    } else {
        let own = Arc::new(Mutex::new(vec![0; len]));
        let (target, fills, frees) = (own.clone(), ready.clone(), done.clone());
        let copy = move || {
            // SAFETY: the host keeps as many bytes until `done` is set.
            target.lock().unwrap().copy_from_slice(unsafe { std::slice::from_raw_parts(start as *const u8, len) });
            fills.set(error);
            frees.set(error);
        };
        match never {
            true => {}
            false if faults.delay_us == 0 || args.semantics == ONLY_DURING_CALL => copy(),
            false => shared.spawn(copy),
        }
        Memory::Own(own)
    };
    args.done_with_host_buffer = faults.give(2, || event(&done));
    let (buffer_type, dims) = (args.buffer_type, dims.to_vec());
    args.buffer = faults.give(1, || live(Buffer { buffer_type, dims, memory, ready, done, shared }));
    std::ptr::null_mut()
}

fn live(buffer: Buffer) -> *mut Buffer {
    buffer.shared.live_buffers.fetch_add(1, Ordering::SeqCst);
    Box::into_raw(Box::new(buffer))
}

/// What a program returns: of any type and dimensions, with as many zeroes as `len` says.
pub fn result(shared: &Arc<Shared>, buffer_type: i32, dims: Vec<i64>, len: usize) -> *mut Buffer {
    let (ready, done) = (Arc::new(Promise::default()), Arc::new(Promise::default()));
    ready.set(None);
    let memory = Memory::Own(Arc::new(Mutex::new(vec![0; len])));
    live(Buffer { buffer_type, dims, memory, ready, done, shared: shared.clone() })
}

#[repr(C)]
pub struct TypeArgs {
    size: usize,
    extensions: *const c_void,
    buffer: *mut Buffer,
    buffer_type: i32,
}

pub unsafe extern "C" fn element_type(args: *mut TypeArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Buffer_ElementType_Args", 28);
    // SAFETY: a live buffer.
    args.buffer_type = unsafe { &*args.buffer }.buffer_type;
    std::ptr::null_mut()
}

#[repr(C)]
pub struct DimsArgs {
    size: usize,
    extensions: *const c_void,
    buffer: *mut Buffer,
    dims: *const i64,
    num_dims: usize,
}

pub unsafe extern "C" fn dimensions(args: *mut DimsArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Buffer_Dimensions_Args", 40);
    // SAFETY: a live buffer.
    let dims = &unsafe { &*args.buffer }.dims;
    (args.dims, args.num_dims) = (dims.as_ptr(), dims.len());
    std::ptr::null_mut()
}

#[repr(C)]
pub struct Args {
    size: usize,
    extensions: *const c_void,
    buffer: *mut Buffer,
}

pub unsafe extern "C" fn destroy(args: *mut Args) -> *mut Error {
    let args = checked!(args, "PJRT_Buffer_Destroy_Args", 24);
    // SAFETY: it came from `from_host`, and is not used again.
    let buffer = unsafe { Box::from_raw(args.buffer) };
    buffer.shared.live_buffers.fetch_sub(1, Ordering::SeqCst);
    if let Memory::Host { .. } = buffer.memory {
        buffer.done.set(None);
    }
    std::ptr::null_mut()
}

#[repr(C)]
pub struct ReadyArgs {
    size: usize,
    extensions: *const c_void,
    buffer: *mut Buffer,
    event: *mut Event,
}

pub unsafe extern "C" fn ready_event(args: *mut ReadyArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Buffer_ReadyEvent_Args", 32);
    // SAFETY: a live buffer.
    let buffer = unsafe { &*args.buffer };
    args.event = buffer.shared.faults.give(4, || event(&buffer.ready));
    std::ptr::null_mut()
}

#[repr(C)]
pub struct PointerArgs {
    size: usize,
    extensions: *const c_void,
    buffer: *mut Buffer,
    pointer: usize,
}

pub unsafe extern "C" fn unsafe_pointer(args: *mut PointerArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Buffer_UnsafePointer_Args", 32);
    // SAFETY: a live buffer.
    args.pointer = match &unsafe { &*args.buffer }.memory {
        Memory::Own(own) => own.lock().unwrap().as_ptr() as usize,
        Memory::Host { start, .. } => *start,
    };
    std::ptr::null_mut()
}

#[repr(C)]
pub struct ToHostArgs {
    size: usize,
    extensions: *const c_void,
    buffer: *mut Buffer,
    layout: *const c_void,
    target: *mut u8,
    target_size: usize,
    event: *mut Event,
}

pub unsafe extern "C" fn to_host(args: *mut ToHostArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Buffer_ToHostBuffer_Args", 56);
    // SAFETY: a live buffer.
    let buffer = unsafe { &*args.buffer };
    let error = buffer.ready.wait();
    // SAFETY: the host gives so many bytes.
    let target = unsafe { std::slice::from_raw_parts_mut(args.target, args.target_size) };
    match &buffer.memory {
        Memory::Own(own) => target.copy_from_slice(&own.lock().unwrap()),
        // SAFETY: the host keeps as many bytes until the buffer goes.
        Memory::Host { start, len } => {
            target.copy_from_slice(unsafe { std::slice::from_raw_parts(*start as *const u8, *len) });
        }
    }
    let over = Arc::new(Promise::default());
    over.set(error.as_deref());
    args.event = buffer.shared.faults.give(8, || event(&over));
    std::ptr::null_mut()
}
