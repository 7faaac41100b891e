//! The first words between a parent and its new worker.
//!
//! The worker connects to a socket that the parent made for it, says which build it is, and gets its program and its
//! channels. `IpcOneShotServer::accept` neither times out nor notices that nobody will come, so a guard watches the
//! worker meanwhile and, when it is dead or late, connects itself.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use ipc_channel::ipc::{IpcOneShotServer, IpcReceiver, IpcSender};
use rustix::event::EventfdFlags;
use serde::{Deserialize, Serialize};

use super::child::words;
use super::failure::LaunchFailure;
use super::identity::Identity;
use super::program::Program;
use crate::workers::control::{ToWorker, Up};
use crate::workers::sys::process::{Process, wait_any};
use crate::workers::sys::signals;

/// The first thing said on a new connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    /// The worker's.
    Hello(Hello),
    /// The guard's: nobody will come.
    Nobody,
}

/// Who the worker is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Its process id.
    pub(crate) pid: u32,
    /// The module that holds its gristmill code.
    pub(crate) module: Identity,
    /// Where to tell it what to do.
    pub(crate) tell: IpcSender<Start>,
}

/// What the worker is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    /// Its number.
    pub(crate) worker: u64,
    /// Its cap on private writable memory, in bytes.
    pub(crate) heap_limit: Option<u64>,
    /// Whether its standard input is the slab.
    pub(crate) slab: bool,
    /// What it runs.
    pub(crate) program: Program,
    /// From the parent.
    pub(crate) inbox: IpcReceiver<ToWorker>,
    /// To the parent.
    pub(crate) outbox: IpcSender<Up>,
}

/// The socket to which one worker connects; its directory goes with it.
pub(crate) struct Rendezvous {
    server: IpcOneShotServer<Greeting>,
    path: String,
}

impl Rendezvous {
    pub(crate) fn open() -> Result<Self, LaunchFailure> {
        let directory = std::env::temp_dir();
        let bytes = directory.as_os_str().as_bytes();
        // `IpcOneShotServer` cuts a path that a socket address does not hold, and panics on one that is not UTF-8.
        let limit = 107 - "/.tmp123456/socket".len();
        if bytes.len() > limit {
            let why = format!("its path has {} bytes, a socket's allows {limit}", bytes.len());
            return Err(LaunchFailure::Rendezvous { directory, why });
        }
        if std::str::from_utf8(bytes).is_err() {
            return Err(LaunchFailure::Rendezvous { directory, why: "its path is not UTF-8".into() });
        }
        match IpcOneShotServer::new() {
            Ok((server, path)) => Ok(Self { server, path }),
            Err(e) => Err(LaunchFailure::Rendezvous { directory, why: e.to_string() }),
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Waits for the worker's greeting. On failure the worker may still run.
    pub(crate) fn accept(self, process: &Process, limit: Duration) -> Result<Hello, Unmet> {
        let over = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| Unmet::Watch(e.into()))?;
        let Self { server, path } = self;
        thread::scope(|scope| {
            let guard = thread::Builder::new()
                .name("gristmill-guard".into())
                .spawn_scoped(scope, || guard(process, &over, &path, Instant::now() + limit))
                .map_err(Unmet::Watch)?;
            let greeting = catch_unwind(AssertUnwindSafe(|| server.accept()));
            // It cannot fail: the counter is far from full.
            let _ = rustix::io::write(&over, &1u64.to_ne_bytes());
            let seen = guard.join().unwrap_or(Seen::Nothing);
            match (greeting, seen) {
                (Ok(Ok((_, Greeting::Hello(hello)))), Seen::Nothing | Seen::Death) => Ok(hello),
                (_, Seen::Death) => Err(Unmet::Died),
                (_, Seen::Lateness) => Err(Unmet::TimedOut),
                (Ok(Ok(_)), Seen::Nothing) => Err(Unmet::NoGreeting("a guard's words".into())),
                (Ok(Err(e)), Seen::Nothing) => Err(Unmet::NoGreeting(e.to_string())),
                (Err(panic), Seen::Nothing) => Err(Unmet::NoGreeting(words(&*panic))),
            }
        })
    }
}

/// Why nobody was met.
#[derive(Debug)]
pub(crate) enum Unmet {
    Died,
    TimedOut,
    NoGreeting(String),
    Watch(io::Error),
}

enum Seen {
    Nothing,
    Death,
    Lateness,
}

/// Watches the worker until the parent is `over` with waiting, and ends the wait if the worker dies or is late.
fn guard(process: &Process, over: &OwnedFd, path: &str, deadline: Instant) -> Seen {
    signals::block_all();
    let seen = match wait_any([over.as_fd(), process.fd()], Some(deadline)) {
        Ok(Some(0)) => return Seen::Nothing,
        Ok(Some(_)) => Seen::Death,
        Ok(None) | Err(_) => Seen::Lateness,
    };
    // If it has connected but says nothing, its death ends the wait; else the words below do.
    process.kill();
    if let Ok(server) = IpcSender::connect(path.to_owned()) {
        let _ = server.send(Greeting::Nobody);
    }
    seen
}
