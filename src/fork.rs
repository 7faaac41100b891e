//! Forks of this process: what they may use of it, and what they have for themselves.
//!
//! A fork has a copy of all memory and of one thread. What lives off the others is not there: a thread cannot be joined, a
//! queue has nobody at its other end, and a lock that another thread held is never released. So whatever lives off threads
//! remembers its [`Origin`], is [`Ours`], and does nothing in a fork but say so; what all of a process shares is
//! [`PerProcess`].
#![expect(unsafe_code, reason = "forks are told by the C library, and a value of each process is found without a lock")]

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// Forks between the first process that asked and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process that made something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    forks: u32,
    pid: u32,
}

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        count_forks();
        Self { forks: FORKS.load(Ordering::Relaxed), pid: std::process::id() }
    }

    /// Whether it is this process, and not one that this is a fork of. It costs a load of memory.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }

    /// Checks that `what` was made in this process.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] in a fork of it.
    #[inline]
    pub(crate) fn check(self, what: &str) -> Result<()> {
        if self.is_here() { Ok(()) } else { Err(self.elsewhere(what)) }
    }

    /// The error for `what` that a fork asks for.
    #[cold]
    pub(crate) fn elsewhere(self, what: &str) -> Error {
        self.other(what).help("threads do not survive a fork: make a new one in this process")
    }

    /// The same error, for what a fork cannot make anew either.
    #[cold]
    pub(crate) fn other(self, what: &str) -> Error {
        let here = std::process::id();
        let text = format!("{what} belongs to process {}, and this process, {here}, is a fork of it", self.pid);
        Error::new(ErrorKind::Worker, text)
    }
}

/// A thread of one process: no other thread has the same, nor has its copy in a fork.
#[cfg(any(test, feature = "python"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadOf(u64);

#[cfg(any(test, feature = "python"))]
impl ThreadOf {
    /// This thread.
    pub(crate) fn here() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
        count_forks();
        Self(u64::from(FORKS.load(Ordering::Relaxed)) << 32 | u64::from(NUMBER.with(|number| *number)))
    }

    /// Whether it is a thread of this process, so that it can go on.
    pub(crate) fn is_here(self) -> bool {
        self.0 >> 32 == u64::from(FORKS.load(Ordering::Relaxed))
    }

    /// A number, which is not 0.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// The thread of that number; 0 is none.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        (bits != 0).then_some(Self(bits))
    }
}

/// Whether this process is a fork of one that has asked the same, or made anything that lives off threads.
pub(crate) fn is_fork() -> bool {
    count_forks();
    FORKS.load(Ordering::Relaxed) > 0
}

/// Has forks counted from now on. Several threads may ask at once: forks are then counted twice, which is as good.
#[cfg(unix)]
fn count_forks() {
    static COUNTS: AtomicBool = AtomicBool::new(false);
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    if !COUNTS.load(Ordering::Acquire) {
        // SAFETY: the function may be called in a fork at any time: it adds to a number, and nothing else.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        // It is refused for want of memory, of a few bytes.
        assert_eq!(refused, 0, "no memory");
        COUNTS.store(true, Ordering::Release);
    }
}

/// Nothing forks.
#[cfg(not(unix))]
fn count_forks() {}

/// A value that lives off threads of the process that made it. A fork neither uses nor drops it: it leaves the copy as it is.
pub(crate) struct Ours<T> {
    origin: Origin,
    value: ManuallyDrop<T>,
}

impl<T> Ours<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { origin: Origin::here(), value: ManuallyDrop::new(value) }
    }

    /// The value; `None` in a fork.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.origin.is_here().then_some(&*self.value)
    }

    /// The value; `None` in a fork.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.origin.is_here().then_some(&mut *self.value)
    }

    /// The value, in a fork its copy: for reading what nobody changes but who has this.
    pub(crate) fn anywhere(&self) -> &T {
        &self.value
    }

    /// The process that made it.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }
}

impl<T> Drop for Ours<T> {
    fn drop(&mut self) {
        if self.origin.is_here() {
            // SAFETY: it is dropped here and nowhere else, and nobody sees it any more.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Ours<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => value.fmt(f),
            None => f.write_str("(of another process)"),
        }
    }
}

/// A value that each process has for itself: a fork begins with a new one, whatever threads did with that of its parent.
pub(crate) struct PerProcess<T> {
    make: fn() -> T,
    /// The value that was made last. It is freed with this, in the process that made it.
    latest: AtomicPtr<Made<T>>,
    /// Dropping this drops a value.
    _owns: PhantomData<T>,
}

/// A lock that each process has for itself.
#[allow(dead_code, reason = "only sources of some features keep what they have decoded")]
pub(crate) type OwnLock<T> = PerProcess<Mutex<T>>;

