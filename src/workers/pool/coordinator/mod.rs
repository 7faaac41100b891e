//! The thread that owns ranges, workers and memory.

mod answers;
mod deaths;
mod dispatch;
mod hedges;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, select, unbounded};

use super::Figures;
use super::carrier::{Carrier, Recruit};
use super::memory::Memory;
use super::queue::Queue;
use super::tuning::Tuning;
use super::workers::Workers;
use crate::cx::Recorder;
use crate::error::{Error, ErrorKind, Result, Told};
use crate::exec::WorkersReport;
use crate::exec::remote::{Border, Deliver, How};
use crate::workers::budget::Plan;
use crate::workers::control::{Event, FromWorker, What};
use crate::workers::options::MpOptions;

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
    plan: Plan,
    options: MpOptions,
    recorder: Arc<Recorder>,
    channels: Channels<C>,
    queue: Queue,
    workers: Workers<C>,
    memory: Memory<C>,
    tuning: Tuning,
    /// Time of the last check for changes without an event.
    checked: Instant,
    /// Error that ended the run.
    failure: Option<Told>,
}

/// Channels to the coordinator.
struct Channels<C: Carrier> {
    commands: Receiver<Command<C>>,
    command_sender: Sender<Command<C>>,
    events: Receiver<Event<C::End>>,
    event_sender: Sender<Event<C::End>>,
    /// Notices of freed memory.
    has_room: Receiver<()>,
}

impl<C: Carrier> Coordinator<C> {
    pub(super) fn new(
        carrier: Arc<C>,
        pipeline: Vec<String>,
        plan: Plan,
        options: MpOptions,
        recorder: Arc<Recorder>,
        figures: Arc<Figures>,
        has_room: Receiver<()>,
    ) -> Self {
        let ((command_sender, commands), (event_sender, events)) = (unbounded(), unbounded());
        Self {
            channels: Channels { commands, command_sender, events, event_sender, has_room },
            queue: Queue::default(),
            workers: Workers::new(&plan, &options, pipeline),
            memory: Memory::new(carrier.clone(), plan),
            tuning: Tuning::new(&plan, options.tick, figures),
            carrier,
            plan,
            options,
            recorder,
            checked: Instant::now(),
            failure: None,
        }
    }

    /// Returns a sender of commands.
    pub(super) fn commands(&self) -> Sender<Command<C>> {
        self.channels.command_sender.clone()
    }

