//! The first words between a parent and its new worker.
//!
//! The worker inherits its end of a connection as standard input, says there which build it is, and gets its program and its
//! memory. The connection has no name, so no other process can come in between, and no file is left of it.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::program::Program;
use crate::workers::channel::{Broken, Channel};

/// The first thing that a worker says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    greeting: u64,
    /// The module that holds its gristmill code.
    pub(crate) module: Identity,
}

/// Greeting that another process would hardly say.
const GREETING: u64 = u64::from_le_bytes(*b"gmhello\0");

impl Hello {
    pub(crate) fn of(module: Identity) -> Self {
        Self { greeting: GREETING, module }
    }

    /// Hears the greeting of the process behind `process`.
    ///
    /// # Errors
    /// [`Broken`], with [`Broken::Nonsense`] for something that is no greeting.
    pub(crate) fn receive(from: &Channel, process: BorrowedFd<'_>, deadline: Instant) -> Result<Self, Broken> {
        let hello: Self = from.recv_from(process, Some(deadline))?;
        match hello.greeting {
            GREETING => Ok(hello),
            other => Err(Broken::Nonsense(format!("{other:#x}"))),
        }
    }
}

/// Message to the worker, piece by piece.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The next bytes of its pipeline's configuration.
    Cfg(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The rest, last.
    Start(Box<Start>),
}

/// Assignment of the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    /// Its number.
    pub(crate) worker: u64,
    /// Its number among several workers.
    pub(crate) place: u64,
    /// Its cap on private writable memory, in bytes.
    pub(crate) heap_limit: Option<u64>,
    /// Knowledge that the parent has of tokenizers.
    #[cfg(feature = "text")]
    pub(crate) tokenizers: crate::text::Known,
    /// Program that the worker runs.
    pub(crate) program: Program,
}

impl Start {
    /// Bytes of configuration in a message.
    const PIECE: usize = 1 << 20;

    /// Sends it, with the worker's shared memory.
    pub(crate) fn send(self, cfg: &[u8], slab: Option<BorrowedFd<'_>>, to: &Channel) -> io::Result<()> {
        for piece in cfg.chunks(Self::PIECE) {
            to.send(&Order::Cfg(piece.to_vec()))?;
        }
        to.send_with(&Order::Start(Box::new(self)), slab)
    }

    pub(crate) fn receive(from: &Channel) -> Result<Self, Broken> {
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
