//! A pool of threads that take chunks of elements from a queue.
//!
//! The pools of `rayon` (1.12) have a fixed number of threads. This pool changes the number of active threads during a run,
//! and cancels queued tasks when a pass ends.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::cx::clock::thread_cpu;
use crate::cx::turn::OwnTime;
use crate::error::{Error, Result};
use crate::fork::Ours;
use crate::sync::{Locked, Regardless};

/// Unit of work, which can stop early if the pool is no longer [`Open`].
///
/// A task sends its result to its submitter. If the task is dropped or stops early, the submitter sees that no result will come.
pub(crate) type Task = Box<dyn FnOnce(&Open) + Send>;

/// Flag that is set until a pool is cancelled.
#[derive(Debug)]
pub(crate) struct Open(AtomicBool);

impl Open {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Maximum number of threads of a pool: more than any store or disk serves at once, and few enough to start in a second.
pub(crate) const MOST_THREADS: usize = 4096;

/// Pool of threads with a queue, first come, first served. The number of threads may change.
///
/// The submitter bounds its tasks in the queue, so the queue has no bound. In a fork the pool drops every task.
///
/// Tasks may hold their pool. The starter of the pool therefore ends it with [`cancel`](Self::cancel) and [`join`](Self::join);
/// dropping the last reference is not enough.
#[derive(Debug)]
pub(crate) struct Pool {
    hands: Ours<Hands>,
    /// Maximum number of ranges that are in flight or wait to be read.
    window: AtomicUsize,
    shared: Arc<Shared>,
}

/// Parts of a pool that a forked child does not have.
#[derive(Debug)]
struct Hands {
    /// `None` after a cancel.
    queue: Mutex<Option<Sender<Task>>>,
    tasks: Receiver<Task>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    open: Open,
    /// Number of threads that should work. Other threads wait for the number to rise.
    active: Mutex<usize>,
    changed: Condvar,
    busy_ns: AtomicU64,
    cpu_ns: AtomicU64,
    /// Number of threads that are running a task.
    working: AtomicUsize,
    indices: AtomicU64,
    /// Pass that the threads work for.
    pass: super::thread::Pass,
}

/// Work done by the threads of a pool so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    /// Time at work, summed over all threads, and the part of it on a core.
    pub(crate) busy: Duration,
    pub(crate) cpu: Duration,
    /// Number of root indices evaluated.
    pub(crate) indices: u64,
}

/// Minimum time between two reads of a thread's clock, because a read takes a system call.
const READ_EVERY: Duration = Duration::from_millis(2);

impl Pool {
    /// Starts a pool of `count` threads.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for more than [`MOST_THREADS`], [`ErrorKind::Io`](crate::ErrorKind::Io) if a thread
    /// cannot be started.
    pub(crate) fn start(count: usize) -> Result<Arc<Self>> {
        if count > MOST_THREADS {
            return Err(Error::config(format!("threads is {count}, and must be {MOST_THREADS} or less"))
                .help("more threads than cores help only if elements wait for a disk or a network"));
        }
        let (queue, tasks) = unbounded();
        let shared = Arc::new(Shared {
            open: Open(AtomicBool::new(true)),
            active: Mutex::new(0),
            changed: Condvar::new(),
            busy_ns: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            working: AtomicUsize::new(0),
            indices: AtomicU64::new(0),
            pass: super::thread::pass(),
        });
        let hands = Ours::new(Hands { queue: Mutex::new(Some(queue)), tasks, threads: Mutex::default() });
        let pool = Self { hands, window: AtomicUsize::new(2 * count), shared };
        pool.set_threads(count)?;
        Ok(Arc::new(pool))
    }

    /// Appends a task to the queue, or drops it if the pool is cancelled.
    pub(crate) fn submit(&self, task: Task) {
        let Some(hands) = self.hands.get() else { return };
        if let Some(queue) = &*hands.queue.locked() {
            // The receiver exists until the pool is dropped.
            let _ = queue.send(task);
        }
    }

    /// Sets the number of working threads. Surplus threads finish their task, or take one more task.
    ///
    /// # Errors
    /// If the system refuses to start a thread. The existing threads then do the work.
    pub(crate) fn set_threads(&self, count: usize) -> Result<()> {
        let Some(hands) = self.hands.get() else { return Ok(()) };
        let mut threads = hands.threads.locked();
        *self.shared.active() = count;
        self.shared.changed.notify_all();
        while threads.len() < count && self.shared.open.get() {
            match spawn(threads.len(), hands.tasks.clone(), self.shared.clone()) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    *self.shared.active() = threads.len();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn threads(&self) -> usize {
        self.hands.get().map_or(0, |_| *self.shared.active())
    }

    /// Returns the maximum number of ranges that are in flight or wait to be read.
    pub(crate) fn window(&self) -> usize {
        self.window.load(Ordering::Relaxed)
    }

    pub(crate) fn set_window(&self, ranges: usize) {
        self.window.store(ranges, Ordering::Relaxed);
    }

    /// Returns true if a thread is idle because the queue is empty.
    pub(crate) fn is_idle(&self) -> bool {
        self.hands.get().is_some_and(|hands| hands.tasks.is_empty())
            && self.shared.working.load(Ordering::Relaxed) < self.threads()
    }

    /// Adds to the number of root indices evaluated.
    pub(crate) fn evaluated(&self, indices: u64) {
        self.shared.indices.fetch_add(indices, Ordering::Relaxed);
    }

    /// Returns the time at work, summed over all threads.
    pub(crate) fn busy(&self) -> Duration {
        self.done().busy
    }

    /// Returns the work done so far, summed over all threads.
    pub(crate) fn done(&self) -> Done {
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Ordering::Relaxed));
        let Shared { busy_ns, cpu_ns, indices, .. } = &*self.shared;
        Done { busy: time(busy_ns), cpu: time(cpu_ns), indices: indices.load(Ordering::Relaxed) }
    }

