//! A worker of a pool: several passes lease it, each for as long as it is heard of.
//!
//! Passes share threads, what their pipelines hold in memory, and answers that both want. They do not share what is of one pass alone:
//! counts of stages, lanes that are open, the numbers of its tasks. So each lease has an evaluator of its own, over one pipeline for all
//! that were sent the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::evaluator::Evaluator;
use super::gate::Gate;
use super::kept::{Kept, Made};
use crate::dataset::IterDataset;
use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;
use crate::workers::control::Task;

/// Records the lease whose suspect element the worker evaluates; `false` removes the record.
type Note = Box<dyn Fn(&str, bool) + Send + Sync>;

/// What passes of a worker share.
pub(super) struct Common {
    gate: Gate,
    kept: Kept,
    note: Note,
}

/// What one lease has of it.
pub(super) struct Share {
    lease: String,
    common: Arc<Common>,
    pipeline: Arc<Number>,
}

/// The number of a pipeline; whoever has it leases that.
struct Number(u64);

impl Share {
    /// The answer to a task, which `make` makes if nobody else has done so.
    pub(super) fn answer(&self, task: &Task, make: impl FnOnce() -> Result<Made>) -> Result<Made> {
        let Common { gate, kept, note } = &*self.common;
        let make = || {
            let _pass = gate.pass(task.alone);
            if !task.alone {
                return make();
            }
            // The gate admits one suspect at a time, so a dead worker leaves at most one note.
            note(&self.lease, true);
            let made = make();
            note(&self.lease, false);
            made
        };
        // Nobody else may have died of it; a lane goes on where it is open; and where nobody else asks there is nothing to keep.
        let keeps = !task.alone && task.lane.is_none() && task.fed.is_none() && self.leases() > 1;
        if keeps { kept.find_or(self.pipeline.0, task, make) } else { make() }
    }
}

impl Share {
    /// Leases of the pipeline; it has its number itself, too.
    fn leases(&self) -> usize {
        Arc::strong_count(&self.pipeline) - 1
    }
}

/// Makes a pipeline of what a pass has sent.
type Make<D> = Box<dyn Fn(Vec<u8>) -> Result<D> + Send + Sync>;

/// A worker that several passes lease.
pub(crate) struct Pooled<D> {
    host: String,
    common: Arc<Common>,
    make: Arc<Make<D>>,
    leases: Mutex<HashMap<String, Lease<D>>>,
    pipelines: Mutex<Pipelines<D>>,
}

struct Lease<D> {
    evaluator: Arc<Evaluator>,
    seen: Instant,
    _pipeline: Arc<Pipeline<D>>,
}

struct Pipelines<D> {
    next: u64,
    known: HashMap<String, Weak<Pipeline<D>>>,
}

struct Pipeline<D> {
    number: Arc<Number>,
    made: Mutex<Option<D>>,
}

impl<D: IterDataset + Clone + 'static> Pooled<D> {
    /// A worker on `host` that evaluates on `threads` threads and caches up to `kept_bytes` of answers. `note` records suspect elements by their
    /// lease. `make` builds pipelines.
    pub(crate) fn new(
        host: String,
        threads: usize,
        kept_bytes: usize,
        note: impl Fn(&str, bool) + Send + Sync + 'static,
        make: impl Fn(Vec<u8>) -> Result<D> + Send + Sync + 'static,
    ) -> Self {
        let (gate, kept) = (Gate::new(threads), Kept::new(kept_bytes));
        let common = Arc::new(Common { gate, kept, note: Box::new(note) });
        let pipelines = Mutex::new(Pipelines { next: 0, known: HashMap::new() });
        Self { host, common, make: Arc::new(Box::new(make)), leases: Mutex::default(), pipelines }
    }

    /// A pass leases it, to evaluate what `payload` makes; passes with the same `key` have the same pipeline.
    pub(crate) fn join(&self, lease: String, key: &str, payload: Vec<u8>) {
        let pipeline = self.pipeline(key);
        let share = Share { lease: lease.clone(), common: self.common.clone(), pipeline: pipeline.number.clone() };
        let (make, of) = (self.make.clone(), pipeline.clone());
        let make = move || {
            // Others with the same wait for it, and have it then.
            let mut made = of.made.locked();
            match &*made {
                Some(dataset) => Ok(dataset.clone()),
                None => make(payload).map(|dataset| made.insert(dataset).clone()),
            }
        };
        let evaluator = Arc::new(Evaluator::new(self.host.clone(), make).sharing(share));
        let lease_of = Lease { evaluator, seen: Instant::now(), _pipeline: pipeline };
        let before = self.leases.locked().insert(lease, lease_of);
        // Its files are closed while nobody waits for that.
        drop(before);
    }

    fn pipeline(&self, key: &str) -> Arc<Pipeline<D>> {
        let mut pipelines = self.pipelines.locked();
        if let Some(known) = pipelines.known.get(key).and_then(Weak::upgrade) {
            return known;
        }
        pipelines.known.retain(|_, known| known.strong_count() > 0);
        let number = Arc::new(Number(pipelines.next));
        pipelines.next += 1;
        let pipeline = Arc::new(Pipeline { number, made: Mutex::new(None) });
        pipelines.known.insert(key.to_owned(), Arc::downgrade(&pipeline));
        pipeline
    }

    /// Answers a message of a lease, as [`Evaluator::hear`] does.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] for one that has run out, too.
    pub(crate) fn hear(&self, lease: &str, message: &[u8]) -> Result<(Vec<u8>, Option<Buffer>)> {
        let gone =
            || Error::new(ErrorKind::Worker, "its lease has run out: nothing was heard of the pass for too long");
        let evaluator = self.touch(lease).ok_or_else(gone)?;
        evaluator.hear(message)
    }

    /// The pass of a lease is still there; returns whether it is known.
    pub(crate) fn beat(&self, lease: &str) -> bool {
        self.touch(lease).is_some()
    }

    fn touch(&self, lease: &str) -> Option<Arc<Evaluator>> {
        let mut leases = self.leases.locked();
        let lease = leases.get_mut(lease)?;
        lease.seen = Instant::now();
        Some(lease.evaluator.clone())
    }

    /// A pass lets it go.
    pub(crate) fn leave(&self, lease: &str) {
        let left = self.leases.locked().remove(lease);
        drop(left);
    }

    /// Ends leases whose passes were silent for longer than `patience` at `now`, and forgets old answers. Returns the number of
    /// leases that are left.
    pub(crate) fn look_around(&self, now: Instant, patience: Duration) -> usize {
        self.common.kept.sweep(now);
        let mut leases = self.leases.locked();
        let over: Vec<_> = leases.extract_if(|_, lease| now.saturating_duration_since(lease.seen) > patience).collect();
        let left = leases.len();
        drop(leases);
        drop(over);
        left
    }
}
