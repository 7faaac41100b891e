//! The parent's side: ranges to evaluate, workers, and memory for their answers.
//!
//! One thread owns all of this state. The thread receives commands from consumers, events of workers, and notices of
//! freed memory; after each message it assigns all possible work.
//!
//! A range is evaluated by one worker at a time, in tasks. If a worker ends early or dies, the rest of the range
//! becomes the next task. Slots of a range therefore arrive in index order, and none is lost or repeated. Slots count
//! only after a complete part has arrived and was decoded.

mod answer_times;
mod carrier;
mod coordinator;
mod drought;
mod job;
mod lanes;
mod memory;
mod queue;
mod respawn;
#[cfg(test)]
mod tests;
mod tuning;
mod worker;
mod workers;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};

pub(crate) use self::carrier::{Carrier, End, Link, MemoryFigures, Recruit, Room};
use self::coordinator::{Command, Coordinator};
use super::budget::Plan;
use super::options::MpOptions;
use super::slab::PAGE;
use crate::cx::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Demand;
use crate::exec::WorkersReport;
use crate::exec::remote::{Border, Deliver, How, Remote};
use crate::fork::Ours;
use crate::sync::Locked;

/// Workers that evaluate ranges of a pipeline's borders.
///
/// A forked child evaluates nothing; the workers stay with the process that started them.
pub(crate) struct WorkerPool<C: Carrier> {
    plan: Plan,
    coordinator: Ours<Handle<C>>,
    figures: Arc<Figures>,
}

/// The coordinator's thread and its command channel.
struct Handle<C: Carrier> {
    commands: Sender<Command<C>>,
    thread: Option<JoinHandle<()>>,
}

/// Figures that the report reads while the coordinator runs.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    busy_ns: AtomicU64,
    /// Ranges that may be in progress or ready to be read.
    window: AtomicUsize,
    /// Active threads of all workers.
    active: AtomicUsize,
    /// Active threads of each worker.
    active_each: AtomicUsize,
    demand: Arc<Demand>,
    report: Mutex<WorkersReport>,
}

impl Figures {
    fn publish(&self, report: WorkersReport) {
        *self.report.locked() = report;
    }
}

/// Callback that reports free memory for answers.
pub(crate) type Wake = Box<dyn Fn() + Send + Sync>;

impl<C: Carrier> WorkerPool<C> {
    /// Starts the workers of the carrier returned by `carrier`. Workers must build `pipeline`, given as lines of its
    /// stages, and count into `recorder`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system refuses the shared memory or a thread.
    pub(crate) fn start(
        carrier: impl FnOnce(Wake) -> Result<C>,
        pipeline: Vec<String>,
        plan: Plan,
        options: MpOptions,
        recorder: Arc<Recorder>,
    ) -> Result<Arc<Self>> {
        // Data cached for opening files does not belong to any part of the budget.
        crate::store::let_go();
        let (room, has_room) = bounded(1);
        let wake = move || {
            // A full channel has already woken the coordinator.
            let _ = room.try_send(());
        };
        let carrier = Arc::new(carrier(Box::new(wake))?);
        let window = options.start_window.unwrap_or(2 * plan.start_workers * plan.active_threads).max(1);
        let (window, active) = (AtomicUsize::new(window), AtomicUsize::new(plan.start_workers * plan.active_threads));
        let active_each = AtomicUsize::new(plan.active_threads);
        let figures = Arc::new(Figures { window, active, active_each, ..Figures::default() });
        let coordinator = Coordinator::new(carrier, pipeline, plan, options, recorder, figures.clone(), has_room);
        let commands = coordinator.commands();
        let thread = std::thread::Builder::new().name("gristmill-workers".into());
        let thread = thread.spawn(move || coordinator.run()).map_err(|e| {
            Error::new(ErrorKind::Io, format!("cannot start the thread that coordinates the workers: {e}"))
        })?;
        let coordinator = Ours::new(Handle { commands, thread: Some(thread) });
        Ok(Arc::new(Self { plan, coordinator, figures }))
    }
}

impl<C: Carrier> WorkerPool<C> {
    /// Returns the demand of the consumer; the runner of the pipeline keeps it current.
    pub(crate) fn demand(&self) -> &Arc<Demand> {
        &self.figures.demand
    }

    /// Sends a command to the coordinator. If there is none, the command and any sender inside are dropped, which
    /// notifies the waiting thread.
    fn command(&self, command: Command<C>) -> bool {
        self.coordinator.get().is_some_and(|handle| handle.commands.send(command).is_ok())
    }
}

#[cfg(test)]
impl<C: Carrier> WorkerPool<C> {
    /// Sets the number of workers, up to the planned maximum, and of active threads of each worker.
    pub(crate) fn resize(&self, workers: usize, threads: usize) {
        self.command(Command::Size { workers, threads });
    }
}

impl<C: Carrier> Remote for WorkerPool<C> {
    fn parallel(&self) -> usize {
        self.figures.active.load(Ordering::Relaxed)
    }

    fn parallel_each(&self) -> usize {
        self.figures.active_each.load(Ordering::Relaxed)
    }

    fn window(&self) -> usize {
        self.figures.window.load(Ordering::Relaxed)
    }

    fn part_bytes(&self) -> usize {
        self.plan.part_bytes(self.parallel())
    }

    fn range_time(&self) -> Duration {
        self.plan.range_time()
    }

    fn lane_bytes(&self, lanes: usize) -> usize {
        // Of the slab without the reserve, a third may be ready, a third in progress, and the rest is left free.
        let room = (self.plan.slab_bytes - self.plan.max_element_bytes) as usize;
        self.part_bytes().min(room / lanes.saturating_mul(3).max(1)).max(PAGE)
    }

    fn is_shared(&self) -> bool {
        self.plan.elsewhere.is_some_and(|elsewhere| elsewhere.shared)
    }

    fn submit(&self, border: Border, range: Range<u64>, how: How, deliver: Box<dyn Deliver>) {
        self.command(Command::Submit { border, range, how, deliver });
    }

    fn sync(&self, patience: Duration) {
        let (done, is_done) = bounded(1);
        if self.command(Command::Sync(done)) {
            let _ = is_done.recv_timeout(patience);
        }
    }

    fn cancel(&self) {
        self.command(Command::End);
    }

    fn figures(&self) -> WorkersReport {
        if self.coordinator.get().is_none() { WorkersReport::default() } else { self.figures.report.locked().clone() }
    }

    fn busy(&self) -> Duration {
        Duration::from_nanos(self.figures.busy_ns.load(Ordering::Relaxed))
    }
}

impl<C: Carrier> Drop for WorkerPool<C> {
    fn drop(&mut self) {
        let Some(handle) = self.coordinator.get_mut() else { return };
        let _ = handle.commands.send(Command::End);
        if let Some(thread) = handle.thread.take() {
            let _ = thread.join();
        }
    }
}

debug_as!(<C: Carrier> WorkerPool<C>, |self, f| {
    f.debug_struct("WorkerPool").field("plan", &self.plan).finish_non_exhaustive()
});
