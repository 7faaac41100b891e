//! Workers that lie, die, are late or take too much. No process runs: a test hands the coordinator each message and each end.

mod answers;
mod deaths;
mod hedges;
mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::*;
use crate::cx::Tally;
use crate::element::Owner;
use crate::error::{Error, ErrorKind};
use crate::exec::WorkerReport;
use crate::exec::remote::{Delivery, Evaluated, Point, Segment};
use crate::sync::Locked;
use crate::workers::control::{Done, Need, Ready, Task, ToWorker};
use crate::workers::options::Poison;
use crate::workers::pool::carrier::{End, Link, MemoryFigures, Recruit, Room};
use crate::workers::pool::worker::Worker as Entry;
use crate::workers::pool::{Remote, WorkerPool};
use crate::workers::slab::{ExtentId, PAGE};

const MIB: u64 = 1 << 20;

/// Gives any room that is requested, and starts no worker.
#[derive(Default)]
struct Paper {
    granted: AtomicU32,
}

impl Carrier for Paper {
    type Link = Worker;
    type Room = Pages;
    type End = Death;

    fn start(&self, _: Recruit, _: &Sender<Event<Death>>) -> Result<Worker> {
        Err(Error::new(ErrorKind::Io, "no worker starts here"))
    }
    fn is_from_outside(_: &Error) -> bool {
        false
    }
    fn room(&self, bytes: usize, _: usize) -> Option<Pages> {
        let pages = bytes.div_ceil(PAGE) as u32;
        let generation = u64::from(self.granted.fetch_add(1, Ordering::Relaxed));
        Some(Pages(ExtentId { page: 0, pages, generation }))
    }
    fn last_room(&self, bytes: usize, place: usize) -> Option<Pages> {
        self.room(bytes, place)
    }
    fn memory(&self) -> MemoryFigures {
        MemoryFigures::default()
    }
}

struct Pages(ExtentId);

impl Room for Pages {
    fn extent(&self) -> ExtentId {
        self.0
    }
    fn into_bytes(self, used: usize) -> std::result::Result<Arc<dyn Owner>, (Self, Error)> {
        match used <= self.len() {
            true => Ok(Arc::new(vec![0u8; used])),
            false => Err((self, Error::new(ErrorKind::Worker, format!("{used} bytes are more than it was given")))),
        }
    }
}

/// The end of a worker: killed from outside, or by its own doing.
#[derive(Clone, Copy)]
struct Death {
    outside: bool,
    of_others: bool,
    of_anybody: bool,
}

const OWN: Death = Death { outside: false, of_others: false, of_anybody: false };
const KILLED: Death = Death { outside: true, of_others: false, of_anybody: false };

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("died")
    }
}

impl End for Death {
    fn who(&self) -> String {
        "pid 1".to_owned()
    }
    fn is_from_outside(&self) -> bool {
        self.outside
    }
    fn is_of_others(&self) -> bool {
        self.of_others
    }
    fn is_of_anybody(&self) -> bool {
        self.of_anybody
    }
    fn is_asked_for(&self) -> bool {
        false
    }
    fn error(&self, what: String) -> Error {
        Error::new(ErrorKind::Worker, what)
    }
}

/// A worker on paper: what it was sent, whether it was killed, and the private memory that it reports.
#[derive(Clone, Default)]
struct Worker {
    node: String,
    sent: Arc<Mutex<Vec<ToWorker>>>,
    is_killed: Arc<AtomicBool>,
    memory: Arc<AtomicU64>,
    lowers: bool,
}

impl Worker {
    /// The tasks that it was given, by their range.
    fn tasks(&self) -> Vec<Task> {
        let task = |message: &ToWorker| if let ToWorker::Task(task) = message { Some(task.clone()) } else { None };
        self.sent.locked().iter().filter_map(task).collect()
    }

    fn last_task(&self) -> Task {
        self.tasks().pop().unwrap()
    }

    fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Relaxed)
    }
}

impl Link for Worker {
    fn who(&self) -> String {
        "pid 1".to_owned()
    }
    fn node(&self) -> String {
        self.node.clone()
    }
    fn send(&self, message: &ToWorker) -> Result<()> {
        self.sent.locked().push(message.clone());
        Ok(())
    }
    fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
    }
    fn cpu_time(&self) -> Option<Duration> {
        None
    }
    fn capped_bytes(&self) -> Option<u64> {
        Some(self.memory.load(Ordering::Relaxed))
    }
    fn bytes_here(&self) -> Option<u64> {
        self.capped_bytes()
    }
    fn lower_cap(&self, _: u64) -> bool {
        self.lowers
    }
    fn report(&self) -> Option<WorkerReport> {
        Some(WorkerReport::default())
    }
}

