//! A PJRT plugin that goes wrong as it is told, for the tests of `gristmill::device`, which compile it with `rustc`.
//!
//! Its devices are memory of the host. It is strict where real plugins are (sizes of structs, one initialisation, buffers
//! before their client) and slow, failing or silent as the options of a client say: see [`client::Faults`].
//! Layouts and places in the table are those of `pjrt_c_api.h` 0.81 (The OpenXLA Authors), read anew here.

#![expect(clippy::missing_safety_doc, reason = "every function here is called as the header says")]

mod buffers;
mod client;
mod events;
mod programs;
mod status;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use status::{Error, fail};

/// With `--cfg old`, the oldest version that gristmill takes, whose table is shorter.
const MINOR: i32 = if cfg!(old) { 57 } else { 81 };
const FUNCTIONS: usize = if cfg!(old) { 100 } else { 118 };

type Entry = *const c_void;

#[repr(C)]
struct Table {
    size: usize,
    extensions: *const c_void,
    version_size: usize,
    version_extensions: *const c_void,
    major: i32,
    minor: i32,
    functions: [Entry; FUNCTIONS],
}

// SAFETY: it never changes.
unsafe impl Sync for Table {}

const fn functions() -> [Entry; FUNCTIONS] {
    let mut table = [std::ptr::null(); FUNCTIONS];
    table[0] = status::error_destroy as Entry;
    table[1] = status::error_message as Entry;
    table[2] = status::error_code as Entry;
    table[3] = initialize as Entry;
    table[5] = events::destroy as Entry;
    table[6] = events::is_ready as Entry;
    table[7] = events::error as Entry;
    table[8] = events::wait as Entry;
    table[9] = events::on_ready as Entry;
    table[10] = client::create as Entry;
    table[11] = client::destroy as Entry;
    table[12] = client::platform_name as Entry;
    table[16] = client::addressable_devices as Entry;
    if !cfg!(old) {
        table[20] = programs::compile as Entry;
    }
    table[22] = buffers::from_host as Entry;
    table[23] = client::device_id as Entry;
    table[26] = client::device_kind as Entry;
    table[29] = client::device_description as Entry;
    table[40] = programs::executable_destroy as Entry;
    table[44] = programs::num_outputs as Entry;
    table[50] = programs::destroy as Entry;
    table[51] = programs::executable as Entry;
    table[55] = programs::execute as Entry;
    table[58] = buffers::destroy as Entry;
    table[59] = buffers::element_type as Entry;
    table[60] = buffers::dimensions as Entry;
    table[70] = buffers::to_host as Entry;
    table[72] = buffers::ready_event as Entry;
    table[73] = buffers::unsafe_pointer as Entry;
    if FUNCTIONS > 111 {
        table[110 % FUNCTIONS] = client::dma_map as Entry;
        table[111 % FUNCTIONS] = client::dma_unmap as Entry;
    }
    table
}

static TABLE: Table = Table {
    size: size_of::<Table>(),
    extensions: std::ptr::null(),
    version_size: 24,
    version_extensions: std::ptr::null(),
    major: 0,
    minor: MINOR,
    functions: functions(),
};

#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const c_void {
    (&raw const TABLE).cast()
}

unsafe extern "C" fn initialize(size: *mut usize) -> *mut Error {
    static DONE: AtomicBool = AtomicBool::new(false);
    // SAFETY: arguments begin with their size.
    if let Some(refused) = unsafe { status::too_short("PJRT_Plugin_Initialize_Args", size, 16) } {
        return refused;
    }
    if DONE.swap(true, Ordering::SeqCst) { fail(9, "initialised twice") } else { std::ptr::null_mut() }
}
