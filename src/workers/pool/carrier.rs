//! The ways to workers: how a task gets there, and what comes of it comes back.
//!
//! Order, memory, retries, the search for what kills workers, and tuning are the [coordinator](super::coordinator)'s, whoever the workers
//! are. A carrier starts one, sends it a message, says what was heard, and gives out the memory that answers take.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;

use crate::element::Owner;
use crate::error::{Error, Result};
use crate::exec::{LinkReport, WorkerReport};
use crate::workers::control::{Event, ToWorker};
use crate::workers::slab::ExtentId;

/// The way to workers of one kind.
pub(crate) trait Carrier: Send + Sync + 'static {
    /// The way to one of them.
    type Link: Link;
    /// Memory for one answer.
    type Room: Room;
    /// The end of one of them.
    type End: End;

    /// Whether all are to have the same share of tasks where there are fewer than they could do.
    const SPREADS: bool = false;

    /// Starts a worker, and tells `events` what is heard of it from then on; blocks until it is there.
    ///
    /// # Errors
    /// If it cannot be started.
    fn start(&self, who: Recruit, events: &Sender<Event<Self::End>>) -> Result<Self::Link>;

    /// Whether that `error` is somebody else's doing, and may be over soon.
    fn is_from_outside(error: &Error) -> bool;

    /// Room for `bytes` of the worker in `place`; `None` while there is none.
    fn room(&self, bytes: usize, place: usize) -> Option<Self::Room>;

    /// The same where nothing is under way that could give any back.
    fn last_room(&self, bytes: usize, place: usize) -> Option<Self::Room>;

    /// Looks whether a worker has written to what it had handed over: its place, and where.
    fn spoilt(&self) -> Option<(usize, String)> {
        None
    }

    /// Has the next [`spoilt`](Self::spoilt) know of all that is held.
    fn look_at_leases(&self) {}

    /// The pass has ended: whoever waits in [`start`](Self::start) is let go.
    fn close(&self) {}

    /// Links to the machines that workers run on, where those are others.
    fn links(&self) -> Vec<LinkReport> {
        Vec::new()
    }

    /// Figures of the memory: what is in use, the most that was at once, and answers that were copied.
    fn memory(&self) -> MemoryFigures;
}

/// Facts about a worker that is to be started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recruit {
    /// Its number, which no other ever has.
    pub(crate) number: u64,
    /// Its place among the workers there are at a time.
    pub(crate) place: usize,
    /// The cap of its private memory, in bytes.
    pub(crate) cap: u64,
}

/// Figures of the memory that answers take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryFigures {
    /// Bytes that are written, or held by views, now.
    pub(crate) used_bytes: u64,
    pub(crate) high_water_bytes: u64,
    pub(crate) copies: u64,
}

/// The way to one worker. Dropping it ends the worker.
pub(crate) trait Link: Send + 'static {
    /// The worker, in a word or two: `pid 1234`.
    fn who(&self) -> String;

    /// The machine that it runs on: one of which none is told from another is nobody's.
    fn node(&self) -> String {
        String::new()
    }

    /// Sends a message.
    ///
    /// # Errors
    /// If the worker is gone: its end is heard.
    fn send(&self, message: &ToWorker) -> Result<()>;

    /// Ends it at once; its end is heard.
    fn kill(&self);

    /// Ends it at once, but for others who use it, too; its end is heard.
    fn let_go(&self) {
        self.kill();
    }

    /// CPU time of all its threads so far, where that can be told.
    fn cpu_time(&self) -> Option<Duration>;

    /// Bytes of its private memory that its cap counts, where that can be told.
    fn capped_bytes(&self) -> Option<u64>;

    /// Bytes of all that runs for it on this machine, shared pages split, where that can be told.
    fn bytes_here(&self) -> Option<u64>;

    /// Lowers the cap of its private memory; `false` where that cannot be said to hold.
    fn lower_cap(&self, bytes: u64) -> bool;

    /// Its figures, as far as it knows them; `None` where it is gone.
    fn report(&self) -> Option<WorkerReport>;
}

/// Memory for one answer. Dropping it gives it back.
pub(crate) trait Room: Send + Sized + 'static {
    /// The room as the worker is told.
    fn extent(&self) -> ExtentId;

    /// Bytes of it.
    fn len(&self) -> usize {
        self.extent().len()
    }

    /// The first `used` bytes of what the worker wrote there.
    ///
    /// # Errors
    /// If that cannot be; the room comes back then.
    fn into_bytes(self, used: usize) -> std::result::Result<Arc<dyn Owner>, (Self, Error)>;
}

/// The end of a worker. `Display` completes "worker 3 (…) ".
pub(crate) trait End: Display + Send + 'static {
    /// The worker, in a word or two.
    fn who(&self) -> String;

    /// The end in words, of a worker with a cap of so many bytes.
    fn cause(&self, cap: u64) -> String {
        let _ = cap;
        self.to_string()
    }

    /// Whether somebody else ended it, as far as can be told.
    fn is_from_outside(&self) -> bool;

    /// Whether an element of another pass that shares the worker ended it.
    fn is_of_others(&self) -> bool {
        false
    }

    /// Whether an element of any pass that shares the worker may have ended it.
    fn is_of_anybody(&self) -> bool {
        false
    }

    /// Whether it was ended as one ends a program that is no longer wanted.
    fn is_asked_for(&self) -> bool;

    /// The end as an error about `what`.
    fn error(&self, what: String) -> Error;
}
