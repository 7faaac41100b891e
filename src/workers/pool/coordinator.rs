//! The thread that holds ranges, workers and memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, select, unbounded};

use super::Figures;
use super::crew::{Member, Respawn, Running};
use super::job::{Job, Queue};
use super::tuner::{Totals, Tuner};
use crate::cx::Recorder;
use crate::element::{Buffer, Owner};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::remote::{Border, Deliver, Part};
use crate::report::{Bytes, WorkerReport, WorkersReport};
use crate::tune::{Bounds, Knob};
use crate::workers::budget::Plan;
use crate::workers::control::{Begin, Done, Event, Failure, FromWorker, Need, Task, ToWorker, What};
use crate::workers::launch::{self, Exit, Program, Worker};
use crate::workers::options::{MpOptions, Poison};
use crate::workers::slab::{Grant, PAGE, Slab};

/// How often deadlines are looked at.
const TICK: Duration = Duration::from_millis(200);

/// What the coordinator is asked for.
pub(super) enum Command {
    /// To have a range evaluated.
    Submit { border: Border, range: Range<u64>, group: Option<u64>, deliver: Box<dyn Deliver> },
    /// To have so many workers from now on, and so many threads at work in each.
    Size { workers: usize, threads: usize },
    /// To have everything counted, and to say when.
    Sync(Sender<()>),
    /// A worker has connected, or has not.
    Started { number: u64, result: Result<Worker> },
    /// To end.
    End,
}

/// See the [module](super).
pub(super) struct Coordinator {
    program: Program,
    pipeline: Vec<String>,
    plan: Plan,
    options: MpOptions,
    slab: Arc<Slab>,
    recorder: Arc<Recorder>,
    figures: Arc<Figures>,
    orders: Receiver<Command>,
    commands: Sender<Command>,
    has_room: Receiver<()>,
    heard: Receiver<Event>,
    events: Sender<Event>,
    queue: Queue,
    /// Workers that there are to be, at most as many as planned.
    wanted: usize,
    crew: BTreeMap<u64, Member>,
    starting: Vec<JoinHandle<()>>,
    respawn: Respawn,
    next_worker: u64,
    next_task: u64,
    /// Bytes that were delivered, and workers that died.
    handed_over: u64,
    indices: u64,
    replaced: u64,
    /// `None` where nothing is left to choose.
    tuner: Option<Tuner>,
    /// Bytes of an index, by border, learned.
    index_bytes: HashMap<Border, f64>,
    /// Borders whose groups are too large to come as one.
    apart: HashSet<Border>,
    /// Those who wait for counts, and the workers whose counts are missing.
    syncs: Vec<(Sender<()>, BTreeSet<u64>)>,
    /// Why nothing can be evaluated any more.
    over: Option<Failure>,
}

type Ears = (Receiver<Command>, Sender<Command>, Receiver<()>);

impl Coordinator {
    pub(super) fn new(
        (program, pipeline): (Program, Vec<String>),
        plan: Plan,
        options: MpOptions,
        slab: Arc<Slab>,
        recorder: Arc<Recorder>,
        figures: Arc<Figures>,
        (orders, commands, has_room): Ears,
    ) -> Self {
        let (events, heard) = unbounded();
        let window = figures.window.load(Ordering::Relaxed);
        let most_threads = plan.workers * plan.threads;
        let bounds = Bounds { most_threads, most_window: (plan.slab as usize / PAGE).max(window) };
        let tuner = plan.tuned.then(|| Tuner::new(plan.active * plan.workers, window, bounds));
        Self {
            program,
            pipeline,
            plan,
            options,
            slab,
            recorder,
            figures,
            orders,
            commands,
            has_room,
            heard,
            events,
            queue: Queue::default(),
            wanted: plan.workers,
            crew: BTreeMap::new(),
            starting: Vec::new(),
            respawn: Respawn::default(),
            next_worker: 0,
            next_task: 0,
            handed_over: 0,
            indices: 0,
            replaced: 0,
            tuner,
            index_bytes: HashMap::new(),
            apart: HashSet::new(),
            syncs: Vec::new(),
            over: None,
        }
    }

