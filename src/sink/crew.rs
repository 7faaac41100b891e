//! Threads that encode and publish shards, each a single shard at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::manifest::{Manifest, ShardEntry};
use super::plan::Plan;
use super::publish::Publisher;
use super::task::{Ending, Part, Task};
use super::writers::{Finished, ShardWriter};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// Pool of encoding threads: a thread per shard, up to the `threads` option.
#[derive(Debug)]
pub(super) struct Crew {
    tasks: Option<Sender<Task>>,
    queue: Receiver<Task>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    plan: Arc<Plan>,
    publisher: Mutex<Publisher>,
    /// Failure of the shard with the lowest number among the shards that failed.
    failure: Mutex<Option<(u64, Error)>>,
    failed: AtomicBool,
    encoding_ns: AtomicU64,
    publishing_ns: AtomicU64,
}

/// Time of all threads by kind of work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    pub(super) encoding: Duration,
    pub(super) publishing: Duration,
    pub(super) threads: usize,
}

impl Crew {
    pub(super) fn new(plan: Arc<Plan>, manifest: Manifest) -> Self {
        let (tasks, queue) = unbounded();
        let shared = Shared {
            plan,
            publisher: Mutex::new(Publisher::new(manifest)),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
            encoding_ns: AtomicU64::new(0),
            publishing_ns: AtomicU64::new(0),
        };
        Self { tasks: Some(tasks), queue, threads: Vec::new(), shared: Arc::new(shared) }
    }

    /// Queues a shard for writing, and starts another thread if the `threads` option allows.
    pub(super) fn begin(&mut self, task: Task) -> Result<()> {
        if self.threads.len() < self.shared.plan.options.threads {
            let (queue, shared) = (self.queue.clone(), self.shared.clone());
            let thread = std::thread::Builder::new().name("gristmill-sink".to_owned());
            let thread = thread.spawn(move || queue.iter().for_each(|task| shared.write(task)));
            let refused = |e: std::io::Error| Error::new(ErrorKind::Io, format!("a thread cannot be started: {e}"));
            self.threads.push(thread.map_err(refused)?);
        }
        match &self.tasks {
            Some(tasks) if tasks.send(task).is_ok() => Ok(()),
            _ => Err(Error::new(ErrorKind::Cancelled, "the sink has ended")),
        }
    }

    /// Waits until all queued shards are written or given up.
    pub(super) fn join(&mut self) {
        self.tasks = None;
        for thread in self.threads.drain(..) {
            // A panic was caught and recorded as a failure.
            let _ = thread.join();
        }
    }

    /// Returns true if a shard has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Stops all writing without a recorded failure, because the caller reports its own error.
    pub(super) fn give_up(&self) {
        self.shared.failed.store(true, Ordering::Relaxed);
    }

    /// Takes the failure, so that it is reported only once.
    pub(super) fn failure(&self) -> Option<Error> {
        lock(&self.shared.failure).take().map(|(_, error)| error)
    }

    pub(super) fn publisher(&self) -> MutexGuard<'_, Publisher> {
        lock(&self.shared.publisher)
    }

    pub(super) fn work(&self) -> Work {
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Ordering::Relaxed));
        let shared = &self.shared;
        Work {
            encoding: time(&shared.encoding_ns),
            publishing: time(&shared.publishing_ns),
            threads: self.threads.len(),
        }
    }
}

impl Shared {
    fn write(&self, task: Task) {
        let number = task.number;
        if self.failed.load(Ordering::Relaxed) {
            return;
        }
        let written = catch_unwind(AssertUnwindSafe(|| self.shard(task)));
        let written = written.unwrap_or_else(|_| Err(Error::data("the encoder panicked; this is a bug")));
        if let Err(error) = written {
            let mut failure = lock(&self.failure);
            if failure.as_ref().is_none_or(|(other, _)| number < *other) {
                *failure = Some((number, error.path(self.plan.folder.file(&self.plan.name(number)))));
            }
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    /// Writes a shard; a shard that is given up leaves no files.
    fn shard(&self, task: Task) -> Result<()> {
        let mut writer = timed(&self.encoding_ns, || self.plan.shard(task.number, task.first_record))?;
        let mut record = task.first_record;
        for part in task.parts {
            match part {
                Part::Elements(elements, room) => {
                    timed(&self.encoding_ns, || {
                        let written = self.encode(&mut *writer, elements, &mut record);
                        written.map_err(|e| e.behind(task.first_record).record(record))
                    })?;
                    drop(room);
                }
                Part::End(ending) => {
                    let finished = timed(&self.encoding_ns, || writer.finish());
                    let finished = finished.map_err(|e| e.behind(task.first_record))?;
                    return timed(&self.publishing_ns, || {
                        self.publish(task.number, task.first_record, finished, *ending)
                    });
                }
            }
        }
        Ok(())
    }

    /// Encodes `elements` and advances `record`. An error without a record number belongs to `record`; a number in an
    /// error is relative to the shard.
    fn encode(&self, writer: &mut dyn ShardWriter, elements: Vec<Element>, record: &mut u64) -> Result<()> {
        for element in elements {
            writer.write(&*self.plan.fit(&element)?)?;
            *record += 1;
        }
        Ok(())
    }

    fn publish(&self, number: u64, first_record: u64, finished: Finished, ending: Ending) -> Result<()> {
        let files = finished.files.into_iter().map(|file| file.finish()).collect::<Result<_>>()?;
        let Ending { records, raw_bytes, state } = ending;
        let entry = ShardEntry { files, first_record, records, raw_bytes, state, note: finished.note };
        lock(&self.publisher).publish(&self.plan.folder, number, entry)
    }
}

fn timed<R>(ns: &AtomicU64, work: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = work();
    ns.fetch_add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    result
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.locked()
}
