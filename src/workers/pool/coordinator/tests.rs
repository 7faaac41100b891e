//! Workers that lie, die, are late or take too much. No process runs: a test hands the coordinator each message and each end.

use std::collections::BTreeSet;
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
use crate::workers::pool::{Remote, WorkerPool};
use crate::workers::slab::ExtentId;

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
}

const OWN: Death = Death { outside: false, of_others: false };
const KILLED: Death = Death { outside: true, of_others: false };

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
struct Desk {
    coordinator: Coordinator<Paper>,
    recorder: Arc<Recorder>,
}

/// Three workers with 64 MiB each and two threads; 20 MiB of shared memory, of which 5 are for the head of the line.
fn options() -> MpOptions {
    MpOptions::auto().workers(3).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(3 * 66 * MIB + 20 * MIB)
}

impl Desk {
    fn new(options: MpOptions) -> Self {
        let (commands, orders) = unbounded();
        let recorder = Recorder::new(1);
        let plan = Plan::new(&options, 2, 0).unwrap();
        let ears = (orders, commands, crossbeam_channel::never());
        let carrier = Arc::new(Paper::default());
        let coordinator =
            Coordinator::new((carrier, Vec::new()), plan, options, recorder.clone(), Arc::default(), ears);
        Self { coordinator, recorder }
    }

    /// A worker that is ready, in the lowest free place.
    fn join(&mut self, number: u64, worker: Worker) -> Worker {
        let (_, cap) = self.coordinator.staffing();
        self.join_with(number, cap, worker)
    }

    fn join_with(&mut self, number: u64, cap: u64, worker: Worker) -> Worker {
        let taken: BTreeSet<usize> = self.coordinator.crew.values().map(|member| member.place).collect();
        let place = (0..).find(|place| !taken.contains(place)).unwrap();
        self.coordinator.crew.insert(number, Member { place, ..Member::new(cap) });
        self.coordinator.started(number, Ok(worker.clone()));
        self.coordinator.listen(number, FromWorker::Ready(Ready { build_ns: 0 }));
        worker
    }

    fn submit(&mut self, range: Range<u64>, how: How) -> Inbox {
        let inbox = Inbox::default();
        let deliver = Box::new(inbox.clone());
        self.coordinator.obey(Command::Submit { border: 0.into(), range, how, deliver });
        self.coordinator.hand_out();
        inbox
    }

    fn done(&mut self, number: u64, task: &Task, evaluated: Evaluated) {
        let tally = None::<Tally>;
        let done = Done { id: task.id, evaluated, took: Duration::from_millis(1), tally };
        self.coordinator.listen(number, FromWorker::Done(done));
        self.coordinator.hand_out();
    }

    /// All indices of a task.
    fn finish(&mut self, number: u64, task: &Task) {
        self.done(number, task, Evaluated { indices: task.end - task.start, used: 8, ..Evaluated::default() });
    }

    fn need(&mut self, number: u64, need: Need) {
        self.coordinator.listen(number, FromWorker::Need(need));
        self.coordinator.hand_out();
    }

    fn dies(&mut self, number: u64, death: Death) {
        self.coordinator.exited(number, &death);
        self.coordinator.hand_out();
    }

    /// The reason for which a worker was killed.
    fn killed(&self, number: u64) -> Option<&str> {
        self.coordinator.crew[&number].killed.as_deref()
    }

    fn noted(&self, what: &str) -> u64 {
        self.recorder.notes().iter().filter(|(note, _)| note.starts_with(what)).map(|(_, count)| count).sum()
    }
}

fn lane() -> How {
    let at = Point { state: "{}".into(), skip: 0 };
    How::Lane { from: Segment { lane: 7, after: None, at }, due: 0 }
}

