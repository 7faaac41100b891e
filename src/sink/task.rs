//! Tasks for the threads that encode.

use crossbeam_channel::{Receiver, unbounded};
use serde_json::Value as Json;

use super::budget::Room;
use crate::element::Element;

/// A shard that a single thread writes while its elements arrive.
#[derive(Debug)]
pub(super) struct Task {
    /// Number of the shard, from 0.
    pub(super) number: u64,
    pub(super) first_record: u64,
    /// Parts of the shard. The channel ends without an [`End`](Part::End) if the shard is given up.
    pub(super) parts: Receiver<Part>,
}

impl Task {
    /// Returns the elements that have arrived. No thread may encode them yet.
    pub(super) fn elements(&mut self) -> Vec<Element> {
        let (sender, parts) = unbounded();
        let mut all = Vec::new();
        for part in std::mem::replace(&mut self.parts, parts) {
            if let Part::Elements(elements, _) = &part {
                all.extend(elements.iter().cloned());
            }
            // This task holds the receiver, so the send succeeds.
            let _ = sender.send(part);
        }
        all
    }
}

/// A part of a shard.
#[derive(Debug)]
pub(super) enum Part {
    /// Elements, and the memory reserved for them.
    Elements(Vec<Element>, Room),
    /// End of a whole shard.
    End(Box<Ending>),
}

/// Facts of a shard that are available at its end.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) records: u64,
    pub(super) raw_bytes: u64,
    /// State of the pipeline after the shard's last record.
    pub(super) state: Option<Json>,
}
