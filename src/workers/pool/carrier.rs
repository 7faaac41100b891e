//! Transport to workers: delivers tasks and returns answers.
//!
//! The [coordinator](super::coordinator) handles order, memory, retries, tuning and the search for elements that kill
//! workers, for workers of any kind. A carrier starts a worker, sends messages, reports events, and allocates memory
//! for answers.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;

use crate::element::Owner;
use crate::error::{Error, Result};
use crate::exec::{LinkReport, WorkerReport};
use crate::workers::control::{Event, ToWorker};
use crate::workers::slab::ExtentId;

/// Transport to one kind of worker.
pub(crate) trait Carrier: Send + Sync + 'static {
    /// Link to one worker.
    type Link: Link;
    /// Memory for one answer.
    type Room: Room;
    /// Exit report of a worker.
    type End: End;

    /// Whether tasks are spread evenly over all workers if there are fewer tasks than capacity.
    const SPREADS: bool = false;

    /// Starts a worker, and sends its later events to `events`. Blocks until the worker is connected.
    ///
    /// # Errors
    /// If the worker cannot be started.
    fn start(&self, who: Recruit, events: &Sender<Event<Self::End>>) -> Result<Self::Link>;

    /// Returns true if `error` has an external cause that may soon be gone.
    fn is_from_outside(error: &Error) -> bool;

    /// Allocates `bytes` for the worker in `place`; returns `None` if no memory is free.
    fn room(&self, bytes: usize, place: usize) -> Option<Self::Room>;

    /// Allocates memory for the worker in `place` if no task in progress could free any.
    fn last_room(&self, bytes: usize, place: usize) -> Option<Self::Room>;

    /// Returns the place of a worker that wrote to delivered memory and the extent, if there is one.
    fn spoilt(&self) -> Option<(usize, String)> {
        None
    }

    /// Makes the next [`spoilt`](Self::spoilt) check all held memory.
    fn look_at_leases(&self) {}

    /// Ends the pass, and releases threads that wait in [`start`](Self::start).
    fn close(&self) {}

    /// Returns the links to the workers' machines, if these are other machines.
    fn links(&self) -> Vec<LinkReport> {
        Vec::new()
    }

    /// Returns the memory figures: bytes in use, peak bytes, and number of copied answers.
    fn memory(&self) -> MemoryFigures;
}

/// Parameters of a worker to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recruit {
    /// Unique number of the worker; never reused.
    pub(crate) number: u64,
    /// Place among the concurrent workers.
    pub(crate) place: usize,
    /// Cap of the worker's private memory in bytes.
    pub(crate) cap: u64,
}

/// Figures of the memory for answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryFigures {
    /// Bytes currently being written or held by views.
    pub(crate) used_bytes: u64,
    pub(crate) high_water_bytes: u64,
    pub(crate) copies: u64,
}

/// Link to one worker. Dropping it ends the worker.
pub(crate) trait Link: Send + 'static {
    /// Returns a short name of the worker, such as `pid 1234`.
    fn who(&self) -> String;

    /// Returns the name of the worker's machine; empty if machines are not distinguished.
    fn node(&self) -> String {
        String::new()
    }

    /// Sends a message.
    ///
    /// # Errors
    /// If the worker is gone; its end is also reported as an event.
    fn send(&self, message: &ToWorker) -> Result<()>;

    /// Ends the worker immediately; its end is reported as an event.
    fn kill(&self);

    /// Ends the worker for this pass only, if other passes use it; its end is reported as an event.
    fn let_go(&self) {
        self.kill();
    }

    /// Returns the CPU time of all threads of the worker so far, if available.
    fn cpu_time(&self) -> Option<Duration>;

    /// Returns the bytes of private memory that count toward the cap, if available.
    fn capped_bytes(&self) -> Option<u64>;

    /// Returns the bytes of all processes of the worker on this machine, with shared pages split, if available.
    fn bytes_here(&self) -> Option<u64>;

    /// Lowers the cap of the worker's private memory; returns `false` if the new cap cannot be guaranteed.
    fn lower_cap(&self, bytes: u64) -> bool;

    /// Returns the known figures of the worker; `None` if it is gone.
    fn report(&self) -> Option<WorkerReport>;
}

/// Memory for one answer. Dropping it frees the memory.
pub(crate) trait Room: Send + Sized + 'static {
    /// Returns the extent that identifies the room to the worker.
    fn extent(&self) -> ExtentId;

    /// Returns the length in bytes.
    fn len(&self) -> usize {
        self.extent().len()
    }

    /// Returns the first `used` bytes written by the worker.
    ///
    /// # Errors
    /// If the bytes cannot be read; the error returns the room.
    fn into_bytes(self, used: usize) -> std::result::Result<Arc<dyn Owner>, (Self, Error)>;
}

/// Exit report of a worker. `Display` completes "worker 3 (…) ".
pub(crate) trait End: Display + Send + 'static {
    /// Returns a short name of the worker.
    fn who(&self) -> String;

    /// Returns the cause of the end in words, for a worker with a cap of `cap` bytes.
    fn cause(&self, _cap: u64) -> String {
        self.to_string()
    }

    /// Returns true if the end has an external cause, as far as is known.
    fn is_from_outside(&self) -> bool;

    /// Returns true if an element of another pass that shares the worker ended it.
    fn is_of_others(&self) -> bool {
        false
    }

    /// Returns true if an element of any pass that shares the worker may have ended it.
    fn is_of_anybody(&self) -> bool {
        false
    }

    /// Returns true if the worker was ended by a regular termination request.
    fn is_asked_for(&self) -> bool;

    /// Returns the end as an error about `what`.
    fn error(&self, what: String) -> Error;
}
