//! The thread that owns ranges, workers and memory.

mod answers;
mod deaths;
mod figures;
mod hand_out;
mod heaps;
mod hedges;
mod staff;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, select, unbounded};

use super::Figures;
use super::carrier::Carrier;
use super::crew::{Member, Respawn};
use super::drought::Drought;
use super::job::Queue;
use super::lanes::Lanes;
use crate::cx::{Hold, Recorder};
use crate::error::{Result, Told};
use crate::exec::PoolReport;
use crate::exec::remote::{Border, Deliver, How};
use crate::tune::{Bounds, Setting, Tuner};
use crate::workers::budget::Plan;
use crate::workers::control::{Event, FromWorker, What};
use crate::workers::options::MpOptions;
use crate::workers::slab::PAGE;

/// Interval of checks for changes without an event, such as deadlines and freed memory.
const TICK: Duration = Duration::from_millis(200);

/// A command to the coordinator.
pub(super) enum Command<C: Carrier> {
    /// Evaluate a range.
    Submit { border: Border, range: Range<u64>, how: How, deliver: Box<dyn Deliver> },
    /// Set the number of workers, and of active threads of each worker.
    #[cfg(test)]
    Size { workers: usize, threads: usize },
    /// Collect all counts, then report on the channel.
    Sync(Sender<()>),
    /// A worker has connected, or failed to start.
    Started { number: u64, result: Result<C::Link> },
    /// End the coordinator.
    End,
}

/// State of the coordinator; see the [pool](super).
pub(super) struct Coordinator<C: Carrier> {
    carrier: Arc<C>,
    pipeline: Vec<String>,
    plan: Plan,
    options: MpOptions,
    recorder: Arc<Recorder>,
    figures: Arc<Figures>,
    orders: Receiver<Command<C>>,
    commands: Sender<Command<C>>,
    has_room: Receiver<()>,
    heard: Receiver<Event<C::End>>,
    events: Sender<Event<C::End>>,
    queue: Queue,
    /// Target number of workers, at most `plan.workers`.
    wanted: usize,
    /// Peak bytes of private memory of a worker.
    peak: u64,
    crew: BTreeMap<u64, Member<C>>,
    starting: Vec<JoinHandle<()>>,
    respawn: Respawn,
    next_worker: u64,
    next_task: u64,
    /// Bytes delivered.
    handed_over: u64,
    indices: u64,
    answers: PoolReport,
    replaced: u64,
    began: Instant,
    /// Time until the first worker was ready, and time to build its pipeline within it.
    first_ready: Option<(Duration, Duration)>,
    /// Whether tuning may change the number of threads or workers.
    has_choice: bool,
    /// `None` if nothing can be tuned.
    tuner: Option<Tuner>,
    /// Learned bytes per index, by border.
    index_bytes: HashMap<Border, f64>,
    /// Borders whose groups are too large for one batch, so that indices come separately.
    apart: HashSet<Border>,
    lanes: Lanes,
    times: hedges::Times,
    drought: Drought,
    /// Delay before the next check whether the drought goes on.
    look_again: Option<Duration>,
    /// Whether a worker is free, but no memory for the next task.
    is_short: bool,
    /// Cause that holds up a job for which a worker might be free.
    held: Option<Hold>,
    /// Whether the warning about copied elements was given.
    told_of_copies: bool,
    /// Time of the last check for changes without an event.
    looked_around: Instant,
    /// Time of the last measurement of all workers' memory, and whether the warning about the budget was given.
    measured: Instant,
    told_of_more: bool,
    /// Time at which the workers' memory was last recorded.
    told_memory: Instant,
    /// Channels that wait for counts, each with the workers whose counts are missing.
    syncs: Vec<(Sender<()>, BTreeSet<u64>)>,
    /// Error that ended the run.
    over: Option<Told>,
}

type Ears<C> = (Receiver<Command<C>>, Sender<Command<C>>, Receiver<()>);

