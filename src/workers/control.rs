//! Messages between the parent and a worker, over a [`Channel`].
//!
//! The channel carries only positions and descriptors, a few dozen bytes per message; elements travel in the slab. The
//! parent holds a [`Worker`](super::launch::Worker) and receives [`Event`]s; the worker holds a [`Session`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::channel::{Broken, Channel};
use super::launch::Exit;
use super::slab::{ExtentId, WorkerSlab};
use crate::cx::Tally;
use crate::error::{Error, ErrorKind, Result, Told};
use crate::exec::remote::{Border, Evaluated, Fed, Segment};
use crate::sync::Locked;

/// Message from the parent to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// Build the pipeline and get ready. Always the first message.
    Begin(Begin),
    /// Evaluate a range of a border stage into an extent.
    Task(Task),
    /// Limit the number of threads that evaluate at once.
    Active(u32),
    /// Send the counts.
    Tell,
    /// Finish the tasks in progress, then exit.
    Stop,
}

/// Settings that a worker needs in addition to its pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// Threads that evaluate, at most.
    pub(crate) threads: u32,
    /// Threads that evaluate at once, initially.
    pub(crate) active: u32,
    /// Maximum bytes of extents that the worker may keep.
    pub(crate) keep: u64,
    /// Whether stages count and measure.
    pub(crate) counted: bool,
    /// Whether indices between the worker's ranges may go to other workers.
    pub(crate) one_of_many: bool,
    /// Lines of the stages of the parent's pipeline; the worker's pipeline must have equal lines.
    pub(crate) pipeline: Vec<String>,
}

/// A range of root indices or of elements of a lane to evaluate, and the extent for the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// ID of the task, repeated in the answer; unique in a run.
    pub(crate) id: u64,
    /// The stage whose output is requested.
    pub(crate) border: Border,
    /// The first root index.
    pub(crate) start: u64,
    /// One past the last root index.
    pub(crate) end: u64,
    /// Indices that the range maps to, from `start` on; `None` for the identity.
    pub(crate) listed: Option<Vec<u64>>,
    /// Index from which groups are counted, if a group may be evaluated into one batch.
    pub(crate) groups_from: Option<u64>,
    /// The lane of the elements and the position to resume it from, if the task reads a lane.
    pub(crate) lane: Option<Segment>,
    /// The elements with these numbers, if the parent has read them.
    pub(crate) fed: Option<Fed>,
    /// Whether the task may have killed other workers; no other task may run in this worker meanwhile.
    pub(crate) alone: bool,
    /// Extent for the result.
    pub(crate) extent: ExtentId,
}

/// Message from a worker to the parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// The pipeline is built; tasks may come.
    Ready(Ready),
    /// A task is done.
    Done(Done),
    /// The task's extent is too small for the first slot, or cannot be delivered.
    Need(Need),
    /// An extent that the worker had [kept](Need::kept) is no longer in use.
    Returned(ExtentId),
    /// Counts since the previous report.
    Told(Tally),
    /// The worker cannot continue and exits: its factory failed, or it panicked.
    Failed(Told),
}

/// Report of a worker that has built its pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// Time that the pipeline took to build, in nanoseconds.
    pub(crate) build_ns: u64,
}

/// Result of a [`Task`]: its extent contains the slots of root indices from the start on, or a batch for each group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// ID of the task.
    pub(crate) id: u64,
    pub(crate) evaluated: Evaluated,
    /// Wall time.
    pub(crate) took: Duration,
    /// Counts of the worker's stages since the last report; sent from time to time.
    pub(crate) tally: Option<Tally>,
}

/// Request for a larger or another extent for a [`Task`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Need {
    /// ID of the task.
    pub(crate) id: u64,
    /// Bytes of the task's first slot or group if the extent was too small; otherwise 0.
    pub(crate) bytes: u64,
    /// Whether the worker keeps the extent because of data in use, until [`FromWorker::Returned`].
    pub(crate) kept: bool,
}

/// An event of a worker, as received by the parent.
#[derive(Debug)]
pub(crate) struct Event<E = Exit> {
    /// The number that the worker was started with.
    pub(crate) worker: u64,
    /// Kind of the event.
    pub(crate) what: What<E>,
}

/// Kind of an [`Event`].
#[expect(clippy::large_enum_variant, reason = "nearly all events are messages")]
#[derive(Debug)]
pub(crate) enum What<E = Exit> {
    /// The worker sent a message.
    Message(FromWorker),
    /// The worker has exited and was reaped. Always the last event of a worker.
    Exited(E),
}

/// The worker's end of the channel, shared by all threads of the worker.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) worker: u64,
    pub(crate) place: u64,
    channel: Arc<Channel>,
    stopped: Mutex<bool>,
    slab: Option<Arc<WorkerSlab>>,
    pub(crate) built_in: Duration,
}

impl Session {
    pub(crate) fn new(worker: u64, channel: Arc<Channel>, slab: Option<Arc<WorkerSlab>>) -> Self {
        Self { worker, place: 0, channel, stopped: Mutex::new(false), slab, built_in: Duration::ZERO }
    }

    /// Sets the worker's place among several workers.
    pub(crate) fn at_place(self, place: u64) -> Self {
        Self { place, ..self }
    }

    pub(crate) fn set_built_in(&mut self, time: Duration) {
        self.built_in = time;
    }

    /// Takes the slab, if the parent gave one; `None` from the second call on.
    pub(crate) fn take_slab(&mut self) -> Option<Arc<WorkerSlab>> {
        self.slab.take()
    }

    #[cfg(test)]
    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Waits for the next message; returns `None` in every thread after [`ToWorker::Stop`] or if the parent is gone.
    ///
    /// If several threads wait, exactly one is woken with the message.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] for bytes that are no message.
    pub(crate) fn recv(&self) -> Result<Option<ToWorker>> {
        // The lock is held during the wait, so the next waiting thread sees that the channel has ended.
        let mut stopped = self.stopped.locked();
        if *stopped {
            return Ok(None);
        }
        match self.channel.recv() {
            Ok(ToWorker::Stop) | Err(Broken::Closed) => {
                *stopped = true;
                Ok(None)
            }
            Ok(message) => Ok(Some(message)),
            Err(e) => Err(broken("message from the parent", e)),
        }
    }

    /// Sends a message; blocks if the parent has some hundred unread messages.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the parent is gone.
    pub(crate) fn send(&self, message: FromWorker) -> Result<()> {
        self.channel.send(&message).map_err(|e| broken("message to the parent", e.into()))
    }
}

fn broken(what: &str, error: Broken) -> Error {
    Error::new(ErrorKind::Worker, format!("{what}: {error}")).caused_by(error)
}
