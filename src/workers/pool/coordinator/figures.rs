//! Figures for the report and for the controller that tunes the run.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::Coordinator;
use crate::cx::clock;
use crate::exec::{WorkerReport, WorkersReport};
use crate::tune::{Setting, Totals};
use crate::workers::control::ToWorker;
use crate::workers::pool::carrier::{Carrier, Link};
use crate::workers::pool::crew::Member;

impl<C: Carrier> Coordinator<C> {
    /// Checks, after hand-out, whether all workers are present and have enough tasks.
    pub(super) fn look(&mut self) {
        let is_short = self.staff() != self.wanted || self.crew.values().any(|member| member.leaving);
        let now = Instant::now();
        let incomplete = is_short || self.crew.values().any(|member| member.begins(now));
        let under_way: usize = self.crew.values().map(|member| member.tasks.len()).sum();
        let nothing_left = self.queue.first(0).is_none();
        if let Some(tuner) = self.tuner.as_mut() {
            // Each worker could have one task more than it has active threads.
            let Setting { threads, processes, .. } = tuner.setting();
            let now = Instant::now();
            tuner.look(nothing_left && under_way < threads + processes, now);
            tuner.look_short(self.is_short && self.plan.elsewhere.is_some(), now);
            if incomplete {
                tuner.disturb();
            }
        }
    }

    /// Measures at every tick, and applies the changes of the controller.
    pub(super) fn tune(&mut self) {
        if !self.tuner.as_ref().is_some_and(|tuner| tuner.is_due(self.indices, Instant::now())) {
            return;
        }
        let most_workers = self.most_workers();
        let Some(tuner) = self.tuner.as_mut() else { return };
        tuner.allow_workers(most_workers);
        let (blocked, locked) = self.recorder.blocked();
        let (steps, longest) = self.figures.demand.steps();
        let cpu = self.crew.values().filter_map(|member| member.link.as_ref()?.cpu_time()).sum();
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
        if let Some(Setting { threads, processes, window }) = tuner.step(totals, longest, Instant::now()) {
            self.figures.window.store(window, Ordering::Relaxed);
            self.resize(processes);
            self.activate(threads.div_ceil(processes));
        }
    }

    /// Returns true if other passes share the workers.
    pub(super) fn is_shared(&self) -> bool {
        self.plan.elsewhere.is_some_and(|elsewhere| elsewhere.shared)
    }

    pub(super) fn tell_figures(&self) {
        let memory = self.carrier.memory();
        let worker = |(&number, member): (&u64, &Member<C>)| {
            let known = member.link.as_ref()?.report()?;
            Some(WorkerReport { number, heap_limit_bytes: member.cap, tasks: member.done, ..known })
        };
        self.figures.tell(WorkersReport {
            ram_budget: self.plan.budget_bytes,
            slab_bytes: self.plan.slab_bytes,
            slab_high_water_bytes: memory.high_water_bytes,
            handed_over_bytes: self.handed_over,
            copies: memory.copies,
            replaced: self.replaced,
            threads_per_worker: self.plan.active_threads,
            window: self.figures.window.load(Ordering::Relaxed),
            started_s: self.first_ready.map_or(0.0, |(started, _)| started.as_secs_f64()),
            built_s: self.first_ready.map_or(0.0, |(_, built)| built.as_secs_f64()),
            tuned: self.has_choice,
            links: self.carrier.links(),
            pool: self.is_shared().then_some(self.answers),
            decisions: self.tuner.as_ref().map(|tuner| tuner.decisions.clone()).unwrap_or_default(),
            workers: self.crew.iter().filter_map(worker).collect(),
        });
    }

    pub(super) fn sync(&mut self, done: Sender<()>) {
        self.tell_figures();
        let mut missing = BTreeSet::new();
        for (&number, member) in self.crew.iter().filter(|(_, member)| member.ready) {
            if member.link.as_ref().is_some_and(|link| link.send(&ToWorker::Tell).is_ok()) {
                missing.insert(number);
            }
        }
        self.syncs.push((done, missing));
        self.settle();
    }

    /// Marks the counts of a worker as received, or as lost with the worker.
    pub(super) fn counted(&mut self, number: u64) {
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
}
