//! Threads that take chunks of elements from one queue.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::error::{Error, Result};

/// A piece of work, which is told whether it is to go on. It sends its result wherever its maker waits for it; where it is
/// dropped, or stops early, its maker sees that nothing will come.
pub(crate) type Task = Box<dyn FnOnce(&Open) + Send>;

/// Whether a pool still works.
#[derive(Debug)]
pub(crate) struct Open(AtomicBool);

impl Open {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A fixed number of threads and the queue they take from, first come first served.
///
/// Whoever submits bounds what it has in the queue, so the queue itself needs no bound. Tasks may hold their pool: it is
/// therefore ended by whoever has started it, [`cancel`](Self::cancel) and [`join`](Self::join), and not by the last holder.
#[derive(Debug)]
pub(crate) struct Pool {
    /// `None` once cancelled.
    queue: Mutex<Option<Sender<Task>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    count: usize,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    open: Open,
    busy_ns: AtomicU64,
}

impl Pool {
    pub(crate) fn start(count: usize) -> Result<Arc<Self>> {
        let (queue, tasks) = unbounded();
        let shared = Arc::new(Shared { open: Open(AtomicBool::new(true)), busy_ns: AtomicU64::new(0) });
        let threads = (0..count).map(|i| spawn(i, tasks.clone(), shared.clone())).collect::<Result<_>>()?;
        Ok(Arc::new(Self { queue: Mutex::new(Some(queue)), threads: Mutex::new(threads), count, shared }))
    }

    /// Puts a task at the end of the queue; once cancelled, drops it.
    pub(crate) fn submit(&self, task: Task) {
        if let Some(queue) = &*self.queue.lock().unwrap_or_else(PoisonError::into_inner) {
            // The threads hold the other end until the pool goes.
            let _ = queue.send(task);
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.count
    }

    /// Time in which threads were at work, summed over all of them.
    pub(crate) fn busy(&self) -> Duration {
        Duration::from_nanos(self.shared.busy_ns.load(Ordering::Relaxed))
    }

    /// Drops what waits, and has what is under way stop as soon as it can.
    pub(crate) fn cancel(&self) {
        self.shared.open.0.store(false, Ordering::Relaxed);
        *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits for the threads of a pool that was cancelled.
    pub(crate) fn join(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
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

fn spawn(index: usize, tasks: Receiver<Task>, shared: Arc<Shared>) -> Result<JoinHandle<()>> {
    let run = move || {
        for task in tasks {
            if !shared.open.get() {
                continue;
            }
            let start = Instant::now();
            task(&shared.open);
            shared.busy_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    };
    let thread = std::thread::Builder::new().name(format!("gristmill-{index}"));
    thread
        .spawn(|| super::thread::run(run))
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
        // Nothing of the tasks is left, those that never began included.
        assert!(dropped.try_recv().is_err_and(|e| e.is_disconnected()));
        assert_eq!(Arc::strong_count(&pool), 1);
        pool.submit(Box::new(|_| panic!("nobody is there")));
    }
}
