//! Threads that take chunks of elements from one queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::error::{Error, Result};

/// A piece of work. It sends its result wherever its maker waits for it.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// A fixed number of threads and the queue they take from, first come first served.
///
/// Whoever submits bounds what it has in the queue, so the queue itself needs no bound.
#[derive(Debug)]
pub(crate) struct Pool {
    queue: Option<Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
    busy_ns: Arc<AtomicU64>,
}

impl Pool {
    pub(crate) fn start(threads: usize) -> Result<Arc<Self>> {
        let (queue, tasks) = unbounded();
        let busy_ns = Arc::new(AtomicU64::new(0));
        let threads = (0..threads).map(|i| spawn(i, tasks.clone(), busy_ns.clone())).collect::<Result<_>>()?;
        Ok(Arc::new(Self { queue: Some(queue), threads, busy_ns }))
    }

    pub(crate) fn submit(&self, task: Task) {
        if let Some(queue) = &self.queue {
            // The threads hold the other end until the pool goes.
            let _ = queue.send(task);
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Time in which threads were at work, summed over all of them.
    pub(crate) fn busy(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.busy_ns.load(Ordering::Relaxed))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.queue = None;
        let me = std::thread::current().id();
        // The last holder may be a task on one of the threads, which cannot wait for itself.
        self.threads.drain(..).filter(|t| t.thread().id() != me).for_each(|thread| drop(thread.join()));
    }
}

fn spawn(index: usize, tasks: Receiver<Task>, busy_ns: Arc<AtomicU64>) -> Result<JoinHandle<()>> {
    let run = move || {
        for task in tasks {
            let start = Instant::now();
            task();
            busy_ns.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    };
    let thread = std::thread::Builder::new().name(format!("gristmill-{index}"));
    thread
        .spawn(|| super::thread::run(run))
        .map_err(|e| Error::new(crate::ErrorKind::Io, format!("cannot start thread {index}: {e}")))
}
