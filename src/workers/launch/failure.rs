//! Reasons why a worker could not be started.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::Exit;
use crate::error::{Error, ErrorKind};

/// Reason why a worker could not be started. It is the source of the [`Error`] that reports it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchFailure {
    #[error("gristmill's code is in {}, not in the program, which can thus not be started as a worker", .0.display())]
    InLibrary(PathBuf),
    #[error("the program was started through the dynamic loader, so it cannot be started again as a worker")]
    ThroughLoader,
    #[error("this process was itself started as a worker, but has reached the program's own code")]
    WorkerAstray,
    #[error("no room for the descriptors of a worker: {0}")]
    Descriptors(#[source] io::Error),
    #[error("cannot start {}: {source}", .program.display())]
    Spawn { program: PathBuf, source: io::Error },
    #[error("cannot watch worker processes: {0}")]
    Watch(#[source] io::Error),
    #[error("the worker process (pid {}) ended before it connected: {exit}", .exit.pid)]
    Died { exit: Exit },
    #[error("the worker process (pid {pid}) did not connect within {limit:?}")]
    TimedOut { pid: u32, limit: Duration },
    #[error("the worker process (pid {}) answered with an invalid greeting: {what}", .exit.pid)]
    NoGreeting { exit: Exit, what: String },
    #[error("the worker's program {} is another build than {}", .worker.display(), .ours.display())]
    OtherBuild { ours: PathBuf, worker: PathBuf },
    #[error("the worker process (pid {}) ended while it was given its program: {exit}", .exit.pid)]
    Unheard { exit: Exit },
}

impl LaunchFailure {
    fn help(&self) -> &'static str {
        match self {
            Self::InLibrary(_) => {
                "call `gristmill::workers::set_worker_command` with a program that loads that library and calls \
                 `gristmill::workers::init` in it, or run without workers"
            }
            Self::ThroughLoader => {
                "set GRISTMILL_WORKER_EXE to the program's own path, or call `gristmill::workers::set_worker_command`"
            }
            Self::WorkerAstray => {
                "unset GRISTMILL_WORKER, which is gristmill's own; if gristmill set it, the worker command must run \
                 this program, or call `gristmill::workers::init` first"
            }
            Self::Descriptors(_) => "raise the limit on open files (`ulimit -n`)",
            Self::Spawn { .. } => "check the worker command, and the limits on processes and memory",
            Self::Watch(_) => "gristmill needs Linux 5.4 or later, and a sandbox that allows pidfd_open and waitid",
            Self::Died { exit } => exit
                .advice()
                .unwrap_or("a worker command must run this program, a script by `exec`; see its standard error"),
            Self::TimedOut { .. } => {
                "a static constructor of the program may block, or the worker command is not this program; run without \
                 workers, or call `gristmill::workers::init` as the first line of `main`"
            }
            Self::NoGreeting { .. } | Self::OtherBuild { .. } => {
                "start the workers from the very program that is running: unset GRISTMILL_WORKER_EXE, or point it to \
                 the same build"
            }
            Self::Unheard { exit } => exit.advice().unwrap_or("see its standard error"),
        }
    }

    /// Returns true if a signal from another process ended the worker before its start was complete.
    pub(crate) fn is_from_outside(error: &Error) -> bool {
        let failure = std::error::Error::source(error).and_then(|source| source.downcast_ref());
        match failure {
            Some(Self::Died { exit } | Self::NoGreeting { exit, .. } | Self::Unheard { exit }) => {
                exit.is_from_outside()
            }
            _ => false,
        }
    }

    /// Converts the failure to the crate's error, with the failure as its source.
    pub(crate) fn into_error(self) -> Error {
        Error::new(ErrorKind::Worker, self.to_string()).help(self.help()).caused_by(self)
    }
}