    pub(super) fn run(mut self) {
        loop {
            self.start_missing();
            self.hand_out();
            self.dismiss();
            let tick = after(self.patience());
            select! {
                recv(self.orders) -> command => match command {
                    Ok(Command::End) | Err(_) => break,
                    Ok(command) => self.obey(command),
                },
                recv(self.heard) -> event => if let Ok(event) = event { self.hear(event) },
                recv(self.has_room) -> _ => {}
                recv(tick) -> _ => self.look_at_deadlines(),
            }
            self.tune();
        }
        self.tell_figures();
        // Workers that are just being started end with the channel that they would be sent through.
        let Self { orders, crew, starting, .. } = self;
        drop((orders, crew));
        starting.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// How long nothing may happen before it looks around by itself.
    fn patience(&self) -> Duration {
        if self.over.is_some() || !self.is_short() {
            return TICK;
        }
        let now = Instant::now();
        self.respawn.due(now).saturating_duration_since(now).clamp(Duration::from_millis(1), TICK)
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit { border, range, group, mut deliver } => match &self.over {
                Some(failure) => deliver.fail(failure.clone().into_error()),
                None => self.queue.submit(border, range, group, deliver),
            },
            Command::Size { workers, threads } => {
                self.resize(workers);
                self.activate(threads);
            }
            Command::Sync(done) => self.sync(done),
            Command::Started { number, result } => self.started(number, result),
            Command::End => {}
        }
    }

    fn hear(&mut self, Event { worker, what }: Event) {
        match what {
            What::Exited(exit) => self.exited(worker, &exit),
            What::Message(message) => self.listen(worker, message),
        }
    }

    fn listen(&mut self, number: u64, message: FromWorker) {
        let Some(member) = self.crew.get_mut(&number) else { return };
        match message {
            FromWorker::Ready(_) => member.ready = true,
            FromWorker::Done(done) => self.done(number, done),
            FromWorker::Need(need) => self.need(number, need),
            FromWorker::Told(tally) => {
                self.recorder.add(tally);
                self.counted(number);
            }
            FromWorker::Failed(failure) if member.ready => member.killed = Some(failure.into_error().to_string()),
            // The pipeline cannot be built; it will not be the next time either.
            FromWorker::Failed(failure) => self.give_up(failure),
        }
    }

    /// Starts as many workers as are missing, each on a thread of its own: it takes milliseconds, or the time-out.
    fn start_missing(&mut self) {
        while self.over.is_none() && self.is_short() && self.respawn.due(Instant::now()) <= Instant::now() {
            let number = self.next_worker;
            self.next_worker += 1;
            self.crew.insert(number, Member::new());
            self.starting.retain(|thread| !thread.is_finished());
            let (program, slab, events) = (self.program.clone(), self.slab.clone(), self.events.clone());
            let (commands, heap) = (self.commands.clone(), self.plan.heap);
            let start = move || {
                let options =
                    launch::Options { slab: Some(slab.file()), heap_limit: Some(heap), ..launch::Options::default() };
                let result = launch::start(number, &program, &options, &events);
                // Nobody hears it: then the worker is dropped here, which ends it.
                let _ = commands.send(Command::Started { number, result });
            };
            match std::thread::Builder::new().name("gristmill-start".into()).spawn(start) {
                Ok(thread) => self.starting.push(thread),
                Err(e) => {
                    let error = Error::new(ErrorKind::Io, format!("cannot start the thread that starts a worker: {e}"));
                    self.give_up(Failure::of(&error));
                }
            }
        }
    }

    /// Workers that are to stay.
    fn staff(&self) -> usize {
        self.crew.values().filter(|member| !member.leaving).count()
    }