struct Made<T> {
    origin: Origin,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    pub(crate) const fn new(make: fn() -> T) -> Self {
        Self { make, latest: AtomicPtr::new(std::ptr::null_mut()), _owns: PhantomData }
    }

    /// Finds or makes the value of this process. `make` may be called by several threads at once, of which one is heard.
    #[inline]
    pub(crate) fn get(&self) -> &T {
        let latest = self.latest.load(Ordering::Acquire);
        // SAFETY: it is null, or a box of `add`, which was written before it was stored, and stays as long as `self` does.
        match unsafe { latest.as_ref() } {
            Some(made) if made.origin.is_here() => &made.value,
            _ => self.add(latest),
        }
    }

    #[cold]
    fn add(&self, latest: *mut Made<T>) -> &T {
        let made = Box::into_raw(Box::new(Made { origin: Origin::here(), value: (self.make)() }));
        match self.latest.compare_exchange(latest, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it was made here, and from now on stays as long as `self` does. What it replaces is the parent's, and stays.
            Ok(_) => unsafe { &(*made).value },
            Err(_) => {
                // SAFETY: it was made here, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                self.get()
            }
        }
    }
}

impl<T: Send + Sync + Default> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

impl<T: Send> PerProcess<Mutex<T>> {
    /// The lock of this process.
    #[allow(dead_code, reason = "only sources of some features keep what they have decoded")]
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.get().locked()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let latest = *self.latest.get_mut();
        // SAFETY: it is null, or a box of `add`, and nobody sees it any more.
        if unsafe { latest.as_ref() }.is_some_and(|made| made.origin.is_here()) {
            // SAFETY: the same; it was made in this process, so nothing in it is shared with threads that are not here.
            drop(unsafe { Box::from_raw(latest) });
        }
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PerProcess")
    }
}

#[cfg(all(test, unix))]
pub(crate) mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Does `work` in a fork, and returns the exit code: 0 where it returns true.
    pub(crate) fn in_fork(work: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child calls `work`, which takes no lock that another thread may hold, and ends.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = if work() { 0 } else { 1 };
            // SAFETY: it ends this process, without handlers.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `pid` is the child's, and `status` is there.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        assert_eq!(waited, pid);
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
    }

    struct Dropped<'a>(&'a AtomicUsize);

    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_fork_neither_uses_nor_drops_what_is_its_parents() {
        let drops = AtomicUsize::new(0);
        let mut held = Ours::new(Dropped(&drops));
        assert!(held.get().is_some() && held.get_mut().is_some() && held.origin().check("it").is_ok());
        let mut copy = Some(held);
        let code = in_fork(|| {
            let Some(mut held) = copy.take() else { return false };
            let unused = held.get().is_none() && held.get_mut().is_none() && !held.origin().is_here() && is_fork();
            drop(held);
            // In the fork of a fork, too.
            unused && drops.load(Ordering::Relaxed) == 0 && in_fork(|| Origin::here().is_here()) == 0
        });
        assert_eq!(code, 0);
        drop(copy);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn every_process_has_its_own_value_however_its_parents_is_locked() {
        static VALUE: PerProcess<Mutex<u32>> = PerProcess::new(|| Mutex::new(7));
        *VALUE.lock() += 1;
        let held = VALUE.lock();
        assert_eq!(in_fork(|| *VALUE.lock() == 7), 0);
        assert_eq!(*held, 8);
        let drops = AtomicUsize::new(0);
        let own: PerProcess<Mutex<Option<Dropped<'_>>>> = PerProcess::default();
        *own.lock() = Some(Dropped(&drops));
        let mut copy = Some(own);
        assert_eq!(in_fork(|| copy.take().is_some() && drops.load(Ordering::Relaxed) == 0), 0);
        drop(copy);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_thread_is_told_from_others_and_from_its_copy() {
        let here = ThreadOf::here();
        let other = std::thread::spawn(ThreadOf::here).join().unwrap();
        assert!(here == ThreadOf::here() && here != other && here.is_here() && other.is_here());
        assert_eq!((ThreadOf::from_bits(here.to_bits()), ThreadOf::from_bits(0)), (Some(here), None));
        assert_eq!(in_fork(|| !here.is_here() && ThreadOf::here() != here), 0);
    }

    #[test]
    fn threads_that_ask_at_once_have_one_value() {
        static VALUE: PerProcess<AtomicUsize> = PerProcess::new(|| AtomicUsize::new(0));
        std::thread::scope(|scope| {
            (0..8).for_each(|_| drop(scope.spawn(|| VALUE.get().fetch_add(1, Ordering::Relaxed))));
        });
        assert_eq!(VALUE.get().load(Ordering::Relaxed), 8);
    }
}
