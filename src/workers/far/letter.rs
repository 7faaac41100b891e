//! Messages of workers and what goes with them: in which way to answer, and how it was answered.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result};
use crate::wire::parcel::{Packing, pack};
use crate::workers::control::{FromWorker, ToWorker};

/// What a worker is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Letter<M = ToWorker> {
    pub(super) message: M,
    /// The way in which the block of the answer is to cross, packed only if it takes so many bytes at most.
    pub(super) packing: Packing,
    pub(super) most: u64,
}

/// What a worker answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// `None` where nothing was asked.
    pub(super) message: Option<FromWorker>,
    pub(super) facts: Facts,
    /// `None` where nothing was to be packed.
    pub(super) packed: Option<Packed>,
}

/// What came of packing a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Packed {
    pub(super) packing: Packing,
    pub(super) took: Duration,
    /// Whether it is packed: else it lies as it was, because it would not have been smaller.
    pub(super) smaller: bool,
}

/// Facts of a worker's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) pid: u32,
    /// The machine that it runs on, by the name that its engine gives that.
    pub(super) host: String,
    pub(super) cpu: Duration,
    pub(super) heap_bytes: u64,
}

impl Facts {
    pub(super) fn who(&self) -> String {
        format!("pid {} on {}", self.pid, self.host)
    }
}

impl Letter<&ToWorker> {
    pub(super) fn write(&self) -> Result<Vec<u8>> {
        postcard::to_stdvec(self)
            .map_err(|e| Error::new(ErrorKind::Worker, format!("a message cannot be written: {e}")))
    }
}

impl Letter {
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes)
            .map_err(|e| Error::new(ErrorKind::Worker, format!("the parent sent something that is no message: {e}")))
    }
}

/// Packs a block like that, where it is smaller then.
pub(super) fn packed(block: Buffer, packing: Packing, most: u64) -> (Buffer, Option<Packed>) {
    if packing == Packing::Plain {
        return (block, None);
    }
    let begun = Instant::now();
    let parcel = pack(block.as_bytes(), packing, usize::try_from(most).unwrap_or(usize::MAX));
    let packed = Packed { packing, took: begun.elapsed(), smaller: parcel.is_some() };
    (parcel.map_or(block, Buffer::from_vec), Some(packed))
}
