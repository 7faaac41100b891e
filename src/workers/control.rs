//! Messages between the parent and a worker, over a [`Channel`].
//!
//! Only positions and descriptors travel here, a few dozen bytes a message; elements travel in the slab. The parent holds
//! a [`Worker`](super::launch::Worker) and hears [`Event`]s, the worker holds a [`Session`].

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

/// From the parent to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// Build the pipeline and get ready: the first message.
    Begin(Begin),
    /// Evaluate a range of a border stage into an extent.
    Task(Task),
    /// Work on so many threads at a time from now on.
    Active(u32),
    /// Tell what was counted.
    Tell,
    /// Finish what is begun, and end.
    Stop,
}

/// Facts that a worker needs beside its pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// Threads that evaluate.
    pub(crate) threads: u32,
    /// Threads that work at a time, at first.
    pub(crate) active: u32,
    /// Bytes of extents that it may keep at most.
    pub(crate) keep: u64,
    /// Whether stages count and measure.
    pub(crate) counted: bool,
    /// Whether others may be given what lies between its ranges.
    pub(crate) one_of_many: bool,
    /// The stages of the parent's pipeline, a line each: the worker's must be the same.
    pub(crate) pipeline: Vec<String>,
}

/// A range of root indices, or of elements of a lane, to evaluate, and where to put the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Names the task in the answer; never used twice in a run.
    pub(crate) id: u64,
    /// The stage whose output is wanted.
    pub(crate) border: Border,
    /// The first root index.
    pub(crate) start: u64,
    /// One past the last root index.
    pub(crate) end: u64,
    /// The indices that those from the first on stand for, if others than themselves.
    pub(crate) listed: Option<Vec<u64>>,
    /// The index from which groups are counted, if they may be made one.
    pub(crate) groups_from: Option<u64>,
    /// The lane whose elements these are, and where it is to be read on, if they are of one.
    pub(crate) lane: Option<Segment>,
    /// The elements that are numbered so, if the parent has read them.
    pub(crate) fed: Option<Fed>,
    /// Whether it may be what killed others: nothing else is to be evaluated beside it.
    pub(crate) alone: bool,
    /// The place of the result.
    pub(crate) extent: ExtentId,
}

/// From a worker to the parent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// The pipeline is built; tasks may come.
    Ready(Ready),
    /// A task is done.
    Done(Done),
    /// A task's extent does not hold even its first slot, or cannot be delivered.
    Need(Need),
    /// An extent that the worker [kept](Need::kept) is used by nothing any more.
    Returned(ExtentId),
    /// Counts since the last ones were told.
    Told(Tally),
    /// The worker cannot go on, and ends: its factory refused, or it panicked.
    Failed(Told),
}

/// A worker that has built its pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// Time that the pipeline took to build, in nanoseconds.
    pub(crate) build_ns: u64,
}

/// The result of a [`Task`]: slots of root indices from its start on lie in its extent, or groups of them as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The task's.
    pub(crate) id: u64,
    pub(crate) evaluated: Evaluated,
    /// Wall time.
    pub(crate) took: Duration,
    /// Counts of its stages since they last told, now and then.
    pub(crate) tally: Option<Tally>,
}

/// A [`Task`] that must be given a larger extent, or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Need {
    /// The task's.
    pub(crate) id: u64,
    /// Bytes that its first slot or group takes, if that is why; else 0.
    pub(crate) bytes: u64,
    /// Whether the worker keeps the extent, because something in it is in use, until it [says](FromWorker::Returned) otherwise.
    pub(crate) kept: bool,
}

/// Something that happened to a worker, as the parent hears it.
#[derive(Debug)]
pub(crate) struct Event<E = Exit> {
    /// The number that the worker was started with.
    pub(crate) worker: u64,
    /// The event.
    pub(crate) what: What<E>,
}

/// See [`Event`].
#[expect(clippy::large_enum_variant, reason = "nearly all events are messages")]
#[derive(Debug)]
pub(crate) enum What<E = Exit> {
    /// It sent a message.
    Message(FromWorker),
    /// It is gone and reaped. The last event of a worker.
    Exited(E),
}

/// A worker's end of the channel. All its threads may share one.
#[derive(Debug)]
pub(crate) struct Session {
    worker: u64,
    #[cfg_attr(not(feature = "python"), expect(dead_code, reason = "for functions of Python"))]
    place: u64,
    channel: Arc<Channel>,
    stopped: Mutex<bool>,
    slab: Option<Arc<WorkerSlab>>,
    built_in: Duration,
}

impl Session {
    pub(crate) fn new(worker: u64, channel: Arc<Channel>, slab: Option<Arc<WorkerSlab>>) -> Self {
        Self { worker, place: 0, channel, stopped: Mutex::new(false), slab, built_in: Duration::ZERO }
    }

    /// The same, as this one of several workers.
    pub(crate) fn at_place(self, place: u64) -> Self {
        Self { place, ..self }
    }

    /// Its number among several workers: of those that there are at a time, none has another's.
    #[cfg(feature = "python")]
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// The number that this worker was started with.
    pub(crate) fn worker(&self) -> u64 {
        self.worker
    }

    pub(crate) fn set_built_in(&mut self, time: Duration) {
        self.built_in = time;
    }

    /// Time that the factory took.
    pub(crate) fn built_in(&self) -> Duration {
        self.built_in
    }

    /// The slab, if the parent gave one; for the first who asks.
    pub(crate) fn take_slab(&mut self) -> Option<Arc<WorkerSlab>> {
        self.slab.take()
    }

    #[cfg(test)]
    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Waits for the next message; `None` after [`ToWorker::Stop`], or when the parent is gone, for every thread that asks.
    ///
    /// Of several waiting threads one gets the message, without being woken by another first.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] for bytes that are no message.
    pub(crate) fn recv(&self) -> Result<Option<ToWorker>> {
        // Held while it waits: those that wait behind it see that there is nothing more.
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

    /// Sends a message; it blocks while the parent is some hundred messages behind.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] when the parent is gone.
    pub(crate) fn send(&self, message: FromWorker) -> Result<()> {
        self.channel.send(&message).map_err(|e| broken("message to the parent", e.into()))
    }
}

fn broken(what: &str, error: Broken) -> Error {
    Error::new(ErrorKind::Worker, format!("{what}: {error}")).caused_by(error)
}
