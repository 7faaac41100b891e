//! The worker's loop: evaluates ranges of its pipeline's borders into extents, as the parent asks.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::Scope;
use std::time::Instant;

use super::borders::{Borders, nonsense};
use super::control::{Begin, Done, FromWorker, Need, Ready, Session, Task, ToWorker};
use super::slab::{ExtentId, ExtentMut, WorkerSlab};
use crate::cx::turn::OwnTime;
use crate::dataset::IterDataset;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::remote::Evaluated;
use crate::sync::{Locked, Regardless};
use crate::wire::foreign::{self, Settled};

/// Serves `dataset` until the parent says stop.
///
/// # Errors
/// Errors that the dataset reports when a pass over it starts, and a parent that talks nonsense.
pub(crate) fn serve<D: IterDataset + 'static>(dataset: D, mut session: Session) -> Result<()> {
    let slab = session.take_slab().ok_or_else(|| nonsense("no slab was given"))?;
    let begin = match session.recv()? {
        Some(ToWorker::Begin(begin)) => begin,
        None => return Ok(()),
        Some(other) => return Err(nonsense(&format!("{other:?} before the beginning"))),
    };
    if begin.one_of_many {
        crate::store::be_one_of_many();
    }
    let server = Server::new(Borders::open(dataset, &begin)?, session, slab, &begin);
    server.session.send(FromWorker::Ready(Ready { build_ns: server.session.built_in().as_nanos() as u64 }))?;
    server.run(begin)
}

struct Server {
    borders: Borders,
    session: Session,
    slab: Arc<WorkerSlab>,
    gate: Gate,
    threads: Mutex<Threads>,
    arrays: Arrays,
}

/// The threads that evaluate: each has a stack and memory of its own, so none is started before it is to work.
struct Threads {
    started: usize,
    most: usize,
    /// The error that one has ended with.
    result: Result<()>,
}

impl Server {
    fn new(borders: Borders, session: Session, slab: Arc<WorkerSlab>, begin: &Begin) -> Self {
        let threads = Mutex::new(Threads { started: 0, most: 0, result: Ok(()) });
        Self { borders, session, slab, gate: Gate::new(), threads, arrays: Arrays::new(begin.keep) }
    }

    fn run(&self, begin: Begin) -> Result<()> {
        self.threads.locked().most = begin.threads as usize;
        std::thread::scope(|scope| self.activate(begin.active as usize, scope))?;
        std::mem::replace(&mut self.threads.locked().result, Ok(()))
    }

    /// Has so many threads work at a time.
    ///
    /// # Errors
    /// If there is none and none can be started; with fewer than were asked for, those do the work.
    fn activate<'s>(&'s self, active: usize, scope: &'s Scope<'s, '_>) -> Result<()> {
        let mut threads = self.threads.locked();
        while threads.started < active.min(threads.most) {
            let name = format!("gristmill-{}.{}", self.session.worker(), threads.started);
            let started = std::thread::Builder::new().name(name).spawn_scoped(scope, || {
                crate::exec::thread::run(0, || self.work_and_tell(scope));
            });
            match started {
                Ok(_) => threads.started += 1,
                Err(e) if threads.started == 0 => {
                    return Err(Error::new(ErrorKind::Worker, format!("cannot start a thread: {e}")));
                }
                Err(e) => {
                    tracing::warn!(
                        "{active} threads were asked for, and only {} could be started: {e}",
                        threads.started
                    );
                    break;
                }
            }
        }
        self.gate.set(active);
        Ok(())
    }

    fn work_and_tell<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        let result = self.work(scope);
        let mut threads = self.threads.locked();
        threads.result = std::mem::replace(&mut threads.result, Ok(())).and(result);
    }

    fn work<'s>(&'s self, scope: &'s Scope<'s, '_>) -> Result<()> {
        while let Some(message) = self.session.recv()? {
            let answer = match message {
                ToWorker::Task(task) => {
                    for extent in self.arrays.unused() {
                        self.session.send(FromWorker::Returned(extent))?;
                    }
                    self.gate.pass(|| self.evaluate(&task))?
                }
                ToWorker::Active(threads) => {
                    self.activate(threads as usize, scope)?;
                    continue;
                }
                ToWorker::Tell => FromWorker::Told(self.borders.drain()),
                other => return Err(nonsense(&format!("{other:?}"))),
            };
            self.session.send(answer)?;
        }
        Ok(())
    }

    fn evaluate(&self, task: &Task) -> Result<FromWorker> {
        let mut extent = self.slab.extent_mut(task.extent).map_err(|e| nonsense(&e.to_string()))?;
        let grouped = task.groups_from.is_some();
        let admits = task.lane.is_none() && self.arrays.admit(&extent, grouped);
        let own = OwnTime::start();
        let evaluated = self.borders.evaluate(task, &mut extent)?;
        let kept = if admits {
            self.arrays.settle(extent, task.extent, grouped, &evaluated)
        } else {
            drop(extent);
            false
        };
        let need = evaluated.need.filter(|_| evaluated.indices == 0);
        if kept || need.is_some() {
            return Ok(FromWorker::Need(Need { id: task.id, bytes: need.unwrap_or(0) as u64, kept }));
        }
        Ok(FromWorker::Done(Done {
            id: task.id,
            evaluated,
            took: own.until(Instant::now()),
            tally: self.borders.tally(),
        }))
    }
}

