//! Hook by which a program becomes a worker without a line of code in it.
//!
//! A worker is this same program, started again with `GRISTMILL_WORKER` in its environment. [`HOOK`] is an entry of the
//! executable's `.init_array`: the C library calls it before `main`, and in a worker it never returns. Whoever links
//! gristmill and starts workers has it: starting one asks for [`module`], which refers to it, so the linker takes in the
//! object that holds it, and linkers never drop the entries of `.init_array`.
//!
//! It acts only if the code that it belongs to is the program's own, so that a program that merely loads a library with
//! gristmill inside is left alone; and never in a program with raised rights, whose environment is somebody else's.

#![allow(unsafe_code, reason = "an entry of `.init_array`, and the environment of a process with one thread")]

use std::sync::atomic::{AtomicBool, Ordering};

use super::child;
use super::command::{Call, WORKER};
use crate::workers::sys::modules::{self, Module};
use crate::workers::sys::process::has_raised_rights;

// SAFETY: the C library calls the entries of this section once, before `main`, as functions of C; arguments that one does
// not take are ignored. By then the environment is set up, and so is all of the C library and the loader's work.
#[used]
#[unsafe(link_section = ".init_array")]
static HOOK: extern "C" fn() = on_load;

static INIT_CALLED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_load() {
    let Some(call) = std::env::var_os(WORKER) else { return };
    if has_raised_rights() || !module().is_some_and(|m| m.main) {
        return;
    }
    match Call::read(&call) {
        // `main` will call `init`.
        Some(call) if call.in_main => {}
        Some(call) => become_worker(call),
        // Left in place: whoever starts a worker from this process is told.
        None => {}
    }
}

/// Takes over if this process was started as a worker, and then does not return; returns at once otherwise.
///
/// A program needs it only where worker code must not run before `main`: it links C++ code whose static constructors the
/// pipeline needs, or sets up something first that the factory relies on. It belongs at the start of `main`, before any
/// thread is started; a shared library that [`set_worker_command`](super::set_worker_command) has loaded calls it
/// from the function that its loader calls.
pub fn init() {
    INIT_CALLED.store(true, Ordering::Relaxed);
    if let Some(call) = std::env::var_os(WORKER).as_deref().and_then(Call::read)
        && !has_raised_rights()
    {
        become_worker(call);
    }
}

fn become_worker(call: Call) -> ! {
    // SAFETY: nobody else reads or writes the environment now: this thread is the only one, but for such as a library's
    // constructor has started for itself (a pool, idle still). `init` asks its caller for the same.
    unsafe { std::env::remove_var(WORKER) };
    child::run(call)
}

/// Whether `main` of this program calls [`init`], which is then where its workers take over.
pub(crate) fn init_was_called() -> bool {
    INIT_CALLED.load(Ordering::Relaxed)
}

/// The module that holds gristmill's code.
pub(crate) fn module() -> Option<Module> {
    // Through the entry, and not by the function's name: this is what ties it to those who start workers.
    let hook = std::hint::black_box(&raw const HOOK);
    // SAFETY: it points to a static.
    modules::holding(unsafe { hook.read_volatile() } as usize)
}