    pub(super) fn run(mut self) {
        loop {
            self.check_leases();
            self.fit_heaps();
            self.start_missing();
            self.dispatch();
            let is_short = self.memory.is_short && self.plan.elsewhere.is_some();
            self.tuning.observe(&self.workers, self.queue.first(0).is_none(), is_short);
            self.workers.stop_leaving();
            let tick = after(self.next_check().min(self.options.tick));
            select! {
                recv(self.channels.commands) -> command => match command {
                    Ok(Command::End) | Err(_) => break,
                    Ok(command) => self.apply(command),
                },
                recv(self.channels.events) -> event => if let Ok(event) = event { self.handle(event) },
                recv(self.channels.has_room) -> _ => {}
                recv(tick) -> _ => {}
            }
            self.check();
            if let Some(setting) = self.tuning.step(&self.workers, &self.memory, &self.recorder) {
                self.tuning.figures.window.store(setting.window, Ordering::Relaxed);
                self.resize(setting.processes, setting.threads.div_ceil(setting.processes));
            }
        }
        self.publish();
        self.carrier.close();
        // Workers that are still starting end with the command channel that would carry their links.
        let Self { channels: Channels { commands, .. }, workers: Workers { all, starts, .. }, .. } = self;
        drop((commands, all));
        starts.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// Checks at every tick, under any load, for changes without an event.
    fn check(&mut self) {
        if self.checked.elapsed() < TICK.min(self.options.tick) {
            return;
        }
        self.checked = Instant::now();
        self.carrier.look_at_leases();
        if let Some(deadline) = self.options.deadline {
            self.workers.check_deadlines(deadline);
        }
        self.hedge();
        self.memory.check_budget(&self.workers, &self.recorder, self.options.tick);
        self.memory.record(&self.workers, &self.recorder);
    }

    /// Ends the run if a worker has written to elements after delivery.
    fn check_leases(&mut self) {
        if self.failure.is_none()
            && let Some(error) = self.memory.check_leases(&self.workers)
        {
            self.fail(Told::in_words(&error));
        }
    }

    /// Returns the maximum wait for an event before the next check.
    fn next_check(&mut self) -> Duration {
        let (now, (target, cap)) = (Instant::now(), self.staffing());
        let rest = if self.failure.is_none() && self.can_start(target, cap) {
            let due = self.workers.respawn.due(now).saturating_duration_since(now);
            due.clamp(Duration::from_millis(1), TICK)
        } else {
            TICK
        };
        self.memory.recheck.map_or(rest, |recheck| rest.min(recheck))
    }

    /// Applies a command.
    fn apply(&mut self, command: Command<C>) {
        match command {
            Command::Submit { border, range, how, mut deliver } => match &self.failure {
                Some(failure) => deliver.fail(failure.clone().into_error()),
                None => self.queue.submit(border, range, how, deliver),
            },
            #[cfg(test)]
            Command::Size { workers, threads } => self.resize(workers, threads),
            Command::Sync(done) => {
                self.publish();
                self.tuning.sync(done, self.workers.request_counts());
            }
            Command::Started { number, result } => self.started(number, result),
            Command::End => {}
        }
    }

    /// Handles an event of a worker.
    fn handle(&mut self, Event { worker, what }: Event<C::End>) {
        match what {
            What::Exited(exit) => self.exited(worker, &exit),
            What::Message(message) => self.receive(worker, message),
        }
    }

    /// Handles a message of a worker.
    fn receive(&mut self, number: u64, message: FromWorker) {
        let Some(worker) = self.workers.all.get_mut(&number) else { return };
        match message {
            FromWorker::Ready(ready) => self.workers.ready(number, Duration::from_nanos(ready.build_ns)),
            FromWorker::Done(done) => self.done(number, done),
            FromWorker::Need(need) => self.need(number, need),
            FromWorker::Returned(extent) => self.returned(number, extent),
            FromWorker::Told(tally) => {
                self.recorder.add(tally, &self.workers.node(number));
                self.tuning.counts_received(number);
            }
            FromWorker::Failed(failure) if worker.ready => worker.kill_reason = Some(failure.into_error().to_string()),
            // The pipeline cannot be built, and would fail again in the next worker.
            FromWorker::Failed(failure) => self.fail(failure),
        }
    }

    /// Returns true if the first job is for a worker with the memory of all workers, or such a worker has a task.
    fn is_lone(&mut self) -> bool {
        let mut running = self.workers.all.values().flat_map(|worker| worker.tasks.values());
        self.queue.first(0).is_some_and(|job| job.crashes.wide) || running.any(|task| task.job.crashes.wide)
    }

    /// Returns the number of workers that should exist now, and the cap of new workers.
    fn staffing(&mut self) -> (usize, u64) {
        let (lone, target) = (self.is_lone(), self.workers.target);
        (if lone { 1 } else { target }, self.memory.cap(target, lone))
    }

    /// Returns true if a worker is missing and memory for it is free.
    fn can_start(&self, target: usize, cap: u64) -> bool {
        self.workers.staying() < target && self.memory.has_heap(&self.workers, cap)
    }

    /// Makes the caps of workers fit the present number of workers.
    fn fit_heaps(&mut self) {
        let lone = self.is_lone();
        self.workers.fit_heaps(self.memory.cap(self.workers.target, lone), lone);
    }

    /// Starts the missing workers.
    fn start_missing(&mut self) {
        let (target, cap) = self.staffing();
        while self.failure.is_none()
            && self.can_start(target, cap)
            && self.workers.respawn.due(Instant::now()) <= Instant::now()
            && let Some(place) = self.workers.free_place()
        {
            let (carrier, events) = (self.carrier.clone(), self.channels.event_sender.clone());
            let commands = self.commands();
            let start = move |recruit: Recruit| {
                let result = carrier.start(recruit, &events);
                // If the coordinator has ended, the worker is dropped here, which ends it.
                let _ = commands.send(Command::Started { number: recruit.number, result });
            };
            if let Err(e) = self.workers.start(place, cap, start) {
                let what = format!("cannot start the thread that starts a worker: {e}");
                self.fail(Told::in_words(&Error::new(ErrorKind::Io, what)));
            }
        }
    }

    /// Handles the start of a worker, or its failure.
    fn started(&mut self, number: u64, result: Result<C::Link>) {
        match result {
            Ok(link) => self.workers.connected(number, link),
            Err(error) => {
                self.workers.all.remove(&number);
                tracing::warn!(%error, "a worker did not start");
                let (outside, target) = (C::is_from_outside(&error), self.workers.target);
                if self.workers.respawn.died(Instant::now(), outside, target) {
                    self.fail(Told::in_words(&error));
                }
            }
        }
    }

    /// Sets the number of workers, and of active threads of each worker.
    fn resize(&mut self, workers: usize, threads: usize) {
        self.workers.resize(workers);
        self.workers.activate(threads);
        let (threads, figures) = (self.workers.threads(), &self.tuning.figures);
        figures.active_each.store(threads, Ordering::Relaxed);
        figures.active.store(threads * self.workers.target, Ordering::Relaxed);
    }

    /// Returns true if other passes share the workers.
    fn is_shared(&self) -> bool {
        self.plan.elsewhere.is_some_and(|elsewhere| elsewhere.shared)
    }

    /// Publishes the figures of the report.
    fn publish(&self) {
        let (memory, tuning, workers) = (self.carrier.memory(), &self.tuning, &self.workers);
        let (started, built) = workers.first_ready;
        tuning.figures.publish(WorkersReport {
            ram_budget: self.plan.budget_bytes,
            slab_bytes: self.plan.slab_bytes,
            slab_high_water_bytes: memory.high_water_bytes,
            handed_over_bytes: tuning.received_bytes,
            copies: memory.copies,
            replaced: workers.replaced,
            threads_per_worker: workers.threads(),
            window: tuning.figures.window.load(Ordering::Relaxed),
            started_s: started.as_secs_f64(),
            built_s: built.as_secs_f64(),
            tuned: self.plan.has_choice(),
            links: self.carrier.links(),
            pool: self.is_shared().then_some(tuning.answers),
            decisions: tuning.decisions(),
            workers: workers.reports().collect(),
        });
    }
}
