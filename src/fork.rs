//! Forks of this process: values of the parent, and values of each process.
//!
//! A fork has a copy of all memory, but only of one thread. Values that depend on other threads do not work in a fork.
//! A thread cannot be joined, a queue has no thread at its other end, and a lock held by another thread is never
//! released.
//!
//! Such values record their [`Origin`], are wrapped in [`Ours`], and only return an error in a fork. Values shared by a
//! whole process are [`PerProcess`].
#![expect(unsafe_code, reason = "the C library reports forks, and a value of each process is found without a lock")]

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// Number of forks between the first process that counted forks and this process.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Process that made a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    forks: u32,
    pid: u32,
}

impl Origin {
    /// Returns the current process.
    pub(crate) fn here() -> Self {
        count_forks();
        Self { forks: FORKS.load(Ordering::Relaxed), pid: std::process::id() }
    }

    /// Returns true if the current process is this origin, and not a fork of it. Costs one memory load.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }

    /// Checks that `what` was made in this process.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] in a fork.
    #[inline]
    pub(crate) fn check(self, what: &str) -> Result<()> {
        if self.is_here() { Ok(()) } else { Err(self.elsewhere(what)) }
    }

    /// Makes the error for a fork that uses `what`.
    #[cold]
    pub(crate) fn elsewhere(self, what: &str) -> Error {
        self.other(what).help("threads do not survive a fork: make a new one in this process")
    }

    /// Makes the error for a fork that uses `what`, but cannot make a new one.
    #[cold]
    pub(crate) fn other(self, what: &str) -> Error {
        let here = std::process::id();
        let text = format!("{what} belongs to process {}, and this process, {here}, is a fork of it", self.pid);
        Error::new(ErrorKind::Worker, text)
    }
}

/// Thread of a process. It differs from all other threads, and from its copy in a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadOf(u64);

impl ThreadOf {
    /// Returns the current thread.
    pub(crate) fn here() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
        count_forks();
        Self(u64::from(FORKS.load(Ordering::Relaxed)) << 32 | u64::from(NUMBER.with(|number| *number)))
    }

    /// Returns true if the thread belongs to this process, so that it can continue.
    pub(crate) fn is_here(self) -> bool {
        self.0 >> 32 == u64::from(FORKS.load(Ordering::Relaxed))
    }

    /// Returns a number other than 0 for the thread.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the thread with number `bits`; `None` for 0.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        (bits != 0).then_some(Self(bits))
    }
}

/// Returns true if this process is a fork of a process that has called this function or made an [`Origin`].
pub(crate) fn is_fork() -> bool {
    count_forks();
    FORKS.load(Ordering::Relaxed) > 0
}

/// Starts to count forks. If several threads call it at once, each fork may count twice, which is harmless.
#[cfg(unix)]
fn count_forks() {
    static COUNTS: AtomicBool = AtomicBool::new(false);
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    if !COUNTS.load(Ordering::Acquire) {
        // SAFETY: the function may be called in a fork at any time: it only adds to an atomic number.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        // Registration fails only if a few bytes of memory cannot be allocated.
        assert_eq!(refused, 0, "no memory");
        COUNTS.store(true, Ordering::Release);
    }
}

/// Does nothing: this system has no forks.
#[cfg(not(unix))]
fn count_forks() {}

/// Value that depends on threads of the process that made it. A fork neither uses nor drops its copy.
pub(crate) struct Ours<T> {
    origin: Origin,
    value: ManuallyDrop<T>,
}

impl<T> Ours<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { origin: Origin::here(), value: ManuallyDrop::new(value) }
    }

    /// Returns the value; `None` in a fork.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.origin.is_here().then_some(&*self.value)
    }

    /// Returns the value; `None` in a fork.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.origin.is_here().then_some(&mut *self.value)
    }

    /// Returns the value, or its copy in a fork. Only for reads of parts that no other thread changes.
    pub(crate) fn anywhere(&self) -> &T {
        &self.value
    }

    /// Returns the process that made the value.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }
}

impl<T> Drop for Ours<T> {
    fn drop(&mut self) {
        if self.origin.is_here() {
            // SAFETY: the value is dropped only here, and is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

debug_as!(<T: fmt::Debug> Ours<T>, |self, f| {
    if let Some(value) = self.get() { value.fmt(f) } else { f.write_str("(of another process)") }
});

/// Value that is separate in each process. A fork starts with a new value, independent of the parent's value.
pub(crate) struct PerProcess<T> {
    make: fn() -> T,
    /// Latest value, freed with `self` in the process that made it.
    latest: AtomicPtr<Made<T>>,
    /// Marks that dropping `self` drops a value.
    _owns: PhantomData<T>,
}

/// Lock that is separate in each process.
pub(crate) type OwnLock<T> = PerProcess<Mutex<T>>;

struct Made<T> {
    origin: Origin,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    pub(crate) const fn new(make: fn() -> T) -> Self {
        Self { make, latest: AtomicPtr::new(std::ptr::null_mut()), _owns: PhantomData }
    }

    /// Returns the value of this process. Makes it if needed: several threads may call `make` at once, and one result
    /// is kept.
    #[inline]
    pub(crate) fn get(&self) -> &T {
        let latest = self.latest.load(Ordering::Acquire);
        // SAFETY: the pointer is null or a box of `add`, which was written before it was stored, and lives as long as
        // `self`.
        match unsafe { latest.as_ref() } {
            Some(made) if made.origin.is_here() => &made.value,
            _ => self.add(latest),
        }
    }

    #[cold]
    fn add(&self, latest: *mut Made<T>) -> &T {
        let made = Box::into_raw(Box::new(Made { origin: Origin::here(), value: (self.make)() }));
        match self.latest.compare_exchange(latest, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: the box was made here and now lives as long as `self`. The replaced box is the parent's, and is
            // not freed.
            Ok(_) => unsafe { &(*made).value },
            Err(_) => {
                // SAFETY: the box was made here, and no other thread has its address.
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
    /// Locks the value of this process.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.get().locked()
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let latest = *self.latest.get_mut();
        // SAFETY: the pointer is null or a box of `add`. `self` is borrowed mutably, so no other thread uses it.
        if unsafe { latest.as_ref() }.is_some_and(|made| made.origin.is_here()) {
            // SAFETY: as above. The box was made in this process, so it depends on no thread that is missing here.
            drop(unsafe { Box::from_raw(latest) });
        }
    }
}

debug_as!(<T> PerProcess<T>, |self, f| f.write_str("PerProcess"));

#[cfg(all(test, unix))]
pub(crate) mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Runs `work` in a fork. Returns the exit code: 0 if `work` returns true.
    pub(crate) fn in_fork(work: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child calls `work`, which takes no lock that another thread may hold, and exits.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = if work() { 0 } else { 1 };
            // SAFETY: ends this process without exit handlers.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: `pid` is the child, and `status` is valid for writes.
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
            // A fork of a fork behaves alike.
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
