//! Tasks that go from whoever writes to the threads that encode.

use crossbeam_channel::{Receiver, unbounded};
use serde_json::Value as Json;

use super::budget::Room;
use crate::element::Element;

/// A shard to be written by one thread, while its elements still arrive.
#[derive(Debug)]
pub(super) struct Task {
    /// Of the shard, from 0.
    pub(super) number: u64,
    pub(super) first_record: u64,
    /// Ends without an [`End`](Part::End) where the shard is given up.
    pub(super) parts: Receiver<Part>,
}

impl Task {
    /// The elements that have arrived, while nobody encodes them.
    pub(super) fn elements(&mut self) -> Vec<Element> {
        let (sender, parts) = unbounded();
        let mut all = Vec::new();
        for part in std::mem::replace(&mut self.parts, parts) {
            if let Part::Elements(elements, _) = &part {
                all.extend(elements.iter().cloned());
            }
            // The other end is this task's.
            let _ = sender.send(part);
        }
        all
    }
}

/// A piece of a shard.
#[derive(Debug)]
pub(super) enum Part {
    /// Elements, and the room in memory that they take.
    Elements(Vec<Element>, Room),
    /// The shard is whole.
    End(Box<Ending>),
}

/// Facts of a shard that are known when it ends.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) records: u64,
    pub(super) raw_bytes: u64,
    /// The state of the pipeline behind its last record.
    pub(super) state: Option<Json>,
}
