//! A worker process and its tasks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::carrier::Carrier;
use super::job::Job;

/// Time after which a first task no longer counts as start-up.
const LONG_FIRST: Duration = Duration::from_secs(20);

/// A worker, from its start until it is reaped.
pub(super) struct Worker<C: Carrier> {
    /// Cap of the worker's private memory in bytes.
    pub(super) cap: u64,
    /// Place among the workers; a replacement takes the place of the dead worker.
    pub(super) place: usize,
    /// Link to the worker; `None` until it is connected.
    pub(super) link: Option<C::Link>,
    /// Whether the worker's pipeline is built.
    pub(super) ready: bool,
    /// Tasks in progress, by task ID.
    pub(super) tasks: BTreeMap<u64, Running<C>>,
    /// Late tasks whose jobs also went to other workers.
    pub(super) stale: BTreeMap<u64, Stale<C>>,
    /// Extents that the worker keeps and may write to until it ends.
    pub(super) kept: Vec<C::Room>,
    /// Reason for killing the worker, if the coordinator killed the worker.
    pub(super) kill_reason: Option<String>,
    /// Whether the worker ends after its current tasks, because fewer workers are needed.
    pub(super) leaving: bool,
    /// Whether [`ToWorker::Stop`](crate::workers::control::ToWorker::Stop) was sent.
    pub(super) stop_sent: bool,
    /// Number of finished tasks.
    pub(super) finished: u64,
    /// Time of the last reading of the worker's memory.
    pub(super) measured: Option<Instant>,
    /// Time at which the start of the worker began.
    pub(super) started: Instant,
}

/// A task in progress at a worker.
pub(super) struct Running<C: Carrier> {
    pub(super) job: Job,
    pub(super) asked: u64,
    pub(super) room: C::Room,
    pub(super) since: Instant,
}

/// A task whose job went on to other workers.
pub(super) struct Stale<C: Carrier> {
    /// Sequence number of the job, and its first index at that time.
    pub(super) seq: u64,
    pub(super) start: u64,
    pub(super) asked: u64,
    pub(super) room: C::Room,
    pub(super) since: Instant,
}

impl<C: Carrier> Worker<C> {
    pub(super) fn new(cap: u64) -> Self {
        let (link, kill_reason, measured, tasks) = (None, None, None, BTreeMap::new());
        let (ready, leaving, stop_sent, finished) = (false, false, false, 0);
        let (started, kept, stale) = (Instant::now(), Vec::new(), BTreeMap::new());
        Self {
            cap,
            place: 0,
            link,
            ready,
            tasks,
            stale,
            kept,
            kill_reason,
            leaving,
            stop_sent,
            finished,
            measured,
            started,
        }
    }

    /// Returns the send time of each task, including tasks whose jobs went on to others.
    pub(super) fn since(&self) -> impl Iterator<Item = Instant> + '_ {
        let stale = self.stale.values().map(|task| task.since);
        self.tasks.values().map(|task| task.since).chain(stale)
    }

    /// Returns true if the worker is starting up: its pipeline is not built, or it works on its first task. The first
    /// task also opens and loads data for later tasks. A worker without tasks is not starting up, nor a worker whose
    /// first task takes longer than [`LONG_FIRST`].
    pub(super) fn is_starting(&self, now: Instant) -> bool {
        let time = now.saturating_duration_since(self.started);
        !self.ready || (self.finished == 0 && !self.tasks.is_empty() && time < LONG_FIRST)
    }

    /// Returns true if the worker is neither leaving nor killed.
    pub(super) fn stays(&self) -> bool {
        self.kill_reason.is_none() && !self.leaving
    }

    /// Returns true if the worker can take one more task. A suspect job needs an idle worker with a cap of at least
    /// `least`.
    pub(super) fn has_capacity(&self, threads: usize, suspect: bool, least: u64) -> bool {
        let alone = suspect || self.tasks.values().any(|task| task.job.is_suspect());
        // One task more than threads, so that no thread idles while an answer is in transfer.
        self.ready
            && self.stays()
            && self.cap >= least
            && if alone { self.tasks.is_empty() } else { self.tasks.len() + self.stale.len() <= threads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::processes::Processes;

    #[test]
    fn a_worker_begins_until_it_has_delivered() {
        let mut worker = Worker::<Processes>::new(1);
        let now = worker.started;
        assert!(worker.is_starting(now), "it is not ready");
        worker.ready = true;
        assert!(!worker.is_starting(now), "it has nothing to do");
        worker.finished = 1;
        assert!(!worker.is_starting(now));
    }
}