    /// Whether one is missing. Those that leave have their memory until they are gone.
    fn is_short(&self) -> bool {
        self.staff() < self.wanted && self.crew.len() < self.plan.workers
    }

    fn resize(&mut self, workers: usize) {
        self.wanted = workers.clamp(1, self.plan.workers);
        let too_many = self.staff().saturating_sub(self.wanted);
        for member in self.crew.values_mut().rev().filter(|member| !member.leaving).take(too_many) {
            member.leaving = true;
        }
    }

    /// Has those end who are to leave and have nothing more to do.
    fn dismiss(&mut self) {
        for member in self.crew.values_mut().filter(|member| member.leaving && !member.told_to_stop) {
            if let Some(worker) = member.worker.as_ref().filter(|_| member.tasks.is_empty()) {
                // If it cannot be sent, its end will be heard.
                let _ = worker.send(&ToWorker::Stop);
                member.told_to_stop = true;
            }
        }
    }

    fn started(&mut self, number: u64, result: Result<Worker>) {
        match result {
            Ok(worker) => {
                // One that has ended already is gone from the crew.
                let Some(member) = self.crew.get_mut(&number) else { return };
                let (threads, active) = (self.plan.threads as u32, self.plan.active as u32);
                let (slab_bytes, pipeline) = (self.plan.slab, self.pipeline.clone());
                let begin = Begin { slab_bytes, threads, active, counted: self.options.counted, pipeline };
                // If it cannot be sent, its end will be heard.
                let _ = worker.send(&ToWorker::Begin(begin));
                member.worker = Some(worker);
            }
            Err(error) => {
                self.crew.remove(&number);
                tracing::warn!(%error, "a worker did not start");
                if self.respawn.died(Instant::now()) {
                    self.give_up(Failure::of(&error));
                }
            }
        }
    }

    /// Gives work to workers as long as there is work, a worker that is free for it, and memory.
    fn hand_out(&mut self) {
        while let Some(job) = self.queue.first() {
            let (suspect, border, need) = (job.is_suspect(), job.border, job.need);
            let (least, len) = (job.least(), job.left.end - job.left.start);
            if need as u64 > self.plan.max_element {
                self.refuse_largest();
                continue;
            }
            let Some(number) = self.free_worker(suspect) else { return };
            let Some(grant) = self.room_for(need, border, least, len) else { return };
            let Some(job) = self.queue.pop() else { return };
            self.assign(number, job, grant);
        }
    }

    fn refuse_largest(&mut self) {
        let Some(mut job) = self.queue.pop() else { return };
        let error = Error::new(
            ErrorKind::Data,
            format!(
                "an element of {} does not fit: max_element is {}, of a slab of {}",
                Bytes(job.need as u64),
                Bytes(self.plan.max_element),
                Bytes(self.plan.slab)
            ),
        );
        job.deliver.fail(error.index(job.left.start).help("raise max_element or ram_budget, or make elements smaller"));
    }

    /// The worker with the least to do.
    fn free_worker(&self, suspect: bool) -> Option<u64> {
        let free = self.crew.iter().filter(|(_, member)| member.has_place(self.plan.active, suspect));
        free.min_by_key(|(_, member)| member.tasks.len()).map(|(&number, _)| number)
    }

    /// Bytes of the largest group that comes as one: every thread can be at one, and none is larger than an element may be.
    fn most_group(&self) -> u64 {
        let threads = (self.plan.workers * self.plan.threads) as u64;
        ((self.plan.slab - self.plan.max_element) / (1 + threads)).min(self.plan.max_element)
    }

    /// The next slot or group of a job needs so much memory.
    fn wants(&mut self, job: &mut Job, bytes: u64) {
        job.need = usize::try_from(bytes).unwrap_or(usize::MAX);
        if job.groups.is_some() && bytes > self.most_group() {
            self.apart.insert(job.border);
            job.ungroup();
        }
    }

