//! The thread that holds ranges, workers and memory.

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

/// The interval at which it looks for what nobody tells of: deadlines, and memory that changed.
const TICK: Duration = Duration::from_millis(200);

/// A command to the coordinator.
pub(super) enum Command<C: Carrier> {
    /// To have a range evaluated.
    Submit { border: Border, range: Range<u64>, how: How, deliver: Box<dyn Deliver> },
    /// To have so many workers from now on, and so many threads at work in each.
    #[cfg(test)]
    Size { workers: usize, threads: usize },
    /// To have everything counted, and to say when.
    Sync(Sender<()>),
    /// A worker has connected, or has not.
    Started { number: u64, result: Result<C::Link> },
    /// To end.
    End,
}

/// See the [pool](super).
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
    /// Workers that there are to be, at most as many as planned.
    wanted: usize,
    /// The most private memory of a worker that was seen.
    peak: u64,
    crew: BTreeMap<u64, Member<C>>,
    starting: Vec<JoinHandle<()>>,
    respawn: Respawn,
    next_worker: u64,
    next_task: u64,
    /// Bytes that were delivered, and workers that died.
    handed_over: u64,
    indices: u64,
    answers: PoolReport,
    replaced: u64,
    began: Instant,
    /// After how long the first worker was ready, and what its pipeline took of that.
    first_ready: Option<(Duration, Duration)>,
    /// Whether there is a number of threads or workers to be found.
    has_choice: bool,
    /// `None` where nothing is left to choose.
    tuner: Option<Tuner>,
    /// Bytes of an index, by border, learned.
    index_bytes: HashMap<Border, f64>,
    /// Borders whose groups are too large to come as one.
    apart: HashSet<Border>,
    lanes: Lanes,
    times: hedges::Times,
    drought: Drought,
    /// Time after which to look again whether it goes on.
    look_again: Option<Duration>,
    /// Whether somebody is free, and there is no memory for what could be handed out.
    is_short: bool,
    /// The cause for which something waits that somebody might be free for.
    held: Option<Hold>,
    /// Whether it was said that elements are copied.
    told_of_copies: bool,
    /// Time of the last look for what nobody tells of.
    looked_around: Instant,
    /// Time at which it was last measured what all workers use, and whether it was said that it is too much.
    measured: Instant,
    told_of_more: bool,
    /// Time at which their memory was recorded last.
    told_memory: Instant,
    /// Channels of those who wait for counts, and the workers whose counts are missing.
    syncs: Vec<(Sender<()>, BTreeSet<u64>)>,
    /// The reason why nothing can be evaluated any more.
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
        // Workers that are just being started end with the channel that they would be sent through.
        let Self { orders, crew, starting, .. } = self;
        drop((orders, crew));
        starting.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// Looks now and then, however much there is to do, for what nobody tells of.
    fn look_around(&mut self) {
        if self.looked_around.elapsed() >= TICK.min(self.options.tick) {
            self.looked_around = Instant::now();
            self.look_at_deadlines();
            self.look_for_late();
            self.measure();
            self.tell_memory();
        }
    }

    /// The time in which nothing may happen before it looks around by itself.
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
            // The pipeline cannot be built; it will not be the next time either.
            FromWorker::Failed(failure) => self.give_up(failure),
        }
    }
}
