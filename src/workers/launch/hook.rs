//! Hook that turns a program into a worker without changes to its code.
//!
//! A worker is the running program, started again with `GRISTMILL_WORKER` in its environment. [`HOOK`] is an entry of
//! the executable's `.init_array`. The C library calls the entry before `main`; in a worker it never returns. Every
//! program that links gristmill and starts workers contains the hook. Starting a worker calls [`module`], which refers
//! to [`HOOK`], so the linker includes its object file. Linkers never drop the entries of `.init_array`.
//!
//! The hook acts only if its code is part of the program itself. A program that merely loads a library with gristmill
//! inside is unaffected. The hook never acts in a program with raised rights, whose environment comes from another
//! user.

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
        // The variable stays set, so the next start of a worker from this process reports it.
        None => {}
    }
}

/// Runs the worker and never returns, if this process was started as a worker; otherwise returns at once.
///
/// A program needs this call only if worker code must not run before `main`. Examples are C++ code whose static
/// constructors the pipeline needs, and setup that the factory relies on. Call it at the start of `main`, before any
/// thread starts. A shared library that was loaded by the program of [`set_worker_command`](super::set_worker_command)
/// calls it from the function that its loader calls.
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

/// Returns true if `main` of this program calls [`init`]. Its workers then take over in that call.
pub(crate) fn init_was_called() -> bool {
    INIT_CALLED.load(Ordering::Relaxed)
}

/// Returns the module that contains gristmill's code.
pub(crate) fn module() -> Option<Module> {
    // The address comes from the entry, not from the function's name. This reference links the entry into the program.
    let hook = std::hint::black_box(&raw const HOOK);
    // SAFETY: it points to a static.
    modules::holding(unsafe { hook.read_volatile() } as usize)
}