    /// Memory for the next task of the head of the line, of `least` to `len` indices. Others wait behind it, so it is
    /// always served first.
    fn room_for(&self, need: usize, border: Border, least: u64, len: u64) -> Option<Grant> {
        let index = self.index_bytes.get(&border).copied().unwrap_or(0.0);
        // Room for one at least; what is not used of it comes back as soon as it is written.
        let one = (index * 1.02 * least as f64) as usize + 4096;
        let all = ((index * 1.25 * len as f64) as usize).saturating_add(4096).min(self.plan.part_bytes());
        let size = all.max(one.min(self.plan.max_element as usize)).max(need).max(PAGE);
        let grant = self.slab.grant(size);
        if grant.is_some() || self.crew.values().any(|member| !member.tasks.is_empty()) {
            return grant;
        }
        // Nothing is under way that could give memory back, and views may keep theirs for ever.
        self.slab.grant_reserve(self.plan.max_element as usize)
    }

    fn assign(&mut self, number: u64, mut job: Job, grant: Grant) {
        if job.groups.is_some() && self.apart.contains(&job.border) {
            job.ungroup();
        }
        let id = self.next_task;
        self.next_task += 1;
        let Some(member) = self.crew.get_mut(&number) else { return self.queue.put(job) };
        let Range { start, end } = job.next_task();
        let groups_from = job.groups.map(|groups| groups.first);
        let task = Task { id, border: job.border, start, end, groups_from, extent: grant.extent() };
        if let Some(worker) = &member.worker {
            // If it cannot be sent, the worker's end will be heard, and the task returns.
            let _ = worker.send(&ToWorker::Task(task));
        }
        member.tasks.insert(id, Running { job, asked: end - start, grant, since: Instant::now() });
    }

    /// A worker is done with a task: what came of it is delivered, and what is left of the job goes back to its place.
    fn done(&mut self, number: u64, done: Done) {
        let Some(Running { mut job, asked, grant, since }) = self.take_task(number, done.id) else { return };
        if let Some(tally) = done.tally {
            self.recorder.add(tally);
        }
        if done.indices == 0 || done.indices > asked {
            let why = format!("it says {} of {asked} elements are done", done.indices);
            return self.distrust(number, done.id, Running { job, asked, grant, since }, why);
        }
        let bytes = match readable(grant, done.used as usize) {
            Ok(bytes) => bytes,
            Err((grant, error)) => {
                return self.distrust(number, done.id, Running { job, asked, grant, since }, error.to_string());
            }
        };
        let part =
            Part { bytes, used: done.used as usize, indices: done.indices, took: Duration::from_nanos(done.took_ns) };
        if let Err(error) = job.deliver.part(&part) {
            self.queue.put(job);
            return self.kill(number, format!("what it wrote cannot be read: {error}"));
        }
        let bytes = done.used as f64 / done.indices as f64;
        self.index_bytes.entry(job.border).and_modify(|known| *known += (bytes - *known) / 4.0).or_insert(bytes);
        self.figures.busy_ns.fetch_add(done.took_ns, Ordering::Relaxed);
        self.handed_over += done.used;
        self.indices += done.indices;
        if let Some(member) = self.crew.get_mut(&number) {
            member.done += 1;
        }
        self.respawn.progress();
        job.advance(done.indices);
        self.wants(&mut job, done.next_bytes);
        self.queue.put(job);
    }

    /// A task's first slot or group needs more memory than it was given.
    fn need(&mut self, number: u64, need: Need) {
        let Some(Running { mut job, .. }) = self.take_task(number, need.id) else { return };
        self.wants(&mut job, need.bytes);
        self.queue.put(job);
    }

    fn take_task(&mut self, number: u64, id: u64) -> Option<Running> {
        let task = self.crew.get_mut(&number)?.tasks.remove(&id);
        if task.is_none() {
            self.kill(number, format!("it answers task {id}, which it does not have"));
        }
        task
    }

