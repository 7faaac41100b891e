//! The end of a worker, as a message.

use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::workers::sys::process::Status;
use crate::workers::sys::signals;

/// The end of a worker. `Display` completes "worker 3 (pid 1234) …" or "… : ".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Process id of the worker. Another process may have it by now.
    pub(crate) pid: u32,
    /// Status that the kernel reported.
    pub(crate) status: Status,
    /// Whether the parent had sent a request to stop.
    pub(crate) told_to_stop: bool,
    /// Whether the parent had killed the worker.
    pub(crate) killed_by_us: bool,
    /// Description of invalid bytes from the worker, if the parent killed the worker because of them.
    pub(crate) nonsense: Option<String>,
}

impl Exit {
    /// Returns true if the worker ended with code 0 after a request to stop.
    #[cfg(test)]
    pub(crate) fn is_clean(&self) -> bool {
        self.told_to_stop && self.status == Status::Code(0)
    }

    /// Returns true if another process probably ended the worker: no process sends itself these signals by mistake.
    pub(crate) fn is_from_outside(&self) -> bool {
        let killed = matches!(self.status, Status::Signal { number: libc::SIGKILL, .. } | Status::Unknown);
        !self.killed_by_us && self.nonsense.is_none() && (killed || self.is_asked_for())
    }

    /// Returns true if SIGTERM, SIGHUP or SIGINT ended the worker, the usual signals for stopping a program.
    pub(crate) fn is_asked_for(&self) -> bool {
        matches!(self.status, Status::Signal { number: libc::SIGTERM | libc::SIGHUP | libc::SIGINT, .. })
    }

    /// Returns a likely cause and a remedy, if the status points to them.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        if self.killed_by_us {
            return None;
        }
        match self.status {
            Status::Signal { number: libc::SIGKILL, .. } => {
                Some("the signal came from the kernel's out-of-memory killer (see `dmesg`) or from another process")
            }
            Status::Signal { number: libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE, .. } => {
                Some("a bug in native code, or a stack overflow; run the pipeline without workers under a debugger")
            }
            Status::Signal { number: libc::SIGABRT, .. } => {
                Some("it aborted itself, see its standard error; after a failed allocation, the heap limit is too low")
            }
            Status::Code(0) if !self.told_to_stop => Some("code that runs in a worker must not end the process"),
            _ => None,
        }
    }

    /// Converts the exit to an error about `what`, such as "worker 3".
    pub(crate) fn error(&self, what: impl fmt::Display) -> Error {
        let error = Error::new(ErrorKind::Worker, format!("{what} (pid {}): {self}", self.pid));
        if let Some(advice) = self.advice() { error.help(advice) } else { error }
    }
}

display_as!(Exit, |self, f| {
    if let Some(nonsense) = &self.nonsense {
        return write!(f, "killed because it sent an invalid message: {nonsense}");
    }
    match self.status {
        Status::Signal { number: libc::SIGKILL, .. } if self.killed_by_us => f.write_str("killed by its parent"),
        Status::Code(code) => {
            write!(f, "exit code {code}")?;
            f.write_str(if self.told_to_stop { " after the request to stop" } else { " before the request to stop" })
        }
        Status::Signal { number, core } => {
            write!(f, "killed by signal {number}")?;
            if let Some(name) = signals::name(number) {
                write!(f, " ({name})")?;
            }
            f.write_str(if core { ", core written" } else { "" })
        }
        Status::Unknown => f.write_str("ended with an unknown exit status"),
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(status: Status, told_to_stop: bool, killed_by_us: bool) -> Exit {
        Exit { pid: 7, status, told_to_stop, killed_by_us, nonsense: None }
    }

    #[test]
    fn every_end_has_words() {
        let signal = |number| Status::Signal { number, core: false };
        for (status, told, ours, words, clean) in [
            (Status::Code(0), true, false, "exit code 0 after the request to stop", true),
            (Status::Code(0), false, false, "exit code 0 before the request to stop", false),
            (Status::Code(3), true, false, "exit code 3 after the request to stop", false),
            (signal(11), false, false, "killed by signal 11 (SIGSEGV)", false),
            (signal(9), false, false, "killed by signal 9 (SIGKILL)", false),
            (signal(9), false, true, "killed by its parent", false),
            (signal(40), false, false, "killed by signal 40", false),
            (
                Status::Signal { number: 6, core: true },
                false,
                false,
                "killed by signal 6 (SIGABRT), core written",
                false,
            ),
        ] {
            let exit = exit(status, told, ours);
            assert_eq!((exit.to_string().as_str(), exit.is_clean()), (words, clean));
        }
    }

    #[test]
    fn what_others_do_is_told_from_what_a_worker_does() {
        let signal = |number| Status::Signal { number, core: false };
        for (status, outside, asked) in [
            (signal(libc::SIGKILL), true, false),
            (signal(libc::SIGTERM), true, true),
            (signal(libc::SIGHUP), true, true),
            (Status::Unknown, true, false),
            (signal(libc::SIGSEGV), false, false),
            (signal(libc::SIGABRT), false, false),
            (Status::Code(1), false, false),
        ] {
            let ended = exit(status, false, false);
            assert_eq!((ended.is_from_outside(), ended.is_asked_for()), (outside, asked), "{ended}");
        }
        assert!(!exit(signal(libc::SIGKILL), false, true).is_from_outside());
    }

    #[test]
    fn the_error_names_worker_pid_and_remedy() {
        let error = exit(Status::Code(0), false, false).error("worker 3");
        assert_eq!(error.to_string(), "worker 3 (pid 7): exit code 0 before the request to stop");
        assert_eq!(error.kind(), ErrorKind::Worker);
        assert!(error.help_text().unwrap().contains("must not end the process"));
        assert!(exit(Status::Signal { number: 9, core: false }, false, true).advice().is_none());
    }
}
