//! A model of a run: seconds per element on each part of the machine, and the speedup from more threads or processes.

use super::{Place, Report, StageReport};
use crate::tune::MANY_THREADS;

/// Planned share of time in which threads are busy.
const TARGET: f64 = 0.85;
/// Largest gain reported as a figure. Beyond it, the remaining time is smaller than the error of the model.
pub(super) const MOST_GAIN: f64 = 10.0;
/// Share of time under the interpreter's lock above which functions mostly wait for each other.
const LOCKED: f64 = 0.7;

/// The evaluator of the elementwise part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Crew {
    /// Threads of all processes together; 0 if `next` evaluates the elementwise part.
    pub(super) threads: usize,
    /// Processes other than the consumer's; 0 without workers.
    pub(super) processes: usize,
}

/// Seconds per delivered element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Seconds of the elementwise part on a core.
    pub(super) cpu: f64,
    /// Seconds of the elementwise part blocked.
    pub(super) blocked: f64,
    /// Seconds of `cpu` in functions that take the interpreter's lock.
    pub(super) locked: f64,
    /// Seconds of all work on the single thread of the pipeline.
    pub(super) suffix: f64,
    /// Seconds of the consumer's own work between two calls of `next`.
    pub(super) consumer: f64,
    /// Seconds between two elements, measured after the start.
    measured: f64,
    cores: f64,
    pub(super) crew: Crew,
}

impl Load {
    pub(super) fn of(report: &Report) -> Self {
        let elements = report.delivered.max(1) as f64;
        let processes = report.workers.as_ref().map_or(0, |workers| workers.workers.len().max(1));
        let crew = Crew { threads: report.execution.threads, processes };
        let mut load = Self {
            cpu: 0.0,
            blocked: 0.0,
            locked: 0.0,
            suffix: 0.0,
            consumer: 0.0,
            measured: 0.0,
            cores: report.execution.cores.max(1) as f64,
            crew,
        };
        let per_process = report.execution.threads as f64 / processes.max(1) as f64;
        let locked: f64 = report.stages.iter().filter(|stage| stage.interpreted).map(|stage| stage.work.cpu_s).sum();
        // Inside a long function, a wait for the lock cannot be distinguished from other waits.
        let taken = per_process > 1.0 && locked > LOCKED * report.wall_s * processes.max(1) as f64;
        for stage in &report.stages {
            let Times { cpu, blocked } = Times::of(stage, load.has_cores());
            if !is_elementwise(stage) {
                load.suffix += stage.work.self_s / elements;
                continue;
            }
            load.cpu += cpu / elements;
            load.locked += if stage.interpreted { cpu / elements } else { 0.0 };
            load.blocked += if stage.interpreted && taken { 0.0 } else { blocked / elements };
        }
        if load.has_cores() && load.cpu > 0.0 {
            // The remaining busy time of threads, mostly waits for a core that another program took.
            let on_threads = report.stages.iter().filter(|stage| stage.place == Place::Threads);
            let busy_s = report.execution.threads_busy_share * report.execution.threads as f64 * report.wall_s;
            let other = (busy_s - on_threads.map(|stage| stage.work.self_s).sum::<f64>()).max(0.0) / elements;
            load.locked += other * load.locked / load.cpu;
            load.cpu += other;
        }
        let steady_s = (report.wall_s - report.waits.first_wait_s).max(0.0);
        load.measured = steady_s / report.delivered.saturating_sub(1).max(1) as f64;
        load.consumer = load.measured * (1.0 - report.waits.steady_wait_share);
        load
    }

    /// Returns the seconds per delivered element with `crew`, if nothing else limited the run.
    fn period(self, crew: Crew) -> f64 {
        if crew.threads == 0 {
            return self.cpu + self.blocked + self.suffix + self.consumer;
        }
        let threads = (self.cpu + self.blocked) / crew.threads as f64;
        threads.max(self.limit(crew.processes))
    }

    /// Returns the seconds per delivered element with any number of threads in `processes` processes.
    fn limit(self, processes: usize) -> f64 {
        let lock = self.locked / processes.max(1) as f64;
        (self.cpu / self.cores).max(lock).max(self.suffix).max(self.consumer)
    }

    /// Returns an upper bound of the speedup with `crew`.
    pub(super) fn with_crew(self, crew: Crew) -> f64 {
        self.speedup_to(self.period(crew))
    }

    /// Returns an upper bound of the speedup without `stage`, with the present crew.
    pub(super) fn without(self, stage: &StageReport, delivered: u64) -> f64 {
        let elements = delivered.max(1) as f64;
        let Times { cpu, blocked } = Times::of(stage, self.has_cores());
        let (cpu, blocked) = (cpu / elements, blocked / elements);
        let left = |of: f64, own: f64| (of - own).max(0.0);
        let other = if is_elementwise(stage) {
            let locked = if stage.interpreted { left(self.locked, cpu) } else { self.locked };
            Self { cpu: left(self.cpu, cpu), blocked: left(self.blocked, blocked), locked, ..self }
        } else {
            Self { suffix: left(self.suffix, stage.work.self_s / elements), ..self }
        };
        self.speedup_to(other.period(self.crew))
    }

    fn speedup_to(self, period: f64) -> f64 {
        let now = self.period(self.crew);
        // A change does not remove time that the model does not explain.
        let then = period + (self.measured - now).max(0.0);
        if then > 0.0 { (self.measured / then).clamp(1.0, MOST_GAIN) } else { 1.0 }
    }

    /// Returns the number of threads that reaches the limit of these processes.
    pub(super) fn useful_threads(self, processes: usize) -> usize {
        let limit = self.limit(processes).max(1e-12);
        ((self.cpu + self.blocked) / limit / TARGET).ceil().clamp(1.0, MANY_THREADS as f64) as usize
    }

    /// Returns the number of processes at which the interpreter's lock no longer limits the cores.
    pub(super) fn useful_processes(self) -> usize {
        let other = (self.cpu / self.cores).max(self.suffix).max(self.consumer).max(1e-12);
        (self.locked / other / TARGET).ceil().clamp(1.0, self.cores) as usize
    }

    /// Returns true if each thread has a core.
    fn has_cores(&self) -> bool {
        self.crew.threads as f64 <= self.cores
    }

    /// Returns true if the elementwise part keeps the cores busy.
    pub(super) fn takes_all_cores(self) -> bool {
        self.cpu / self.cores > 0.7 * self.measured
    }
}

/// Seconds of a stage's own work.
struct Times {
    cpu: f64,
    blocked: f64,
}

impl Times {
    /// Returns the CPU time and the blocked time of a stage. All work is CPU time if the system does not report the division.
    ///
    /// Waits for the lock are not counted, nor are waits for a core if the crew has more threads than cores. If all threads `have_cores`,
    /// other programs took the cores and are expected to keep them: such waits count as CPU time.
    fn of(stage: &StageReport, have_cores: bool) -> Self {
        let known = stage.work.cpu_s + stage.work.blocked_s + stage.work.lock_s;
        if known <= 0.0 {
            return Self { cpu: stage.work.self_s, blocked: 0.0 };
        }
        let taken = if have_cores { (stage.work.self_s - known).max(0.0) } else { 0.0 };
        Self { cpu: stage.work.cpu_s + taken, blocked: stage.work.blocked_s }
    }
}

fn is_elementwise(stage: &StageReport) -> bool {
    stage.place == Place::Threads
        || (stage.place == Place::Consumer && !stage.traits.in_order && !stage.traits.is_behind)
}