    /// Kills a worker that says what cannot be; it keeps its task, and with it the memory, until it is gone.
    fn distrust(&mut self, number: u64, id: u64, task: Running, why: String) {
        if let Some(member) = self.crew.get_mut(&number) {
            member.tasks.insert(id, task);
        }
        self.kill(number, why);
    }

    fn kill(&mut self, number: u64, why: String) {
        let Some(member) = self.crew.get_mut(&number) else { return };
        member.killed.get_or_insert(why);
        if let Some(worker) = &member.worker {
            worker.kill();
        }
    }

    /// A worker is gone, and reaped: nobody writes to its memory any more, and its tasks are done again by others.
    fn exited(&mut self, number: u64, exit: &Exit) {
        let Some(member) = self.crew.remove(&number) else { return };
        self.counted(number);
        if member.told_to_stop {
            return;
        }
        self.replaced += 1;
        let cause = member.killed.unwrap_or_else(|| exit.to_string());
        let ranges: Vec<_> = member.tasks.values().map(|task| task.job.next_task()).collect();
        tracing::warn!(worker = number, pid = exit.pid, ?ranges, "a worker died and is replaced: {cause}");
        self.recorder.note(&format!("workers replaced: {cause}"), 1);
        let (at_work, alone) = (!member.tasks.is_empty(), member.tasks.len() == 1);
        let overdue = |task: &Running| self.options.deadline.is_some_and(|deadline| task.since.elapsed() > deadline);
        let hung = member.tasks.values().any(&overdue);
        let tasks: Vec<_> = member.tasks.into_values().map(|task| (!hung || overdue(&task), task)).collect();
        for (blamed, Running { mut job, .. }) in tasks {
            if blamed && job.blame(self.options.retries, alone) {
                self.poisoned(job, &cause);
            } else {
                self.queue.put(job);
            }
        }
        // A death at work is some element's doing, and the search for it ends.
        if !at_work && self.respawn.died(Instant::now()) {
            self.give_up(Failure::of(&exit.error(format!("worker {number}, the last of many that died at once"))));
        }
    }

    /// The element in front of `job` kills every worker.
    fn poisoned(&mut self, mut job: Job, cause: &str) {
        match self.options.poison {
            Poison::Error => {
                let what = format!("{} workers died over this element; the last: {cause}", self.options.retries);
                let error = Error::new(ErrorKind::Worker, what).index(job.left.start);
                job.deliver.fail(error.help("evaluate it without workers, under a debugger; or skip such elements"));
            }
            Poison::Skip => {
                tracing::warn!(element = job.left.start, "left out, because every worker died over it: {cause}");
                self.recorder.note("elements left out because workers died over them", 1);
                job.deliver.skip();
                job.skip();
                self.queue.put(job);
            }
        }
    }

    fn look_at_deadlines(&mut self) {
        let Some(deadline) = self.options.deadline else { return };
        let late = self
            .crew
            .iter()
            .filter(|(_, m)| m.killed.is_none() && m.tasks.values().any(|t| t.since.elapsed() > deadline));
        let late: Vec<u64> = late.map(|(&number, _)| number).collect();
        for number in late {
            self.kill(number, format!("it took longer than the deadline of {deadline:?}"));
        }
    }

    /// Once a second: measures, and changes what the controller wants changed.
    fn tune(&mut self) {
        let incomplete = self.crew.len() < self.wanted || self.crew.values().any(|member| !member.ready);
        let Some(tuner) = self.tuner.as_mut().filter(|tuner| tuner.is_due()) else { return };
        if incomplete {
            tuner.disturb();
        }
        let blocked = self.recorder.totals().iter().map(|stage| stage.counts.wait_ns).sum();
        let totals = Totals {
            busy: Duration::from_nanos(self.figures.busy_ns.load(Ordering::Relaxed)),
            indices: self.indices,
            blocked: Duration::from_nanos(blocked),
            waited: self.figures.demand.waited(),
        };
        let under_way: usize = self.crew.values().map(|member| member.tasks.len()).sum();
        let idle = self.queue.first().is_none() && under_way < tuner.threads();
        match tuner.step(totals, idle) {
            Some((Knob::Threads, threads)) => self.activate(threads.div_ceil(self.plan.workers)),
            Some((Knob::Window, window)) => self.figures.window.store(window, Ordering::Relaxed),
            None => {}
        }
    }

