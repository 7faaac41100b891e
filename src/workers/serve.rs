//! The worker's loop: evaluates ranges of the pipeline's borders into extents on request of the parent.

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

/// Serves `dataset` until the parent sends [`ToWorker::Stop`].
///
/// # Errors
/// Errors of the dataset at the start of a pass; [`ErrorKind::Worker`] for an unexpected message of the parent.
pub(crate) fn serve<D: IterDataset + 'static>(dataset: D, mut session: Session) -> Result<()> {
    let slab = session.take_slab().ok_or_else(|| nonsense("no slab was given"))?;
    let begin = match session.recv()? {
        Some(ToWorker::Begin(begin)) => begin,
        None => return Ok(()),
        Some(other) => return Err(nonsense(&format!("{other:?} before the start message"))),
    };
    if begin.one_of_many {
        crate::store::be_one_of_many();
    }
    let server = Server::new(Borders::open(dataset, &begin)?, session, slab, &begin);
    server.session.send(FromWorker::Ready(Ready { build_ns: server.session.built_in.as_nanos() as u64 }))?;
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

/// Threads that evaluate. Each has its stack and allocator memory, so a thread is started only before its first work.
struct Threads {
    started: usize,
    most: usize,
    /// The first error that ended a thread.
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

    /// Sets the number of threads that evaluate at once, and starts missing threads.
    ///
    /// # Errors
    /// If no thread runs and none can be started. If only some can be started, those threads do the work.
    fn activate<'s>(&'s self, active: usize, scope: &'s Scope<'s, '_>) -> Result<()> {
        let mut threads = self.threads.locked();
        while threads.started < active.min(threads.most) {
            let number = threads.started;
            let name = format!("gristmill-{}.{number}", self.session.worker);
            let started = std::thread::Builder::new().name(name).spawn_scoped(scope, move || {
                crate::exec::thread::run(0, || self.work_and_tell(number, scope));
            });
            match started {
                Ok(_) => threads.started += 1,
                Err(e) if threads.started == 0 => {
                    return Err(Error::new(ErrorKind::Worker, format!("cannot start a thread: {e}")));
                }
                Err(e) => {
                    tracing::warn!(
                        "{active} threads were requested, but only {} could be started: {e}",
                        threads.started
                    );
                    break;
                }
            }
        }
        self.gate.set(active);
        Ok(())
    }

    fn work_and_tell<'s>(&'s self, number: usize, scope: &'s Scope<'s, '_>) {
        // A panic must not leave threads parked, for which the scope would wait forever.
        let opens = Opens(&self.gate);
        let result = self.work(number, scope);
        drop(opens);
        let mut threads = self.threads.locked();
        threads.result = std::mem::replace(&mut threads.result, Ok(())).and(result);
    }

    /// Answers messages as thread `number` until the session ends.
    fn work<'s>(&'s self, number: usize, scope: &'s Scope<'s, '_>) -> Result<()> {
        loop {
            self.gate.park(number);
            let Some(message) = self.session.recv()? else { return Ok(()) };
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

/// Extents in which functions may allocate arrays, and extents that the worker keeps because such arrays are still in
/// use.
struct Arrays {
    /// Bytes that may be kept, and bytes of extents that are kept or may be kept.
    keep: u64,
    held: AtomicU64,
    kept: Mutex<Vec<(ExtentMut, ExtentId)>>,
    /// Tasks begun, and tasks for which arrays in the extent were a loss.
    tasks: AtomicU64,
    strikes: AtomicU32,
    /// Whether a batch was built in vain because its rows were in its extent and had to be copied there.
    rows_were_in_vain: AtomicBool,
}

/// Tasks with a loss after which a worker allocates arrays on the heap.
const MOST_STRIKES: u32 = 3;

impl Arrays {
    fn new(keep: u64) -> Self {
        let (held, tasks, strikes) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU32::new(0));
        Self { keep, held, kept: Mutex::default(), tasks, strikes, rows_were_in_vain: AtomicBool::new(false) }
    }

    /// Returns true if arrays of this thread are allocated in `extent` during the task that begins.
    ///
    /// Batches qualify only if rows are handed over together: copied rows would leave no room beside them.
    fn admit(&self, extent: &ExtentMut, grouped: bool) -> bool {
        // Functions create their long-lived arrays in their first call.
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

    /// Ends a task. Returns true if its extent is kept and so cannot be delivered.
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

    /// Removes and returns the kept extents that contain no array in use.
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

/// Returns the start address of an extent in this process.
fn address(extent: &ExtentMut) -> usize {
    extent.as_ptr() as usize
}

/// Limits how many threads evaluate at once, and parks the threads beyond that number.
struct Gate {
    state: Mutex<Passing>,
    /// Signals another limit, or the end.
    set: Condvar,
    /// Signals that a thread has left.
    left: Condvar,
}

struct Passing {
    inside: usize,
    most: usize,
    is_open: bool,
}

impl Gate {
    fn new() -> Self {
        let state = Passing { inside: 0, most: usize::MAX, is_open: false };
        Self { state: Mutex::new(state), set: Condvar::new(), left: Condvar::new() }
    }

    fn set(&self, most: usize) {
        self.state.locked().most = most.max(1);
        self.set.notify_all();
        self.left.notify_all();
    }

    /// Releases all parked threads, because the session ends.
    fn open(&self) {
        self.state.locked().is_open = true;
        self.set.notify_all();
    }

    /// Parks thread `number`, from 0 on, until it is within the limit.
    ///
    /// A parked thread takes no task. If it did, tasks would alternate between threads, and each task would move to another core.
    fn park(&self, number: usize) {
        let mut state = self.state.locked();
        while number >= state.most && !state.is_open {
            state = self.set.wait(state).regardless();
        }
    }

    fn pass<R>(&self, work: impl FnOnce() -> R) -> R {
        let mut state = self.state.locked();
        while state.inside >= state.most {
            state = self.left.wait(state).regardless();
        }
        state.inside += 1;
        drop(state);
        let result = work();
        self.state.locked().inside -= 1;
        self.left.notify_one();
        result
    }
}

/// Opens a [`Gate`] when it is dropped.
struct Opens<'a>(&'a Gate);

impl Drop for Opens<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn threads_beyond_the_limit_are_parked_until_it_rises_or_the_session_ends() {
        for release in [|gate: &Gate| gate.set(2), |gate: &Gate| drop(Opens(gate))] {
            let (gate, is_released) = (Gate::new(), AtomicBool::new(false));
            gate.set(1);
            gate.park(0);
            std::thread::scope(|scope| {
                let parked = scope.spawn(|| {
                    gate.park(1);
                    is_released.load(Ordering::SeqCst)
                });
                // Time in which a thread that is not parked would pass.
                std::thread::sleep(Duration::from_millis(20));
                is_released.store(true, Ordering::SeqCst);
                release(&gate);
                assert!(parked.join().unwrap());
            });
        }
    }
}
