//! Signals: the set that a worker ignores, and the masking of signals in the parent's threads.

#![allow(unsafe_code, reason = "signal masks and dispositions are not in std")]

use std::mem::MaybeUninit;
use std::ptr;

/// Ignores SIGPIPE (a closed pipe is an error of the write) and SIGINT (the parent handles Ctrl-C).
///
/// Children that are not started by Rust inherit both. `std::process` restores SIGPIPE in the children that it starts.
pub(crate) fn ignore_in_worker() {
    for signal in [libc::SIGPIPE, libc::SIGINT] {
        // SAFETY: ignoring a signal installs no handler; it touches nothing but the disposition.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Blocks every signal in the calling thread.
///
/// Handlers of the host program then run on its other threads, and no call here is interrupted.
pub(crate) fn block_all() {
    // SAFETY: the set is initialised by `sigfillset` before it is read; the mask is the calling thread's alone.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
    }
}

/// Returns the name of a signal, such as `SIGSEGV`.
pub(crate) fn name(number: i32) -> Option<&'static str> {
    const NAMES: [(i32, &str); 18] = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    NAMES.iter().find(|(n, _)| *n == number).map(|(_, name)| *name)
}
