//! Processes by descriptor. A pidfd names a single process while it is open, even if the pid is reused.

#![allow(unsafe_code, reason = "`_exit` and `getauxval` are not in std")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus};

/// The end of a process, as reported by the kernel to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The process exited with this code.
    Code(i32),
    /// A signal ended the process.
    Signal {
        /// Number of the signal.
        number: i32,
        /// Whether the kernel wrote a core file.
        core: bool,
    },
    /// The process ended, but its status was taken elsewhere (a `wait` for any child, an ignored SIGCHLD).
    Unknown,
}

/// A child process. Dropping it kills the process and waits for its end, unless [`wait`](Self::wait) was called before.
///
/// In a fork of the process that started the child, killing and dropping do nothing: the child does not belong to the
/// fork.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    owner: u32,
    fd: OwnedFd,
    ended: AtomicBool,
    status: OnceLock<Status>,
    /// Reporter of the exit status, if the process is a child of another process.
    ends: Option<Arc<dyn Ends>>,
}

/// Another process whose children are treated as children of this process. It reports their exit status.
pub(crate) trait Ends: std::fmt::Debug + Send + Sync {
    /// Returns the exit status of the child `pid`, which has ended.
    fn status(&self, pid: u32) -> Status;
}

impl Process {
    /// Opens the child with `pid`. The caller must not have waited for the child.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let (ended, status) = (AtomicBool::new(false), OnceLock::new());
        Ok(Self { pid, owner: std::process::id(), fd: pidfd(pid)?, ended, status, ends: None })
    }

    /// Opens the child `pid` of another process. `ends` reports its exit status, and has not reaped it yet.
    pub(crate) fn of_another(pid: u32, ends: Arc<dyn Ends>) -> io::Result<Self> {
        let mut process = Self::open(pid)?;
        process.ends = Some(ends);
        Ok(process)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns true if this process, not a process that it was forked from, started the child.
    pub(crate) fn is_ours(&self) -> bool {
        self.owner == std::process::id()
    }

    /// Sends SIGKILL. Does nothing if the process has already ended.
    pub(crate) fn kill(&self) {
        if self.is_ours() {
            // Fails only if the process is gone: a parent may always signal its child.
            let _ = rustix::process::pidfd_send_signal(&self.fd, Signal::KILL);
        }
    }

    /// Waits until the process has ended, and reaps it.
    pub(crate) fn wait(&self) -> Status {
        *self.status.get_or_init(|| self.reap())
    }

    /// Returns true if the process is known to have ended. While this is false, the pid cannot have been reused.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Waits up to `time` for the end, and returns true if the process has ended. Does not reap the process.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        self.has_ended() || wait_readable(self.fd(), Some(Instant::now() + time)).unwrap_or(false)
    }

    /// Returns true if a signal has stopped the process and it has not been continued since.
    pub(crate) fn is_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let seen = retry_on_intr(|| rustix::process::waitid(WaitId::PidFd(self.fd.as_fd()), options));
        seen.is_ok_and(|status| status.is_some_and(|status| status.stopped()))
    }

    fn reap(&self) -> Status {
        if let Some(ends) = &self.ends {
            let _ = wait_readable(&self.fd, None);
            self.ended.store(true, Ordering::Release);
            return ends.status(self.pid);
        }
        let wait = |options| retry_on_intr(|| rustix::process::waitid(WaitId::PidFd(self.fd.as_fd()), options));
        let seen = wait(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        if seen.is_err() {
            // The child can no longer be waited for here. The descriptor still reports its end.
            let _ = wait_readable(&self.fd, None);
        }
        self.ended.store(true, Ordering::Release);
        if let Ok(Some(status)) = wait(WaitIdOptions::EXITED) { read(&status) } else { Status::Unknown }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_ours() && self.status.get().is_none() {
            self.kill();
            self.wait();
        }
    }
}

fn read(status: &WaitIdStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(number)) => Status::Signal { number, core: status.dumped() },
        (None, None) => Status::Unknown,
    }
}

/// Opens a descriptor of the process with `pid`. It becomes readable when the process ends.
pub(crate) fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Makes the kernel kill this process when the thread that started it ends, even if this process is stopped.
pub(crate) fn end_with_parent() {
    // If the kernel does not support it, this process ends once it notices that its parent has gone.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

/// Waits until `fd` is readable; returns false if `deadline` comes first.
pub(crate) fn wait_readable(fd: impl AsFd, deadline: Option<Instant>) -> io::Result<bool> {
    Ok(wait_any([fd.as_fd()], deadline)?.is_some())
}

/// Waits until any of `fds` is readable and returns its index, or `None` if `deadline` comes first.
pub(crate) fn wait_any<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    deadline: Option<Instant>,
) -> io::Result<Option<usize>> {
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let mut polled = fds.each_ref().map(|fd| PollFd::new(fd, PollFlags::IN));
        match rustix::event::poll(&mut polled, left.map(timespec).as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        }
        let ready = polled.iter().position(|p| !p.revents().is_empty());
        if ready.is_some() || left == Some(Duration::ZERO) {
            return Ok(ready);
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(time.subsec_nanos()) }
}

/// Ends this process at once: no destructors, no exit handlers, and no waiting for other threads.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any code, may be called at any time by any thread, and does not return.
    unsafe { libc::_exit(code) }
}

/// Returns true if this program runs with more rights than the user who started it (set-user-id, for example).
pub(crate) fn has_raised_rights() -> bool {
    // SAFETY: reads a word that the kernel left for this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