/// What came of a range.
#[derive(Clone, Default)]
struct Inbox(Arc<Mutex<Outcome>>);

#[derive(Default)]
struct Outcome {
    indices: u64,
    skipped: u64,
    errors: Vec<String>,
    garbled: bool,
}

impl Inbox {
    fn indices(&self) -> u64 {
        self.0.locked().indices
    }
    fn errors(&self) -> Vec<String> {
        self.0.locked().errors.clone()
    }
}

impl Deliver for Inbox {
    fn wanted(&self) -> bool {
        true
    }
    fn part(&mut self, delivery: &Delivery) -> Result<Option<Point>> {
        let mut outcome = self.0.locked();
        if outcome.garbled {
            return Err(Error::new(ErrorKind::Worker, "no such encoding"));
        }
        outcome.indices += delivery.evaluated.indices;
        Ok(None)
    }
    fn ungroup(&mut self) {}
    fn skip(&mut self) {
        self.0.locked().skipped += 1;
    }
    fn fail(&mut self, error: Error) {
        self.0.locked().errors.push(error.to_string());
    }
}

/// A coordinator without its thread, and the recorder that it notes into.
struct Harness {
    coordinator: Coordinator<Paper>,
    recorder: Arc<Recorder>,
}

/// Three workers with 64 MiB each and two threads; 20 MiB of shared memory, of which 5 are for the head of the line.
fn options() -> MpOptions {
    MpOptions::auto().workers(3).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(3 * 66 * MIB + 20 * MIB)
}

impl Harness {
    fn new(options: MpOptions) -> Self {
        let recorder = Recorder::new(1);
        let plan = Plan::new(&options, 2, 0).unwrap();
        let carrier = Arc::new(Paper::default());
        let (recorder_of, has_room) = (recorder.clone(), crossbeam_channel::never());
        let coordinator = Coordinator::new(carrier, Vec::new(), plan, options, recorder_of, Arc::default(), has_room);
        Self { coordinator, recorder }
    }

    /// A worker that is ready, in the lowest free place.
    fn join(&mut self, number: u64, worker: Worker) -> Worker {
        let (_, cap) = self.coordinator.staffing();
        self.join_with(number, cap, worker)
    }

    fn join_with(&mut self, number: u64, cap: u64, worker: Worker) -> Worker {
        let taken: BTreeSet<usize> = self.coordinator.workers.all.values().map(|worker| worker.place).collect();
        let place = (0..).find(|place| !taken.contains(place)).unwrap();
        self.coordinator.workers.all.insert(number, Entry { place, ..Entry::new(cap) });
        self.coordinator.started(number, Ok(worker.clone()));
        self.coordinator.receive(number, FromWorker::Ready(Ready { build_ns: 0 }));
        worker
    }

    fn submit(&mut self, range: Range<u64>, how: How) -> Inbox {
        let inbox = Inbox::default();
        let deliver = Box::new(inbox.clone());
        self.coordinator.apply(Command::Submit { border: 0.into(), range, how, deliver });
        self.coordinator.dispatch();
        inbox
    }

    fn done(&mut self, number: u64, task: &Task, evaluated: Evaluated) {
        let tally = None::<Tally>;
        let done = Done { id: task.id, evaluated, took: Duration::from_millis(1), tally };
        self.coordinator.receive(number, FromWorker::Done(done));
        self.coordinator.dispatch();
    }

    /// All indices of a task.
    fn finish(&mut self, number: u64, task: &Task) {
        self.done(number, task, Evaluated { indices: task.end - task.start, used: 8, ..Evaluated::default() });
    }

    fn need(&mut self, number: u64, need: Need) {
        self.coordinator.receive(number, FromWorker::Need(need));
        self.coordinator.dispatch();
    }

    fn dies(&mut self, number: u64, death: Death) {
        self.coordinator.exited(number, &death);
        self.coordinator.dispatch();
    }

    /// The reason for which a worker was killed.
    fn killed(&self, number: u64) -> Option<&str> {
        self.coordinator.workers.all[&number].kill_reason.as_deref()
    }

    fn has_heap(&self, cap: u64) -> bool {
        self.coordinator.memory.has_heap(&self.coordinator.workers, cap)
    }

    fn check_budget(&mut self) {
        let Coordinator { memory, workers, options, .. } = &mut self.coordinator;
        memory.check_budget(workers, &self.recorder, options.tick);
    }

    fn noted(&self, what: &str) -> u64 {
        self.recorder.notes().iter().filter(|(note, _)| note.starts_with(what)).map(|(_, count)| count).sum()
    }
}

fn lane() -> How {
    let at = Point { state: "{}".into(), skip: 0 };
    How::Lane { from: Segment { lane: 7, after: None, at }, due: 0 }
}
