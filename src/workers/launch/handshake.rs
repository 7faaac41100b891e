//! The first messages between a parent and its new worker.
//!
//! The worker inherits its end of a connection as standard input. On this connection the worker sends the identity of
//! its build, then receives its program and its memory. The connection has no name, so no other process can intervene,
//! and no file remains.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::program::Program;
use crate::workers::channel::{Broken, Channel};

/// First message of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    greeting: u64,
    /// Module that contains the worker's gristmill code.
    pub(crate) module: Identity,
}

/// Greeting that another process is unlikely to send.
const GREETING: u64 = u64::from_le_bytes(*b"gmhello\0");

impl Hello {
    pub(crate) fn of(module: Identity) -> Self {
        Self { greeting: GREETING, module }
    }

    /// Receives the greeting of the process with the descriptor `process`.
    ///
    /// # Errors
    /// [`Broken`]; in particular [`Broken::Nonsense`] if the message is not a greeting.
    pub(crate) fn receive(from: &Channel, process: BorrowedFd<'_>, deadline: Instant) -> Result<Self, Broken> {
        let hello: Self = from.recv_from(process, Some(deadline))?;
        match hello.greeting {
            GREETING => Ok(hello),
            other => Err(Broken::Nonsense(format!("{other:#x}"))),
        }
    }
}

/// Message to the worker. The assignment is sent in pieces.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Next bytes of the pipeline's configuration.
    Cfg(#[serde(with = "serde_bytes")] Vec<u8>),
    /// Last piece: the rest of the assignment.
    Start(Box<Start>),
}

/// Assignment of the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    /// Number of the worker.
    pub(crate) worker: u64,
    /// Number of the worker among several workers.
    pub(crate) place: u64,
    /// Cap on the worker's private writable memory, in bytes.
    pub(crate) heap_limit: Option<u64>,
    /// The parent's findings about tokenizers.
    #[cfg(feature = "text")]
    pub(crate) tokenizers: crate::text::Known,
    /// Program that the worker runs.
    pub(crate) program: Program,
}

impl Start {
    /// Bytes of configuration per message.
    const PIECE: usize = 1 << 20;

    /// Sends the assignment and the worker's shared memory.
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