#[test]
fn an_answer_that_cannot_be_is_not_delivered_and_ends_its_worker() {
    let answer = |indices, last, used| Evaluated { indices, last, used, ..Evaluated::default() };
    for (lie, why) in [
        (answer(11, false, 8), "11 of 10 elements"),
        (answer(0, false, 8), "0 of 10 elements"),
        (answer(10, true, 8), "the last: true"),
        (answer(10, false, 1 << 30), "more than it was given"),
    ] {
        let mut desk = Desk::new(options());
        let liar = desk.join(0, Worker::default());
        let inbox = desk.submit(0..10, How::Slots);
        desk.done(0, &liar.last_task(), lie);
        assert!(liar.is_killed() && desk.killed(0).unwrap().contains(why), "{:?}", desk.killed(0));
        assert_eq!((inbox.indices(), inbox.errors()), (0, vec![]));
        // The range is done again, by a worker that is there when the liar is gone.
        let honest = desk.join(1, Worker::default());
        assert_eq!(honest.tasks(), [], "memory of a range is free only after its worker has ended");
        desk.dies(0, KILLED);
        desk.finish(1, &honest.last_task());
        assert_eq!(inbox.indices(), 10);
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_not_counted_and_its_range_is_done_again() {
    let mut desk = Desk::new(options());
    let garbler = desk.join(0, Worker::default());
    let inbox = desk.submit(0..10, How::Slots);
    inbox.0.locked().garbled = true;
    desk.finish(0, &garbler.last_task());
    assert!(desk.killed(0).unwrap().contains("cannot be read"));
    inbox.0.locked().garbled = false;
    let honest = desk.join(1, Worker::default());
    desk.coordinator.hand_out();
    let task = honest.last_task();
    assert_eq!((task.start, task.end), (0, 10));
    assert_eq!(desk.coordinator.indices, 0);
}

#[test]
fn a_lane_may_end_early_and_a_range_may_not() {
    let mut desk = Desk::new(options());
    let worker = desk.join(0, Worker::default());
    let inbox = desk.submit(0..10, lane());
    desk.done(0, &worker.last_task(), Evaluated { indices: 4, last: true, used: 8, ..Evaluated::default() });
    assert_eq!((inbox.indices(), worker.is_killed()), (4, false));
    assert_eq!(worker.tasks().len(), 1, "nothing is left of it");
}

#[test]
fn a_task_or_an_extent_that_a_worker_does_not_have_ends_it() {
    let mut desk = Desk::new(options());
    let worker = desk.join(0, Worker::default());
    desk.submit(0..10, How::Slots);
    let task = worker.last_task();
    desk.finish(0, &task);
    assert!(!worker.is_killed());
    desk.finish(0, &task);
    assert!(worker.is_killed() && desk.killed(0).unwrap().contains("which it does not have"));
    let other = desk.join(1, Worker::default());
    desk.coordinator.listen(1, FromWorker::Returned(task.extent));
    assert!(other.is_killed() && desk.killed(1).unwrap().contains("which it does not keep"));
}

#[test]
fn a_worker_keeps_no_more_shared_memory_than_its_part_of_half() {
    let mut desk = Desk::new(options());
    // 20 MiB, without the 5 for the head of the line, by half, for three workers.
    assert_eq!(desk.coordinator.keep(), 5 * MIB / 2);
    let worker = desk.join(0, Worker::default());
    desk.submit(0..10, How::Slots);
    let mut kept = Vec::new();
    let keep = |desk: &mut Desk, kept: &mut Vec<ExtentId>| {
        let task = worker.last_task();
        desk.need(0, Need { id: task.id, bytes: MIB, kept: false });
        let task = worker.last_task();
        assert_eq!(task.extent.len() as u64, MIB);
        kept.push(task.extent);
        desk.need(0, Need { id: task.id, bytes: 0, kept: true });
    };
    keep(&mut desk, &mut kept);
    keep(&mut desk, &mut kept);
    assert!(!worker.is_killed());
    // One that is returned counts no more.
    desk.coordinator.listen(0, FromWorker::Returned(kept[0]));
    keep(&mut desk, &mut kept);
    assert!(!worker.is_killed());
    keep(&mut desk, &mut kept);
    assert!(worker.is_killed());
    assert_eq!(desk.killed(0), Some("it keeps 3 MiB of shared memory, of 2.5 MiB at most"));
    assert_eq!(desk.noted("ranges evaluated again because a function keeps an array"), 3);
}

#[test]
fn a_worker_of_a_run_without_arrays_in_the_slab_keeps_nothing() {
    let mut desk = Desk::new(MpOptions { arrays_in_slab: false, ..options() });
    let worker = desk.join(0, Worker::default());
    desk.submit(0..10, How::Slots);
    desk.need(0, Need { id: worker.last_task().id, bytes: 0, kept: true });
    assert!(worker.is_killed());
}

#[test]
fn a_lane_is_read_on_behind_a_task_that_needed_more_memory() {
    let mut desk = Desk::new(options());
    let worker = desk.join(0, Worker::default());
    desk.submit(0..10, lane());
    let first = worker.last_task();
    desk.need(0, Need { id: first.id, bytes: 3 * MIB, kept: false });
    let second = worker.last_task();
    assert_eq!(second.lane.unwrap().after, Some(first.id));
    assert_eq!(second.extent.len() as u64, 3 * MIB);
}

#[test]
fn an_element_above_the_largest_is_refused_and_others_are_not() {
    let mut desk = Desk::new(options());
    let worker = desk.join(0, Worker::default());
    let inbox = desk.submit(3..10, How::Slots);
    desk.need(0, Need { id: worker.last_task().id, bytes: 5 * MIB, kept: false });
    assert_eq!(worker.last_task().extent.len() as u64, 5 * MIB);
    desk.need(0, Need { id: worker.last_task().id, bytes: 5 * MIB + 1, kept: false });
    let errors = inbox.errors();
    assert!(errors.len() == 1 && errors[0].starts_with("element 3: an element of 5"), "{errors:?}");
}

#[test]
fn a_worker_that_was_killed_here_did_it_by_its_own_doing() {
    // Deaths from outside end a run only after a minute; of the own doing, ten for each worker do.
    let ends = |death: Death, kill: bool| {
        let mut desk = Desk::new(options().workers(1).ram_budget(86 * MIB));
        (0..12).find(|&number| {
            desk.join(number, Worker::default());
            if kill {
                desk.coordinator.kill(number, "it lies".to_owned());
            }
            desk.dies(number, death);
            desk.coordinator.over.is_some()
        })
    };
    assert_eq!(ends(OWN, false), Some(10));
    assert_eq!(ends(KILLED, false), None);
    assert_eq!(ends(KILLED, true), Some(10));
}

#[test]
fn only_a_worker_that_was_not_sent_home_counts_as_replaced() {
    let mut desk = Desk::new(options());
    for number in 0..3 {
        desk.join(number, Worker::default());
    }
    desk.coordinator.resize(2);
    desk.coordinator.dismiss();
    let home = desk.coordinator.crew.iter().find(|(_, member)| member.told_to_stop).map(|(&number, _)| number);
    assert_eq!(home, Some(2));
    desk.dies(2, OWN);
    assert_eq!((desk.coordinator.replaced, desk.noted("workers replaced")), (0, 0));
    desk.dies(1, OWN);
    assert_eq!((desk.coordinator.replaced, desk.noted("workers replaced: died")), (1, 1));
}

#[test]
fn an_element_is_blamed_after_three_workers_that_were_alone_with_it() {
    for poison in [Poison::Error, Poison::Skip] {
        let mut desk = Desk::new(options().on_poison(poison));
        let inbox = desk.submit(4..6, How::Slots);
        let mut deaths = 0;
        // The second element alone is done.
        for number in 0..20 {
            let worker = desk.join(number, Worker::default());
            desk.coordinator.hand_out();
            let Some(task) = worker.tasks().pop() else { break };
            match task.start {
                4 => {
                    deaths += 1;
                    desk.dies(number, OWN);
                }
                _ => {
                    assert_eq!(poison, Poison::Skip);
                    desk.finish(number, &task);
                    break;
                }
            }
        }
        // Three over both, and one more over the first of them.
        assert_eq!(deaths, 4);
        let outcome = inbox.0.locked();
        match poison {
            Poison::Error => {
                let [error] = &outcome.errors[..] else { panic!("{:?}", outcome.errors) };
                assert!(error.starts_with("element 4: 3 workers died over this element"), "{error}");
            }
            Poison::Skip => assert_eq!((outcome.skipped, outcome.indices, outcome.errors.len()), (1, 1, 0)),
        }
    }
}

#[test]
fn a_death_over_tasks_of_others_is_blamed_on_no_element() {
    let mut desk = Desk::new(options());
    let inbox = desk.submit(4..5, How::Slots);
    for number in 0..9 {
        let worker = desk.join(number, Worker::default());
        desk.coordinator.hand_out();
        assert!(!worker.last_task().alone);
        desk.dies(number, Death { outside: false, of_others: true });
    }
    assert_eq!(inbox.errors(), [""; 0]);
}

#[test]
fn a_suspect_range_has_a_worker_for_itself() {
    let mut desk = Desk::new(options());
    let first = desk.join(0, Worker::default());
    desk.submit(0..4, How::Slots);
    desk.submit(4..8, How::Slots);
    assert_eq!(first.tasks().len(), 2);
    desk.dies(0, OWN);
    let second = desk.join(1, Worker::default());
    desk.coordinator.hand_out();
    let starts = |worker: &Worker| worker.tasks().iter().map(|task| (task.start, task.alone)).collect::<Vec<_>>();
    assert_eq!(starts(&second), [(0, true)]);
    desk.finish(1, &second.last_task());
    assert_eq!(starts(&second), [(0, true), (4, true)]);
}

#[test]
fn only_an_overdue_task_is_blamed_for_a_worker_that_hung() {
    let mut desk = Desk::new(options().deadline(Duration::from_secs(60)));
    let worker = desk.join(0, Worker::default());
    desk.submit(0..4, How::Slots);
    desk.submit(4..8, How::Slots);
    desk.coordinator.look_at_deadlines();
    assert!(!worker.is_killed());
    let late = worker.tasks()[0].id;
    desk.coordinator.crew.get_mut(&0).unwrap().tasks.get_mut(&late).unwrap().since -= Duration::from_secs(61);
    desk.coordinator.look_at_deadlines();
    assert!(worker.is_killed() && desk.killed(0).unwrap().contains("deadline of 60s"));
    desk.dies(0, KILLED);
    let mut deaths = BTreeMap::new();
    while let Some(job) = desk.coordinator.queue.pop() {
        deaths.insert(job.left.start, job.deaths);
    }
    assert_eq!(deaths, BTreeMap::from([(0, 1), (4, 0)]));
}

/// Options of a run whose number of workers is left to the tuner: the first has all of the pool.
fn tuned() -> MpOptions {
    MpOptions::auto().max_workers(6).threads_per_worker(2).ram_budget(1000 * MIB)
}

#[test]
fn the_most_private_memory_that_was_seen_bounds_the_number_of_workers() {
    let mut desk = Desk::new(tuned());
    let worker = desk.join(0, Worker::default());
    let most = desk.coordinator.plan.workers;
    assert_eq!((most, desk.coordinator.most_workers()), (6, 6));
    desk.submit(0..4, How::Slots);
    worker.memory.store(110 * MIB, Ordering::Relaxed);
    desk.finish(0, &worker.last_task());
    // Half as much again, 165 MiB, fits three times into the 500 that workers have.
    let allowed = desk.coordinator.most_workers();
    assert_eq!(allowed, desk.coordinator.plan.workers_with(165 * MIB));
    assert!((2..=3).contains(&allowed), "{allowed}");
    // A worker that needs less later does not lower it.
    worker.memory.store(0, Ordering::Relaxed);
    desk.coordinator.crew.get_mut(&0).unwrap().looked = None;
    desk.coordinator.look_at_heap(0);
    assert_eq!(desk.coordinator.most_workers(), allowed);
}

#[test]
fn an_element_that_may_need_all_memory_has_the_only_worker_and_others_go_home() {
    let mut desk = Desk::new(tuned());
    desk.coordinator.resize(3);
    let share = desk.coordinator.staffing().1;
    for number in 0..3 {
        desk.join_with(number, share, Worker::default());
    }
    let inbox = desk.submit(0..1, How::Slots);
    for _ in 0..3 {
        let number = *desk.coordinator.crew.iter().find(|(_, member)| !member.tasks.is_empty()).unwrap().0;
        desk.dies(number, OWN);
        if desk.noted("elements tried again with the memory of all workers") == 0 {
            desk.join_with(number + 3, share, Worker::default());
            desk.coordinator.hand_out();
        }
    }
    assert_eq!(desk.noted("elements tried again with the memory of all workers"), 1);
    let solo = desk.coordinator.plan.solo_heap_bytes;
    assert_eq!(desk.coordinator.staffing(), (1, solo));
    desk.coordinator.make_room();
    assert!(desk.coordinator.crew.values().all(|member| member.leaving), "each has less than that worker is to have");
    assert!(!desk.coordinator.has_heap(solo), "their memory is not free before they have ended");
    desk.coordinator.dismiss();
    for number in desk.coordinator.crew.keys().copied().collect::<Vec<_>>() {
        desk.dies(number, OWN);
    }
    assert!(desk.coordinator.has_heap(solo));
    let alone = desk.join(9, Worker::default());
    desk.coordinator.hand_out();
    desk.finish(9, &alone.last_task());
    assert_eq!((inbox.indices(), inbox.errors().len()), (1, 0));
    // Behind it the pool is shared again.
    assert_eq!(desk.coordinator.staffing(), (3, share));
}

#[test]
fn a_cap_that_is_too_large_is_lowered_or_its_worker_goes_home() {
    for lowers in [true, false] {
        let mut desk = Desk::new(tuned());
        let all = desk.coordinator.plan.solo_heap_bytes;
        desk.join(0, Worker { lowers, ..Worker::default() });
        assert_eq!(desk.coordinator.crew[&0].cap, all);
        desk.coordinator.resize(2);
        desk.coordinator.make_room();
        let member = &desk.coordinator.crew[&0];
        let share = desk.coordinator.plan.share(2);
        assert_eq!((member.cap, member.leaving), if lowers { (share, false) } else { (all, true) });
        assert_eq!(desk.coordinator.has_heap(share), lowers);
    }
}

#[test]
fn more_than_the_budget_is_noted_once() {
    let mut desk = Desk::new(MpOptions { tick: Duration::ZERO, ..options() });
    let [one, two] = [0, 1].map(|number| desk.join(number, Worker::default()));
    let budget = desk.coordinator.plan.budget_bytes;
    const NOTE: &str = "times that workers were seen to use more than ram_budget";
    one.memory.store(budget / 2, Ordering::Relaxed);
    two.memory.store(budget - budget / 2, Ordering::Relaxed);
    desk.coordinator.measure();
    assert_eq!(desk.noted(NOTE), 0);
    two.memory.store(budget - budget / 2 + 1, Ordering::Relaxed);
    desk.coordinator.measure();
    desk.coordinator.measure();
    assert_eq!(desk.noted(NOTE), 1);
}

/// Workers of two machines, of which late tasks are asked of the other; 20 tasks took a millisecond each.
fn hedged() -> (Desk, [Worker; 2]) {
    let mut desk = Desk::new(MpOptions { hedge: Some(3.0), ..options() });
    let on = |node: &str| Worker { node: node.to_owned(), ..Worker::default() };
    let workers = [desk.join(0, on("a")), desk.join(1, on("b"))];
    (0..20).for_each(|_| desk.coordinator.times.note(Duration::from_millis(1)));
    (desk, workers)
}

/// Has every task look as if it had been sent a minute ago.
fn age(desk: &mut Desk) {
    let tasks = desk.coordinator.crew.values_mut().flat_map(|member| member.tasks.values_mut());
    tasks.for_each(|task| task.since -= Duration::from_secs(60));
}

#[test]
fn of_two_answers_to_a_late_task_the_first_counts() {
    for late_one_is_first in [true, false] {
        let (mut desk, [one, two]) = hedged();
        let inbox = desk.submit(0..10, How::Slots);
        assert_eq!((one.tasks().len(), two.tasks().len()), (1, 0));
        desk.coordinator.look_for_late();
        desk.coordinator.hand_out();
        assert_eq!(two.tasks().len(), 0, "it is not late yet");
        age(&mut desk);
        desk.coordinator.look_for_late();
        desk.coordinator.hand_out();
        assert_eq!(two.tasks().len(), 1);
        let (tasks, order) = ([one.last_task(), two.last_task()], if late_one_is_first { [0, 1] } else { [1, 0] });
        for at in order {
            desk.finish(at as u64, &tasks[at]);
            assert_eq!(inbox.indices(), 10);
        }
        assert!(!one.is_killed() && !two.is_killed());
        assert_eq!(desk.noted("ranges asked of another machine"), 1);
    }
}

#[test]
fn an_answer_that_was_set_aside_is_of_no_other_part_of_its_range() {
    let (mut desk, [one, two]) = hedged();
    let inbox = desk.submit(0..10, How::Slots);
    age(&mut desk);
    desk.coordinator.look_for_late();
    desk.coordinator.hand_out();
    // The other machine does four of them, so that the range is further on.
    desk.done(1, &two.last_task(), Evaluated { indices: 4, used: 8, ..Evaluated::default() });
    assert_eq!(inbox.indices(), 4);
    let late = one.tasks().swap_remove(0);
    desk.finish(0, &late);
    assert_eq!(inbox.indices(), 4, "the first four would be delivered twice");
    let rest = [one, two].iter().flat_map(Worker::tasks).map(|task| (task.start, task.end)).collect::<Vec<_>>();
    assert!(rest.contains(&(4, 10)), "{rest:?}");
}

#[test]
fn a_range_that_may_kill_its_worker_is_asked_of_no_other_machine() {
    let (mut desk, [_, two]) = hedged();
    desk.submit(0..10, How::Slots);
    let running = desk.coordinator.crew.get_mut(&0).unwrap().tasks.values_mut().next().unwrap();
    running.job.deaths = 1;
    age(&mut desk);
    desk.coordinator.look_for_late();
    desk.coordinator.hand_out();
    assert_eq!((two.tasks().len(), desk.noted("ranges asked of another machine")), (0, 0));
}

#[test]
fn a_lane_is_asked_of_no_other_machine() {
    let (mut desk, [_, two]) = hedged();
    desk.submit(0..10, lane());
    age(&mut desk);
    desk.coordinator.look_for_late();
    desk.coordinator.hand_out();
    assert_eq!(two.tasks().len(), 0);
}

#[test]
fn a_pipeline_that_cannot_be_made_ends_the_run_and_a_worker_that_panics_does_not() {
    let failure = || crate::error::Told::in_words(&Error::config("no such file"));
    let mut desk = Desk::new(options());
    desk.join(0, Worker::default());
    let inbox = desk.submit(0..10, How::Slots);
    desk.coordinator.listen(0, FromWorker::Failed(failure()));
    assert!(desk.coordinator.over.is_none() && desk.killed(0).unwrap().contains("no such file"));
    desk.coordinator.crew.get_mut(&0).unwrap().ready = false;
    desk.coordinator.listen(0, FromWorker::Failed(failure()));
    assert!(desk.coordinator.over.is_some());
    assert_eq!(inbox.errors().len(), 1);
    assert_eq!(desk.submit(0..10, How::Slots).errors().len(), 1, "nobody waits for a run that is over");
}

#[test]
fn a_worker_that_hangs_is_given_no_more_tasks_than_it_has_threads() {
    let (mut desk, [one, two]) = hedged();
    desk.coordinator.crew.get_mut(&1).unwrap().leaving = true;
    for at in 0..9 {
        desk.submit(10 * at..10 * at + 10, How::Slots);
    }
    // One for each thread, and one that waits.
    assert_eq!(one.tasks().len(), 3);
    desk.coordinator.crew.get_mut(&1).unwrap().leaving = false;
    age(&mut desk);
    desk.coordinator.look_for_late();
    desk.coordinator.hand_out();
    assert_eq!((one.tasks().len(), two.tasks().len()), (3, 3), "tasks that were set aside still occupy its threads");
}

#[test]
fn all_lanes_together_have_room_for_a_segment_that_is_read_and_one_that_is_under_way() {
    let options = options();
    let plan = Plan::new(&options, 2, 0).unwrap();
    let pool = WorkerPool::start(|_| Ok(Paper::default()), Vec::new(), plan, options, Recorder::new(1)).unwrap();
    let room = (plan.slab_bytes - plan.max_element_bytes) as usize;
    for lanes in [1, 7, 30, 80] {
        let bytes = pool.lane_bytes(lanes);
        assert!(bytes <= pool.part_bytes() && (bytes == PAGE || 3 * lanes * bytes <= room), "{bytes} for {lanes}");
    }
}

#[test]
fn an_element_is_not_blamed_for_a_worker_that_had_others() {
    let mut desk = Desk::new(options().retries(1));
    desk.join(0, Worker::default());
    let [good, bad] = [0, 1].map(|index| desk.submit(index..index + 1, How::Slots));
    desk.dies(0, OWN);
    assert_eq!((good.errors().len(), bad.errors().len()), (0, 0));
    let second = desk.join(1, Worker::default());
    desk.coordinator.hand_out();
    desk.finish(1, &second.last_task());
    desk.dies(1, OWN);
    assert_eq!((good.indices(), bad.errors().len()), (1, 1));
}