/// The extents in which arrays of functions may lie, and those that the worker keeps because some still do.
struct Arrays {
    /// Bytes that may be kept, and those of extents that are or might be.
    keep: u64,
    held: AtomicU64,
    kept: Mutex<Vec<(ExtentMut, ExtentId)>>,
    /// Tasks that have begun, and those that would have been better off without.
    tasks: AtomicU64,
    strikes: AtomicU32,
    /// Whether a batch was made for nothing, because its rows lay in its extent and were to be copied there.
    rows_were_in_vain: AtomicBool,
}

/// After so many tasks that would have been better off without it, a worker has arrays on the heap.
const MOST_STRIKES: u32 = 3;

impl Arrays {
    fn new(keep: u64) -> Self {
        let (held, tasks, strikes) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU32::new(0));
        Self { keep, held, kept: Mutex::default(), tasks, strikes, rows_were_in_vain: AtomicBool::new(false) }
    }

    /// Whether arrays that this thread makes are to lie in `extent`, for the task that it begins.
    ///
    /// For batches that is worth it where rows are given together: copies of rows would have no room beside them.
    fn admit(&self, extent: &ExtentMut, grouped: bool) -> bool {
        // What functions make once and keep they make when they are first called.
        let first = self.tasks.fetch_add(1, Ordering::Relaxed) == 0;
        let len = extent.len() as u64;
        if first || len > self.keep || self.strikes.load(Ordering::Relaxed) >= MOST_STRIKES {
            return false;
        }
        if grouped && (self.rows_were_in_vain.load(Ordering::Relaxed) || !foreign::rows_fit()) {
            return false;
        }
        let held = self.held.fetch_add(len, Ordering::Relaxed) + len;
        let admitted = held <= self.keep && foreign::admit();
        if !admitted {
            self.held.fetch_sub(len, Ordering::Relaxed);
        }
        admitted
    }

    /// Ends a task. Returns whether its extent is kept: then it cannot be delivered.
    fn settle(&self, extent: ExtentMut, id: ExtentId, grouped: bool, evaluated: &Evaluated) -> bool {
        let Settled { in_use, allocated, wasted } = foreign::settle(address(&extent));
        let in_vain = allocated && evaluated.indices == 0;
        self.rows_were_in_vain.fetch_or(grouped && in_vain, Ordering::Relaxed);
        if in_use || in_vain || wasted > evaluated.used / 2 {
            self.strikes.fetch_add(1, Ordering::Relaxed);
        }
        if in_use {
            self.kept.locked().push((extent, id));
        } else {
            self.held.fetch_sub(extent.len() as u64, Ordering::Relaxed);
        }
        in_use
    }

    /// Takes the extents out of those that are kept in which there is nothing any more.
    fn unused(&self) -> Vec<ExtentId> {
        let mut kept = self.kept.locked();
        if kept.is_empty() {
            return Vec::new();
        }
        let unused = kept.extract_if(.., |(extent, _)| foreign::is_free(address(extent)));
        let unused: Vec<(ExtentMut, ExtentId)> = unused.collect();
        drop(kept);
        let bytes: usize = unused.iter().map(|(extent, _)| extent.len()).sum();
        self.held.fetch_sub(bytes as u64, Ordering::Relaxed);
        unused.into_iter().map(|(_, id)| id).collect()
    }
}

/// The place at which an extent begins in this process.
fn address(extent: &ExtentMut) -> usize {
    extent.as_ptr() as usize
}

/// Lets so many threads work at a time.
struct Gate {
    state: Mutex<Passing>,
    changed: Condvar,
}

struct Passing {
    inside: usize,
    most: usize,
}

impl Gate {
    fn new() -> Self {
        Self { state: Mutex::new(Passing { inside: 0, most: usize::MAX }), changed: Condvar::new() }
    }

    fn set(&self, most: usize) {
        self.state.locked().most = most.max(1);
        self.changed.notify_all();
    }

    fn pass<R>(&self, work: impl FnOnce() -> R) -> R {
        let mut state = self.state.locked();
        while state.inside >= state.most {
            state = self.changed.wait(state).regardless();
        }
        state.inside += 1;
        drop(state);
        let result = work();
        self.state.locked().inside -= 1;
        self.changed.notify_one();
        result
    }
}
