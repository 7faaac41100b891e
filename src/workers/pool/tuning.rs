//! Measurements of a pool, and the tuner that uses them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::Figures;
use super::carrier::{Carrier, Link};
use super::memory::Memory;
use super::workers::Workers;
use crate::cx::{Recorder, clock};
use crate::exec::PoolReport;
use crate::exec::remote::Evaluated;
use crate::tune::{Bounds, Decision, Setting, Totals, Tuner};
use crate::workers::budget::Plan;
use crate::workers::slab::PAGE;

/// Counts of answers, and the tuner.
pub(super) struct Tuning {
    pub(super) figures: Arc<Figures>,
    /// `None` if nothing can be tuned.
    tuner: Option<Tuner>,
    /// Bytes received from the workers.
    pub(super) received_bytes: u64,
    /// Indices with a result.
    pub(super) indices: u64,
    pub(super) answers: PoolReport,
    /// Channels that wait for counts, each with the workers whose counts are missing.
    syncs: Vec<(Sender<()>, BTreeSet<u64>)>,
}

impl Tuning {
    /// Starts without answers. A `tick` is the length of a second for the tuner.
    pub(super) fn new(plan: &Plan, tick: Duration, figures: Arc<Figures>) -> Self {
        let window = figures.window.load(Ordering::Relaxed);
        let bounds = Bounds {
            most_threads: plan.threads_in_all,
            most_threads_each: plan.threads_per_worker,
            cores: plan.cores,
            processes: (if plan.workers > plan.start_workers { 1 } else { plan.workers }, plan.workers),
            most_window: (plan.slab_bytes as usize / PAGE).max(window),
            idle: plan.elsewhere.map(|elsewhere| elsewhere.idle),
        };
        let processes = plan.start_workers;
        let start = Setting { threads: plan.active_threads * processes, processes, window };
        let tuner = plan.tuned.then(|| Tuner::new(start, bounds, tick, Instant::now()));
        Self { figures, tuner, received_bytes: 0, indices: 0, answers: PoolReport::default(), syncs: Vec::new() }
    }

    /// Counts an answer, made in `took`.
    pub(super) fn count(&mut self, answer: &Evaluated, took: Duration) {
        self.figures.busy_ns.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        self.received_bytes += answer.used as u64;
        self.indices += answer.indices;
        self.answers.answers += 1;
        self.answers.kept += u64::from(answer.kept);
    }

    /// Records, after dispatch, whether all workers are present and have enough tasks.
    pub(super) fn observe<C: Carrier>(&mut self, workers: &Workers<C>, is_queue_empty: bool, is_short: bool) {
        let Some(tuner) = &mut self.tuner else { return };
        let (Setting { threads, processes, .. }, now) = (tuner.setting(), Instant::now());
        // Each worker could have one task more than it has active threads.
        tuner.look(is_queue_empty && workers.tasks() < threads + processes, now);
        tuner.look_short(is_short, now);
        if workers.is_changing(now) {
            tuner.disturb();
        }
    }

    /// Measures at every tick. Returns the new setting if the tuner decides on a change.
    pub(super) fn step<C: Carrier>(
        &mut self,
        workers: &Workers<C>,
        memory: &Memory<C>,
        recorder: &Recorder,
    ) -> Option<Setting> {
        let tuner = self.tuner.as_mut().filter(|tuner| tuner.is_due(self.indices, Instant::now()))?;
        tuner.allow_workers(memory.most_workers());
        let (blocked, locked) = recorder.blocked();
        let (steps, longest) = self.figures.demand.steps();
        let cpu = workers.links().filter_map(Link::cpu_time).sum();
        let totals = Totals {
            busy: Duration::from_nanos(self.figures.busy_ns.load(Ordering::Relaxed)),
            locked,
            cpu,
            taken: cpu + clock::process_cpu(),
            indices: self.indices,
            blocked,
            waited: self.figures.demand.waited(),
            steps,
        };
        tuner.step(totals, longest, Instant::now())
    }

    pub(super) fn decisions(&self) -> Vec<Decision> {
        self.tuner.as_ref().map(|tuner| tuner.decisions.clone()).unwrap_or_default()
    }

    /// Sends to `done` after the counts of all `missing` workers have arrived.
    pub(super) fn sync(&mut self, done: Sender<()>, missing: BTreeSet<u64>) {
        self.syncs.push((done, missing));
        self.end_syncs();
    }

    /// Marks the counts of a worker as received, or as lost with the worker.
    pub(super) fn counts_received(&mut self, number: u64) {
        for (_, missing) in &mut self.syncs {
            missing.remove(&number);
        }
        self.end_syncs();
    }

    fn end_syncs(&mut self) {
        self.syncs.retain(|(done, missing)| {
            if missing.is_empty() {
                let _ = done.try_send(());
            }
            !missing.is_empty()
        });
    }
}
