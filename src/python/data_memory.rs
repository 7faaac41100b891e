//! Memory of NumPy's arrays in a worker: large arrays get blocks of the extent that the worker writes.
//!
//! NumPy requests the memory of each array from its memory handler ([NEP 49]). If this handler has no memory, it
//! calls NumPy's own. An array stores its handler, so memory returns here from any thread.
//!
//! [NEP 49]: https://numpy.org/neps/nep-0049.html
#![expect(unsafe_code, reason = "NumPy's memory handler is a table of C functions")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::buffer;
use crate::wire::foreign::{self, Host};

/// NumPy's `PyDataMemAllocator`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Allocator {
    ctx: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

/// NumPy's `PyDataMem_Handler`, version 1.
#[repr(C)]
struct Handler {
    name: [c_char; 127],
    version: u8,
    allocator: Allocator,
}

/// Name that NumPy gives the capsules of handlers.
const NAME: &CStr = c"mem_handler";
/// The version of the struct above.
const VERSION: u8 = 1;
/// Places in the table of NumPy's interface, since version 1.22.
const SET_HANDLER: usize = 304;
const GET_HANDLER: usize = 305;
const DEFAULT_HANDLER: usize = 306;

/// NumPy's own functions, and this handler. Both live as long as the process, because arrays may.
struct Ours {
    numpy: Allocator,
    handler: Handler,
}

// SAFETY: any thread attached to the interpreter may call the functions, and all callers here are attached. The
// context is the default handler's, which has no state.
unsafe impl Send for Ours {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Ours {}

static OURS: OnceLock<Ours> = OnceLock::new();

/// Allocates large arrays of NumPy in the extents that this worker writes, as soon as NumPy is imported.
pub(super) fn admit() {
    foreign::admit_from(Host { prepare, free_unused });
}

/// Objects that were dropped without the interpreter are freed when a thread attaches.
fn free_unused() {
    Python::attach(|_| ());
}

fn prepare() -> bool {
    thread_local! {
        /// Whether this thread has the handler; unknown before NumPy is imported.
        static IS_SET: Cell<Option<bool>> = const { Cell::new(None) };
    }
    IS_SET.get().unwrap_or_else(|| {
        let set = Python::attach(|py| match is_ready(py) {
            Ok(false) => None,
            // With another handler, or another NumPy, arrays stay on the heap.
            loaded => Some(loaded.and_then(|_| set(py)).unwrap_or(false)),
        });
        IS_SET.set(set);
        set.unwrap_or(false)
    })
}

/// Whether NumPy is imported completely. A request during the import could return a partial module.
fn is_ready(py: Python<'_>) -> PyResult<bool> {
    let Some(numpy) = buffer::loaded(py)? else { return Ok(false) };
    let spec = numpy.getattr("__spec__")?;
    Ok(!spec.getattr_opt("_initializing")?.is_some_and(|initializing| initializing.is_truthy().unwrap_or(true)))
}

/// NumPy's table of functions, or null.
fn table(py: Python<'_>) -> PyResult<*const *const c_void> {
    let module = py.import("numpy._core.multiarray").or_else(|_| py.import("numpy.core.multiarray"))?;
    let capsule = module.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
    // SAFETY: the capsule is one; NumPy gives it no name.
    let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), ptr::null()) };
    if table.is_null() { Err(PyErr::fetch(py)) } else { Ok(table.cast_const().cast()) }
}

