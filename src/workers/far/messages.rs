//! Messages to and from remote workers, with the requested and the actual packing.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::parcel::{Packing, pack};
use crate::workers::control::{FromWorker, ToWorker};

/// Message to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request<M = ToWorker> {
    pub(super) message: M,
    /// Packing for the block of the answer, used only if the packed block has at most `most` bytes.
    pub(super) packing: Packing,
    pub(super) most: u64,
}

/// Answer of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// `None` if the message needs no answer.
    pub(super) message: Option<FromWorker>,
    pub(super) facts: Facts,
    /// `None` if no packing was requested.
    pub(super) packed: Option<Packed>,
}

/// Result of packing a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Packed {
    pub(super) packing: Packing,
    pub(super) took: Duration,
    /// Whether the block is packed; false if packing would not have made it smaller.
    pub(super) smaller: bool,
}

/// Facts about a worker's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) pid: u32,
    /// Machine of the worker, as named by its engine.
    pub(super) host: String,
    pub(super) cpu: Duration,
    pub(super) heap_bytes: u64,
}

impl Facts {
    pub(super) fn who(&self) -> String {
        format!("pid {} on {}", self.pid, self.host)
    }
}

impl Request<&ToWorker> {
    pub(super) fn write(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(self)
            .map_err(|e| Error::new(ErrorKind::Worker, format!("a message cannot be written: {e}")))
    }
}

impl Request {
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes)
            .map_err(|e| Error::new(ErrorKind::Worker, format!("the parent sent an invalid message: {e}")))
    }
}

/// Packs a block if the packed block is smaller and has at most `most` bytes.
pub(super) fn packed(block: Buffer, packing: Packing, most: u64) -> (Buffer, Option<Packed>) {
    if packing == Packing::Plain {
        return (block, None);
    }
    let begun = Instant::now();
    let parcel = pack(block.as_bytes(), packing, usize::try_from(most).unwrap_or(usize::MAX));
    let packed = Packed { packing, took: begun.elapsed(), smaller: parcel.is_some() };
    (parcel.map_or(block, Buffer::from_vec), Some(packed))
}