impl<C: Carrier> Coordinator<C> {
    pub(super) fn new(
        (carrier, pipeline): (Arc<C>, Vec<String>),
        plan: Plan,
        options: MpOptions,
        recorder: Arc<Recorder>,
        figures: Arc<Figures>,
        (orders, commands, has_room): Ears<C>,
    ) -> Self {
        let (events, heard) = unbounded();
        let window = figures.window.load(Ordering::Relaxed);
        let bounds = Bounds {
            most_threads: plan.threads_in_all,
            most_threads_each: plan.threads_per_worker,
            cores: plan.cores,
            processes: (if plan.workers > plan.start_workers { 1 } else { plan.workers }, plan.workers),
            most_window: (plan.slab_bytes as usize / PAGE).max(window),
            idle: plan.elsewhere.map(|elsewhere| elsewhere.idle),
        };
        let start =
            Setting { threads: plan.active_threads * plan.start_workers, processes: plan.start_workers, window };
        let tuner = plan.tuned.then(|| Tuner::new(start, bounds, options.tick, Instant::now()));
        Self {
            carrier,
            pipeline,
            plan,
            options,
            recorder,
            figures,
            orders,
            commands,
            has_room,
            heard,
            events,
            queue: Queue::default(),
            wanted: plan.start_workers,
            peak: 0,
            crew: BTreeMap::new(),
            starting: Vec::new(),
            respawn: Respawn::default(),
            next_worker: 0,
            next_task: 0,
            handed_over: 0,
            indices: 0,
            answers: PoolReport::default(),
            replaced: 0,
            began: Instant::now(),
            first_ready: None,
            has_choice: plan.has_choice(),
            tuner,
            index_bytes: HashMap::new(),
            apart: HashSet::new(),
            lanes: Lanes::default(),
            times: hedges::Times::default(),
            drought: Drought::new(Instant::now()),
            look_again: None,
            is_short: false,
            held: None,
            told_of_copies: false,
            looked_around: Instant::now(),
            measured: Instant::now(),
            told_of_more: false,
            told_memory: Instant::now(),
            syncs: Vec::new(),
            over: None,
        }
    }

    pub(super) fn run(mut self) {
        loop {
            self.look_at_memory();
            self.make_room();
            self.start_missing();
            self.hand_out();
            self.look();
            self.dismiss();
            let tick = after(self.patience().min(self.options.tick));
            select! {
                recv(self.orders) -> command => match command {
                    Ok(Command::End) | Err(_) => break,
                    Ok(command) => self.obey(command),
                },
                recv(self.heard) -> event => if let Ok(event) = event { self.hear(event) },
                recv(self.has_room) -> _ => {}
                recv(tick) -> _ => {}
            }
            self.look_around();
            self.tune();
        }
        self.tell_figures();
        self.carrier.close();
        // Workers that are still starting end with the command channel that would carry their links.
        let Self { orders, crew, starting, .. } = self;
        drop((orders, crew));
        starting.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// Checks at every tick, under any load, for changes without an event.
    fn look_around(&mut self) {
        if self.looked_around.elapsed() >= TICK.min(self.options.tick) {
            self.looked_around = Instant::now();
            self.look_at_deadlines();
            self.look_for_late();
            self.measure();
            self.tell_memory();
        }
    }

    /// Returns the maximum wait for an event before the next check.
    fn patience(&mut self) -> Duration {
        let rest = self.rest();
        self.look_again.map_or(rest, |soon| rest.min(soon))
    }

    fn rest(&mut self) -> Duration {
        if self.over.is_some() || !self.is_short() {
            return TICK;
        }
        let now = Instant::now();
        self.respawn.due(now).saturating_duration_since(now).clamp(Duration::from_millis(1), TICK)
    }

    fn obey(&mut self, command: Command<C>) {
        match command {
            Command::Submit { border, range, how, mut deliver } => match &self.over {
                Some(failure) => deliver.fail(failure.clone().into_error()),
                None => self.queue.submit(border, range, how, deliver),
            },
            #[cfg(test)]
            Command::Size { workers, threads } => {
                self.resize(workers);
                self.activate(threads);
            }
            Command::Sync(done) => self.sync(done),
            Command::Started { number, result } => self.started(number, result),
            Command::End => {}
        }
    }

    fn hear(&mut self, Event { worker, what }: Event<C::End>) {
        match what {
            What::Exited(exit) => self.exited(worker, &exit),
            What::Message(message) => self.listen(worker, message),
        }
    }

    fn listen(&mut self, number: u64, message: FromWorker) {
        let Some(member) = self.crew.get_mut(&number) else { return };
        match message {
            FromWorker::Ready(ready) => {
                member.ready = true;
                let built = Duration::from_nanos(ready.build_ns);
                self.first_ready.get_or_insert_with(|| (self.began.elapsed(), built));
                self.respawn.started(member.begun.elapsed());
            }
            FromWorker::Done(done) => self.done(number, done),
            FromWorker::Need(need) => self.need(number, need),
            FromWorker::Returned(extent) => self.returned(number, extent),
            FromWorker::Told(tally) => {
                let node = self.node(number);
                self.recorder.add(tally, &node);
                self.counted(number);
            }
            FromWorker::Failed(failure) if member.ready => member.killed = Some(failure.into_error().to_string()),
            // The pipeline cannot be built, and would fail again in the next worker.
            FromWorker::Failed(failure) => self.give_up(failure),
        }
    }
}