    /// Drops queued tasks, and stops running tasks as soon as possible.
    pub(crate) fn cancel(&self) {
        let Some(hands) = self.hands.get() else { return };
        // While the lock is held, no thread can begin to wait and miss the notification.
        let active = self.shared.active();
        self.shared.open.0.store(false, Ordering::Relaxed);
        drop(active);
        self.shared.changed.notify_all();
        *hands.queue.locked() = None;
        // Drops the tasks that no thread takes any more, with everything they hold.
        hands.tasks.try_iter().for_each(drop);
    }

    /// Waits for the threads of a cancelled pool.
    pub(crate) fn join(&self) {
        let Some(hands) = self.hands.get() else { return };
        let threads = std::mem::take(&mut *hands.threads.locked());
        let me = std::thread::current().id();
        // The last holder may be a task on one of the threads, which cannot wait for itself.
        threads.into_iter().filter(|t| t.thread().id() != me).for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.cancel();
        self.join();
    }
}

impl Shared {
    fn active(&self) -> MutexGuard<'_, usize> {
        self.active.locked()
    }

    /// Waits until thread `index` should work. Returns false if the pool is cancelled.
    fn is_wanted(&self, index: usize) -> bool {
        let mut active = self.active();
        while self.open.get() && index >= *active {
            active = self.changed.wait(active).regardless();
        }
        self.open.get()
    }

    /// Runs a task, and counts its time.
    fn work(&self, task: Task, clock: &mut (Instant, Duration)) {
        self.working.fetch_add(1, Ordering::Relaxed);
        let own = OwnTime::start();
        task(&self.open);
        let end = Instant::now();
        self.busy_ns.fetch_add(own.until(end).as_nanos() as u64, Ordering::Relaxed);
        if end - clock.0 >= READ_EVERY {
            let cpu = thread_cpu();
            self.cpu_ns.fetch_add(cpu.saturating_sub(clock.1).as_nanos() as u64, Ordering::Relaxed);
            *clock = (end, cpu);
        }
        self.working.fetch_sub(1, Ordering::Relaxed);
    }
}

fn spawn(index: usize, tasks: Receiver<Task>, shared: Arc<Shared>) -> Result<JoinHandle<()>> {
    let pass = shared.pass;
    let run = move || {
        crate::cx::number_thread(index);
        let mut clock = (Instant::now(), thread_cpu());
        while shared.is_wanted(index) {
            let Ok(task) = tasks.recv() else { return };
            if shared.open.get() {
                shared.work(task, &mut clock);
            }
        }
    };
    let thread = std::thread::Builder::new().name(format!("gristmill-{index}"));
    thread
        .spawn(move || super::thread::run(pass, run))
        .map_err(|e| Error::new(crate::ErrorKind::Io, format!("cannot start thread {index}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_pool_ends_although_its_tasks_hold_it() {
        let pool = Pool::start(2).unwrap();
        let (told, started) = unbounded();
        let (kept, dropped) = unbounded::<()>();
        for _ in 0..8 {
            let (held, told, kept) = (pool.clone(), told.clone(), kept.clone());
            pool.submit(Box::new(move |open| {
                let _ = told.send(());
                while open.get() {
                    std::thread::yield_now();
                }
                drop((held, kept));
            }));
        }
        drop(kept);
        started.recv().unwrap();
        pool.cancel();
        pool.join();
        // All tasks are dropped, including tasks that never began.
        assert!(dropped.try_recv().is_err_and(|e| e.is_disconnected()));
        assert_eq!(Arc::strong_count(&pool), 1);
        pool.submit(Box::new(|_| panic!("nobody is there")));
    }

    #[test]
    fn threads_come_and_go_while_it_works() {
        let pool = Pool::start(1).unwrap();
        let (told, seen) = unbounded();
        for (threads, tasks) in [(1, 3), (5, 40), (2, 40), (64, 200), (1, 10)] {
            pool.set_threads(threads).unwrap();
            assert_eq!(pool.threads(), threads);
            for _ in 0..tasks {
                let told = told.clone();
                pool.submit(Box::new(move |_| told.send(()).unwrap()));
            }
            (0..tasks).for_each(|_| seen.recv().unwrap());
        }
        // No thread is started twice, and resting threads end, too.
        assert_eq!(pool.hands.get().unwrap().threads.lock().unwrap().len(), 64);
        pool.cancel();
        pool.join();
    }

    #[test]
    fn more_threads_than_any_machine_has_use_for_are_refused() {
        let error = Pool::start(MOST_THREADS + 1).unwrap_err();
        assert_eq!(error.message(), "threads is 4097, and must be 4096 or less");
    }

    #[test]
    fn as_many_tasks_are_under_way_as_there_are_threads() {
        let pool = Pool::start(2).unwrap();
        pool.set_threads(7).unwrap();
        let barrier = Arc::new(std::sync::Barrier::new(8));
        for _ in 0..7 {
            let barrier = barrier.clone();
            pool.submit(Box::new(move |_| {
                barrier.wait();
            }));
        }
        barrier.wait();
    }
}
