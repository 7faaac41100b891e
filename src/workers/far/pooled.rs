//! A worker of a pool: leased by several passes, each until its lease expires.
//!
//! Passes share threads, the memory of their pipelines, and common answers. Counts of stages, open lanes and task
//! numbers belong to a single pass. Each lease therefore has a separate evaluator, over one pipeline for all passes
//! that sent an identical pipeline.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use super::cache::{Cache, Made};
use super::evaluator::Evaluator;
use super::semaphore::Semaphore;
use crate::dataset::IterDataset;
use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;
use crate::workers::control::Task;

/// Records the lease whose suspect element the worker evaluates; `false` removes the record.
type Note = Box<dyn Fn(&str, bool) + Send + Sync>;

/// State shared by all passes of a worker.
pub(super) struct Common {
    semaphore: Semaphore,
    cache: Cache,
    note: Note,
}

/// A lease's access to the shared state.
pub(super) struct Share {
    lease: String,
    common: Arc<Common>,
    pipeline: Arc<Number>,
}

/// Number of a pipeline; holders of the `Arc` lease the pipeline.
struct Number(u64);

impl Share {
    /// Returns the answer to a task: the kept answer, or else the result of `make`.
    pub(super) fn answer(&self, task: &Task, make: impl FnOnce() -> Result<Made>) -> Result<Made> {
        let Common { semaphore, cache, note } = &*self.common;
        let make = || {
            let _permit = semaphore.acquire(task.alone);
            if !task.alone {
                return make();
            }
            // The semaphore admits one suspect at a time, so a dead worker leaves at most one note.
            note(&self.lease, true);
            let made = make();
            note(&self.lease, false);
            made
        };
        // Suspect tasks, lanes and fed elements are not shared. A single lease has no other pass to share answers with.
        let keeps = !task.alone && task.lane.is_none() && task.fed.is_none() && self.leases() > 1;
        if keeps { cache.find_or(self.pipeline.0, task, make) } else { make() }
    }
}

impl Share {
    /// Returns the number of leases of the pipeline, without the reference that the pipeline holds.
    fn leases(&self) -> usize {
        Arc::strong_count(&self.pipeline) - 1
    }
}

/// Function that builds a pipeline from the payload of a pass.
type Make<D> = Box<dyn Fn(Vec<u8>) -> Result<D> + Send + Sync>;

/// A worker leased by several passes.
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
    /// Creates a worker on `host` that evaluates on `threads` threads and caches up to `kept_bytes` of answers. `note`
    /// records suspect elements by lease. `make` builds pipelines.
    pub(crate) fn new(
        host: String,
        threads: usize,
        kept_bytes: usize,
        note: impl Fn(&str, bool) + Send + Sync + 'static,
        make: impl Fn(Vec<u8>) -> Result<D> + Send + Sync + 'static,
    ) -> Self {
        let (semaphore, cache) = (Semaphore::new(threads), Cache::new(kept_bytes));
        let common = Arc::new(Common { semaphore, cache, note: Box::new(note) });
        let pipelines = Mutex::new(Pipelines { next: 0, known: HashMap::new() });
        Self { host, common, make: Arc::new(Box::new(make)), leases: Mutex::default(), pipelines }
    }

    /// Adds a lease for the pipeline built from `payload`; passes with an equal `key` share the pipeline.
    pub(crate) fn join(&self, lease: String, key: &str, payload: Vec<u8>) {
        let pipeline = self.pipeline(key);
        let share = Share { lease: lease.clone(), common: self.common.clone(), pipeline: pipeline.number.clone() };
        let (make, of) = (self.make.clone(), pipeline.clone());
        let make = move || {
            // Other passes with this pipeline wait on the lock, and then find the pipeline built.
            let mut made = of.made.locked();
            match &*made {
                Some(dataset) => Ok(dataset.clone()),
                None => make(payload).map(|dataset| made.insert(dataset).clone()),
            }
        };
        let evaluator = Arc::new(Evaluator::new(self.host.clone(), make).sharing(share));
        let lease_of = Lease { evaluator, seen: Instant::now(), _pipeline: pipeline };
        let before = self.leases.locked().insert(lease, lease_of);
        // The old lease is dropped outside the lock, because dropping closes files.
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

    /// Answers a message of a lease, as in [`Evaluator::hear`].
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] also for an expired lease.
    pub(crate) fn hear(&self, lease: &str, message: &[u8]) -> Result<(Vec<u8>, Option<Buffer>)> {
        let gone = || Error::new(ErrorKind::Worker, "its lease expired: the pass sent nothing for too long");
        let evaluator = self.touch(lease).ok_or_else(gone)?;
        evaluator.hear(message)
    }

    /// Renews a lease; returns true if the lease is known.
    pub(crate) fn beat(&self, lease: &str) -> bool {
        self.touch(lease).is_some()
    }

    fn touch(&self, lease: &str) -> Option<Arc<Evaluator>> {
        let mut leases = self.leases.locked();
        let lease = leases.get_mut(lease)?;
        lease.seen = Instant::now();
        Some(lease.evaluator.clone())
    }

    /// Ends a lease.
    pub(crate) fn leave(&self, lease: &str) {
        let left = self.leases.locked().remove(lease);
        drop(left);
    }

    /// Ends leases whose passes were silent for longer than `patience` at `now`, and drops old answers. Returns the
    /// number of remaining leases.
    pub(crate) fn expire(&self, now: Instant, patience: Duration) -> usize {
        self.common.cache.sweep(now);
        let mut leases = self.leases.locked();
        let over: Vec<_> = leases.extract_if(|_, lease| now.saturating_duration_since(lease.seen) > patience).collect();
        let left = leases.len();
        drop(leases);
        drop(over);
        left
    }
}