/// Sets the handler for this thread, unless the thread has a custom handler.
fn set(py: Python<'_>) -> PyResult<bool> {
    let table = table(py)?;
    // SAFETY: NumPy's table, of version 1.26 and later, which the package asks for, has these entries, of these types.
    let (default, current) = unsafe {
        let get = table.add(GET_HANDLER).cast::<extern "C" fn() -> *mut ffi::PyObject>().read();
        let default = table.add(DEFAULT_HANDLER).cast::<*const *mut ffi::PyObject>().read();
        (default.read(), get())
    };
    // SAFETY: the result is a new reference or null.
    let current = unsafe { Bound::from_owned_ptr_or_err(py, current)? };
    if current.as_ptr() != default {
        return Ok(false);
    }
    // SAFETY: the capsule is NumPy's, with this name.
    let numpy = unsafe { ffi::PyCapsule_GetPointer(default, NAME.as_ptr()) }.cast::<Handler>();
    if numpy.is_null() {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: such a capsule holds a handler, which lives on and never changes.
    let (version, allocator) = unsafe { ((*numpy).version, (*numpy).allocator) };
    if version != VERSION {
        return Ok(false);
    }
    let ours = OURS.get_or_init(|| {
        let mut name = [0; 127];
        name.iter_mut().zip(b"gristmill").for_each(|(to, from)| *to = *from as c_char);
        let context = ptr::null_mut();
        let functions = Allocator { ctx: context, malloc, calloc, realloc, free };
        Ours { numpy: allocator, handler: Handler { name, version: VERSION, allocator: functions } }
    });
    let handler = ptr::from_ref(&ours.handler).cast_mut().cast();
    // SAFETY: the handler stays for as long as the process; NumPy only reads it.
    let capsule = unsafe {
        let new = ffi::PyCapsule_New(handler, NAME.as_ptr(), None);
        Bound::from_owned_ptr_or_err(py, new)?
    };
    // SAFETY: as above. The argument is a handler's capsule, to which NumPy adds a reference. The result is a new
    // reference or null.
    let before = unsafe {
        let set = table.add(SET_HANDLER).cast::<extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject>().read();
        Bound::from_owned_ptr_or_err(py, set(capsule.as_ptr()))?
    };
    drop(before);
    Ok(true)
}

unsafe extern "C" fn malloc(_: *mut c_void, size: usize) -> *mut c_void {
    match foreign::allocate(size) {
        Some(block) => block.cast(),
        None => with_numpy(ptr::null_mut(), |numpy| {
            // SAFETY: NumPy's function, with the arguments of its caller.
            unsafe { (numpy.malloc)(numpy.ctx, size) }
        }),
    }
}

unsafe extern "C" fn calloc(_: *mut c_void, count: usize, each: usize) -> *mut c_void {
    match count.checked_mul(each).and_then(|size| Some((foreign::allocate(size)?, size))) {
        Some((block, size)) => {
            // SAFETY: the block has `size` bytes, and no other reference.
            unsafe { block.write_bytes(0, size) };
            block.cast()
        }
        None => with_numpy(ptr::null_mut(), |numpy| {
            // SAFETY: NumPy's function, with the arguments of its caller.
            unsafe { (numpy.calloc)(numpy.ctx, count, each) }
        }),
    }
}

unsafe extern "C" fn realloc(context: *mut c_void, old: *mut c_void, size: usize) -> *mut c_void {
    let Some(len) = foreign::len_of(old as usize) else {
        return with_numpy(ptr::null_mut(), |numpy| {
            // SAFETY: NumPy's own function, with memory that is not ours and so its.
            unsafe { (numpy.realloc)(numpy.ctx, old, size) }
        });
    };
    if size <= len {
        return old;
    }
    // SAFETY: as NumPy calls it.
    let new = unsafe { malloc(context, size) };
    if !new.is_null() {
        // SAFETY: the old block has `len` bytes, the new memory more, and they are two.
        unsafe { ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), len) };
        foreign::free(old as usize);
    }
    new
}

unsafe extern "C" fn free(_: *mut c_void, old: *mut c_void, size: usize) {
    if !foreign::free(old as usize) {
        with_numpy((), |numpy| {
            // SAFETY: NumPy's own function, with memory that is not ours and so its.
            unsafe { (numpy.free)(numpy.ctx, old, size) }
        });
    }
}

/// Calls a function of NumPy; returns `none` if the functions are unknown. They are known before the handler is set.
fn with_numpy<R>(none: R, call: impl FnOnce(&Allocator) -> R) -> R {
    if let Some(ours) = OURS.get() { call(&ours.numpy) } else { none }
}
