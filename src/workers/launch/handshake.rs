//! The first words between a parent and its new worker.
//!
//! The worker connects to a socket that the parent made for it, says which build it is, and gets its program and its
//! channels. `IpcOneShotServer::accept` neither times out nor notices that nobody will come, so a thread of its own waits
//! there, while the caller watches the worker and, when that is dead or late, connects in its place.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use ipc_channel::IpcError;
use ipc_channel::ipc::{IpcOneShotServer, IpcReceiver, IpcSender};
use rustix::event::EventfdFlags;
use rustix::fs::Access;
use serde::{Deserialize, Serialize};

use super::child::words;
use super::failure::LaunchFailure;
use super::identity::Identity;
use super::program::Program;
use crate::workers::control::{ToWorker, Up, send};
use crate::workers::sys::process::{Process, wait_any};
use crate::workers::sys::signals;

/// The first thing said on a new connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    /// The worker's.
    Hello(Hello),
    /// The parent's own: nobody will come.
    Nobody,
}

/// Who the worker is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The module that holds its gristmill code.
    pub(crate) module: Identity,
    /// Where to tell it what to do.
    pub(crate) tell: IpcSender<Order>,
}

/// What the worker is told, piece by piece.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The next bytes of its pipeline's configuration.
    Cfg(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The rest, last.
    Start(Box<Start>),
}

/// What the worker is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    /// Its number.
    pub(crate) worker: u64,
    /// Which of several workers it is.
    pub(crate) place: u64,
    /// Its cap on private writable memory, in bytes.
    pub(crate) heap_limit: Option<u64>,
    /// Whether its standard input is the slab.
    pub(crate) slab: bool,
    /// What the parent has found out of tokenizers.
    #[cfg(feature = "text")]
    pub(crate) tokenizers: crate::text::Known,
    /// What it runs.
    pub(crate) program: Program,
    /// From the parent.
    pub(crate) inbox: IpcReceiver<ToWorker>,
    /// To the parent.
    pub(crate) outbox: IpcSender<Up>,
}

impl Start {
    /// Bytes of configuration in a message. `ipc-channel` splits messages of more than some 200 KB, and then a sender waits
    /// for ever if the receiver dies.
    const PIECE: usize = 64 << 10;

    pub(crate) fn send(self, cfg: &[u8], to: &IpcSender<Order>) -> Result<(), IpcError> {
        for piece in cfg.chunks(Self::PIECE) {
            send(to, || Order::Cfg(piece.to_vec()))?;
        }
        to.send(Order::Start(Box::new(self)))
    }

    pub(crate) fn receive(from: &IpcReceiver<Order>) -> Result<Self, IpcError> {
        let mut cfg = Vec::new();
        loop {
            match from.recv()? {
                Order::Cfg(piece) => cfg.extend(piece),
                Order::Start(mut start) => {
                    start.program.set_cfg(cfg);
                    return Ok(*start);
                }
            }
        }
    }
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
        // It panics on some of the errors that this one finds.
        if let Err(e) = rustix::fs::access(&directory, Access::WRITE_OK | Access::EXEC_OK) {
            return Err(LaunchFailure::Rendezvous { directory, why: e.to_string() });
        }
        match catch_unwind(IpcOneShotServer::new) {
            Ok(Ok((server, path))) => Ok(Self { server, path }),
            Ok(Err(e)) => Err(LaunchFailure::Rendezvous { directory, why: e.to_string() }),
            Err(panic) => Err(LaunchFailure::Rendezvous { directory, why: words(&*panic) }),
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Waits for the worker's greeting. On failure the worker may still run.
    pub(crate) fn accept(self, process: &Process, limit: Duration) -> Result<Hello, Unmet> {
        let deadline = Instant::now() + limit;
        let (tell, told) = bounded(1);
        let over = Arc::new(rustix::event::eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| Unmet::Watch(e.into()))?);
        let accept = {
            let over = over.clone();
            move || {
                signals::block_all();
                let _ = tell.send(catch_unwind(AssertUnwindSafe(|| self.server.accept())));
                // It cannot fail: the counter is far from full.
                let _ = rustix::io::write(&over, &1u64.to_ne_bytes());
            }
        };
        let accept = thread::Builder::new().name("gristmill-accept".into()).spawn(accept).map_err(Unmet::Watch)?;
        let seen = wait_any([over.as_fd(), process.fd()], Some(deadline));
        if !matches!(seen, Ok(Some(0))) {
            // If the worker has connected but says nothing, its death ends the wait; else the word below does.
            process.kill();
            if let Ok(server) = IpcSender::connect(self.path) {
                let _ = signals::without_sigpipe(|| server.send(Greeting::Nobody));
            }
        }
        // Should even that not be heard, because somebody has removed the socket, the thread is left to itself.
        let heard = told.recv_timeout(Duration::from_secs(1));
        if heard.is_ok() {
            // It ends now, and its descriptors with it.
            let _ = accept.join();
        }
        match (heard, seen) {
            (Ok(Ok(Ok((_, Greeting::Hello(hello))))), Ok(Some(_))) => Ok(hello),
            (_, Ok(Some(1))) => Err(Unmet::Died),
            (_, Ok(None)) => Err(Unmet::TimedOut),
            (_, Err(e)) => Err(Unmet::Watch(e)),
            (Ok(Ok(Err(e))), _) => Err(Unmet::NoGreeting(e.to_string())),
            (Ok(Err(panic)), _) => Err(Unmet::NoGreeting(words(&*panic))),
            (_, _) => Err(Unmet::NoGreeting("not a worker's words".into())),
        }
    }
}

/// Why nobody was met.
#[derive(Debug)]
pub(crate) enum Unmet {
    /// The worker is dead.
    Died,
    /// The worker was late, and is killed.
    TimedOut,
    /// What came was no greeting.
    NoGreeting(String),
    /// The kernel refuses to watch.
    Watch(io::Error),
}
