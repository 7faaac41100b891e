//! Signals: which of them a worker ignores, and how the parent's threads keep clear of them.

#![allow(unsafe_code, reason = "signal masks and dispositions are not in std")]

use std::mem::MaybeUninit;
use std::ptr;

/// Ignores SIGPIPE (a closed pipe is an error of the write) and SIGINT (Ctrl-C is the parent's to answer).
///
/// Children of this process that are not Rust's inherit both; those that `std::process` starts get SIGPIPE back.
pub(crate) fn ignore_in_worker() {
    for signal in [libc::SIGPIPE, libc::SIGINT] {
        // SAFETY: ignoring a signal installs no handler; it touches nothing but the disposition.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Blocks every signal in the calling thread: handlers of the host program run on its own threads, and no call here is
/// interrupted.
pub(crate) fn block_all() {
    // SAFETY: the set is initialised by `sigfillset` before it is read; the mask is the calling thread's alone.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
    }
}

/// Runs `write` so that a closed socket is its error, even where the host program has SIGPIPE end the process.
///
/// The signal of a failed write goes to the thread that wrote, so it can be blocked and taken back here.
pub(crate) fn without_sigpipe<T>(write: impl FnOnce() -> T) -> T {
    let blocked = SigpipeBlocked::new();
    let result = write();
    drop(blocked);
    result
}

struct SigpipeBlocked {
    before: libc::sigset_t,
    was_pending: bool,
}

impl SigpipeBlocked {
    fn new() -> Self {
        let pipe = only_sigpipe();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are valid for the calls; `before` is written by `pthread_sigmask`, which cannot fail here
        // (its operation is one of the three it knows).
        let before = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, before.as_mut_ptr());
            before.assume_init()
        };
        Self { before, was_pending: sigpipe_pending() }
    }
}

impl Drop for SigpipeBlocked {
    fn drop(&mut self) {
        // One that was pending before is somebody else's and stays.
        if !self.was_pending && sigpipe_pending() {
            let pipe = only_sigpipe();
            let no_wait = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: set and time-out are valid; no information about the signal is asked for.
            unsafe { libc::sigtimedwait(&raw const pipe, ptr::null_mut(), &raw const no_wait) };
        }
        // SAFETY: `before` is the mask that `new` read.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }
}

fn only_sigpipe() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set that `sigaddset` then changes.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
        set.assume_init()
    }
}

fn sigpipe_pending() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: `sigpending` writes the set, or fails and it is not read.
    unsafe { libc::sigpending(pending.as_mut_ptr()) == 0 && libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1 }
}

/// The name of a signal, such as `SIGSEGV`.
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