    /// Has every worker use so many of its threads.
    fn activate(&mut self, threads: usize) {
        self.plan.active = threads.clamp(1, self.plan.threads);
        for worker in self.crew.values().filter_map(|member| member.worker.as_ref()) {
            let _ = worker.send(&ToWorker::Active(self.plan.active as u32));
        }
        self.figures.active.store(self.plan.active * self.plan.workers, Ordering::Relaxed);
    }

    fn tell_figures(&self) {
        let slab = self.slab.stats();
        let worker = |(&number, member): (&u64, &Member)| {
            let worker = member.worker.as_ref()?;
            Some(WorkerReport {
                number,
                pid: worker.pid(),
                cpu_s: worker.cpu_time()?.as_secs_f64(),
                heap_bytes: worker.memory()?.anonymous,
                heap_limit_bytes: self.plan.heap,
                tasks: member.done,
            })
        };
        self.figures.tell(WorkersReport {
            ram_budget: self.plan.budget,
            slab_bytes: self.plan.slab,
            slab_high_water_bytes: slab.high_water_bytes as u64,
            handed_over_bytes: self.handed_over,
            copies: slab.copies,
            replaced: self.replaced,
            threads_per_worker: self.plan.active,
            window: self.figures.window.load(Ordering::Relaxed),
            decisions: self.tuner.as_ref().map(|tuner| tuner.decisions.clone()).unwrap_or_default(),
            workers: self.crew.iter().filter_map(worker).collect(),
        });
    }

    fn sync(&mut self, done: Sender<()>) {
        self.tell_figures();
        let mut missing = BTreeSet::new();
        for (&number, member) in self.crew.iter().filter(|(_, member)| member.ready) {
            if member.worker.as_ref().is_some_and(|worker| worker.send(&ToWorker::Tell).is_ok()) {
                missing.insert(number);
            }
        }
        self.syncs.push((done, missing));
        self.settle();
    }

    /// The counts of a worker are in, or will never be.
    fn counted(&mut self, number: u64) {
        for (_, missing) in &mut self.syncs {
            missing.remove(&number);
        }
        self.settle();
    }

    fn settle(&mut self) {
        self.syncs.retain(|(done, missing)| {
            if missing.is_empty() {
                let _ = done.try_send(());
            }
            !missing.is_empty()
        });
    }

    /// Nothing can be evaluated any more: all who wait are told why.
    fn give_up(&mut self, failure: Failure) {
        while let Some(mut job) = self.queue.pop() {
            job.deliver.fail(failure.clone().into_error());
        }
        for member in self.crew.values_mut() {
            // Their memory returns when they are gone.
            for Running { job, .. } in member.tasks.values_mut() {
                job.deliver.fail(failure.clone().into_error());
                job.left.start = job.left.end;
            }
            if let Some(worker) = &member.worker {
                worker.kill();
            }
        }
        self.over = Some(failure);
    }
}

/// What a worker wrote, as views have it; the grant comes back if that cannot be.
fn readable(grant: Grant, used: usize) -> std::result::Result<Arc<dyn Owner>, (Grant, Error)> {
    if grant.is_reserve() {
        return match grant.copy_out(used) {
            Ok(copy) => Ok(Arc::new(Copied(copy))),
            Err(refused) => Err((refused.grant, refused.error.into_error())),
        };
    }
    match grant.into_lease(used) {
        Ok(lease) => Ok(Arc::new(lease)),
        Err(refused) => Err((refused.grant, refused.error.into_error())),
    }
}

/// Memory of this process, in place of a lease.
struct Copied(Buffer);

impl Owner for Copied {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
