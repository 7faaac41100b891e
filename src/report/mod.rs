//! The wait report: how long the consumer waits, which stage causes the waits, and which change would remove them.
//!
//! The report is always on. Waits are measured at each blocking call, which is rare by definition. The self time of stages
//! is measured on a sample (see [`crate::cx`]).

#[cfg(test)]
mod advised;
mod causes;
mod cells;
mod command;
pub(crate) mod components;
mod decoding;
pub(crate) mod format;
mod hosts;
pub(crate) mod html;
mod meter;
mod metrics;
mod model;
mod openmetrics;
mod picture;
#[cfg(all(test, feature = "spec"))]
mod places;
pub(crate) mod record;
#[cfg(test)]
mod scenes;
mod startup;
mod text;
mod tokens;
mod verdict;
mod waited;
mod why;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use cells::Cells;
pub use components::ComponentReport;
pub(crate) use decoding::remedy;
pub(crate) use meter::ConsumerMeter;
pub use metrics::{Family, Kind, Metric, Unit};
pub(crate) use openmetrics::CONTENT_TYPE;
pub(crate) use picture::Picture;
pub(crate) use tokens::TokenCount;
pub(crate) use tokens::counts_as_tokens;
pub use verdict::{Advice, Change, Verdict};
pub(crate) use waited::beside;
pub use why::Why;
pub(crate) use why::who;

pub(crate) use crate::cx::Interval;
use crate::cx::{Account, Recorder, Snapshot, StageTally};
pub use crate::cx::{Cause, LongWait, StoreUse, WaitSuspect};
use crate::dataset::{Role, Stage, Work};
use crate::exec::Runtime;
pub use crate::exec::{LinkReport, PoolReport, WorkerReport, WorkersReport};
use crate::store;
use crate::tune::Decision;
use crate::units::Bytes;
pub use hosts::HostReport;

/// Account of a run: its wall time, its waits by cause and stage, and the work of each stage.
///
/// `Display` prints text of at most 100 columns; `{report:80}` sets another width, at least 60. `Serialize` is for programs.
///
/// Shares are of the consumer's wall time, from 0 to 1. The wall time runs from the first call of `next` to the end of the last.
/// The parts of [`why`](Waits::why) add up to [`consumer_wait_share`](Waits::consumer_wait_share), not to 1.
/// The [`wait_share`](StageReport::wait_share) of a stage is the sum of its parts. [`startup_share`](Waits::startup_share),
/// [`handover_share`](Waits::handover_share) and [`aside_share`](Waits::aside_share) count waits that belong to no stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Threads and processes that evaluate the pipeline.
    #[serde(flatten)]
    pub execution: Execution,
    /// Seconds from the consumer's first call of `next` to the end of its last.
    pub wall_s: f64,
    /// Elements (batches) delivered to the consumer in this run.
    pub delivered: u64,
    /// Whether the consumer was a loop that took elements as fast as they came and did nothing with them. In such a run, waits limit
    /// throughput.
    #[serde(default)]
    pub is_drained: bool,
    /// Share of all cores that other programs used during the run, 0 to 1; `None` if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpu_share: Option<f64>,
    /// Waits of the consumer.
    #[serde(flatten)]
    pub waits: Waits,
    /// Worker processes, if they evaluate the elementwise part.
    pub workers: Option<WorkersReport>,
    /// Whether tuning adapts the number of threads to the consumer's demand.
    pub is_tuned: bool,
    /// Decisions about the threads of this process, with times and reasons.
    pub decisions: Vec<Decision>,
    /// Every stage, by id: sources first.
    pub stages: Vec<StageReport>,
    /// Components of every mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentReport>,
    /// Counted remarks: sequences split, records skipped, ….
    pub notes: Vec<(String, u64)>,
    /// Remarks of stages on themselves, such as the reason for an engine slower than the best.
    pub remarks: Vec<String>,
    /// The bottleneck, and advice to remove it.
    pub verdict: Verdict,
    /// Data for a picture of the run.
    #[serde(skip)]
    picture: Arc<Picture>,
}

/// Threads and processes that evaluate a pipeline.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Execution {
    /// Description of the evaluator of the pipeline.
    pub executor: String,
    /// Description of the delivered part of each batch and of the work done for it; `None` if whole batches were delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Threads that evaluate the elementwise part; 0 if the consumer's own thread does.
    pub threads: usize,
    /// Share of time in which those threads had work, 0 to 1.
    pub threads_busy_share: f64,
    /// Cores available to this process.
    pub cores: usize,
}

/// Waits of a consumer in a run. Shares are of the wall time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Waits {
    /// Share of the wall time that the consumer waited in `next`.
    pub consumer_wait_share: f64,
    /// Share of the time after the first call of `next` that the consumer waited.
    pub steady_wait_share: f64,
    /// Seconds of waiting for the first element: start-up, which is attributed to no stage.
    pub first_wait_s: f64,
    /// Share of the wall time spent waiting for the first element, without waits for the interpreter's lock.
    pub startup_share: f64,
    /// Known causes of the wait for the first element: objects made during it, in this process or a worker, or the stage that worked on
    /// the first element.
    pub startup: Vec<String>,
    /// Share of the wall time spent waiting for elements that were ready but not yet delivered.
    pub handover_share: f64,
    /// Share of the wall time spent on other waits that belong to no stage: memory, tasks of a dead worker, a device, the interpreter's
    /// lock if no stage held it, the first element after a checkpoint.
    pub aside_share: f64,
    /// Waits by cause and stage, including start-up, the largest first. They add up to the consumer's whole wait.
    pub why: Vec<Why>,
    /// The longest waits after the first element, at least 1 ms each; the longest first, at most 16.
    pub longest_waits: Vec<LongWait>,
    /// Median time of a call of `next`, in microseconds; 0 if less than 1.
    pub next_p50_us: f64,
    /// 99th percentile of the time of a call of `next`, in microseconds; 0 if less than 1.
    pub next_p99_us: f64,
    /// Mean share of the buffer that was full when the consumer called `next`, 0 to 1; `None` without a buffer.
    pub buffer_fill: Option<f64>,
}

/// Level of detail of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Figures only: records of long waits are not named, and nothing can be drawn. Takes less than a millisecond.
    Figures,
    /// Figures, record names, and the data of a picture without single batches, chunks and intervals.
    Named,
    /// Everything, including single batches, chunks and intervals.
    Whole,
}

/// Measurements of the consumer of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    /// The wait for the first element.
    pub(crate) first: &'a First,
    /// Meter of the calls into the loader.
    pub(crate) meter: &'a ConsumerMeter,
    /// Meter of a loop in another language around the loader.
    pub(crate) around: Option<&'a ConsumerMeter>,
    /// Causes of the waits in the loader.
    pub(crate) account: &'a Account,
}

/// Events before the first element was delivered.
#[derive(Clone, Debug, Default)]
pub(crate) struct First {
    /// Whether the first wait of a loop around the loader was already reported.
    pub(crate) is_told: bool,
    /// Objects made before the first element, with the time that each took.
    pub(crate) made: Vec<(&'static str, Duration)>,
    /// Work of each stage before the first element, by stage id, as far as counted.
    pub(crate) work: Vec<Duration>,
}

/// Place in which a stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Place {
    /// On the consumer's own thread, inside `next`.
    Consumer,
    /// On the threads that evaluate the elementwise part, in this process or in workers.
    Threads,
    /// On the single thread of the stateful part.
    Suffix,
}

/// Work of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageReport {
    /// Id of the stage: its position in post-order.
    pub id: usize,
    /// Name of the stage's method.
    pub name: String,
    /// Arguments that shape the data.
    pub params: String,
    /// Place in which the stage ran.
    pub place: Place,
    /// Share of the wall time that the consumer waited because of this stage: the sum of its parts in [`why`](Waits::why).
    pub wait_share: f64,
    /// Own work of the stage.
    #[serde(flatten)]
    pub work: StageWork,
    /// Whether most of the stage's work takes the interpreter's lock.
    pub interpreted: bool,
    /// Microseconds of the stage's own work per element that left it.
    pub self_us_per_element: f64,
    /// 99th percentile of the time of a piece of work, in microseconds.
    pub p99_us: f64,
    /// Elements that left the stage.
    pub elements: u64,
    /// Elements that left the stage per second of wall time.
    pub elements_per_s: f64,
    /// Payload bytes per second of wall time; 0 if the stage does not count them.
    pub bytes_per_s: f64,
    /// Work of the stage on other machines, one entry per machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostReport>,
    #[serde(skip)]
    traits: Traits,
}

/// Own work of a stage.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct StageWork {
    /// Seconds of the stage's own work on all threads, estimated from a sample if elements are cheap.
    pub self_s: f64,
    /// Seconds of `self_s` on a core. `cpu_s`, `blocked_s` and `lock_s` are 0 if the system does not report them.
    pub cpu_s: f64,
    /// Seconds of `self_s` spent blocked on a disk, a network or a sleep.
    pub blocked_s: f64,
    /// Seconds of `self_s` spent waiting for the interpreter's lock. The remainder was spent waiting for a core.
    pub lock_s: f64,
}

/// Properties of a stage on which the verdict depends.
#[derive(Clone, Copy, Debug)]
struct Traits {
    role: Role,
    /// Whether the stage reads elements from stores.
    reads_far: bool,
    /// Whether the stage is elementwise but follows the stages that an executor evaluates.
    is_behind: bool,
    /// Whether the stage cannot run on several threads: it reads the stream, or depends on earlier elements.
    in_order: bool,
}

/// The traits of a deserialized stage do not matter: the report already contains its advice.
impl Default for Traits {
    fn default() -> Self {
        Self { role: Role::Elementwise, reads_far: false, is_behind: false, in_order: false }
    }
}

impl Report {
    pub(crate) fn new(
        pipeline: &dyn Stage,
        executor: &str,
        recorder: &Recorder,
        run: &Runtime,
        seen: Seen<'_>,
    ) -> Self {
        Self::of(Depth::Whole, pipeline, executor, recorder, run, seen)
    }

    /// Returns a report of the given depth.
    pub(crate) fn of(
        depth: Depth,
        pipeline: &dyn Stage,
        executor: &str,
        recorder: &Recorder,
        run: &Runtime,
        seen: Seen<'_>,
    ) -> Self {
        let totals = recorder.totals();
        let Seen { meter, around, first, account } = seen;
        let whole = around.unwrap_or(meter);
        let wall = whole.wall().as_secs_f64();
        let share = |seconds: f64| if wall > 0.0 { (seconds / wall).clamp(0.0, 1.0) } else { 0.0 };
        let (steady_s, steady_wait_s) = (wall - whole.first_wait.as_secs_f64(), whole.steady_wait().as_secs_f64());
        let threads = run.parallel();
        let busy = run.busy().as_secs_f64();
        let mut stages = stage_reports(pipeline, &totals, wall, threads > 0);
        let hosts = recorder.hosts();
        stages.iter_mut().for_each(|stage| stage.hosts = hosts::of_stage(&hosts, stage.id));
        let account = match around {
            // The loader times a sample of cheap calls; the loop around it times all calls.
            Some(around) => account.within(around.waited),
            None => account.clone(),
        };
        let workers = run.workers();
        let why = why::parts(&account, beside(meter, around), why::Locks::of(workers.as_ref()), &stages, wall);
        let rest = waited::share_out(&why, &mut stages);
        let notes = recorder.notes();
        // A shorter time is less than the cost of the clock and of the call itself.
        let us = |q: f64| match whole.latency.value_at_quantile(q) as f64 / 1e3 {
            us if us < text::LEAST_US => 0.0,
            us => us,
        };
        let mut longest_waits = recorder.longest_waits(why::LONGEST);
        if depth != Depth::Figures {
            why::name_records(&mut longest_waits, pipeline);
        }
        let picture = match depth {
            Depth::Figures => Picture::default(),
            Depth::Named => Picture::of(Snapshot::default(), recorder, pipeline, whole),
            Depth::Whole => Picture::of(recorder.snapshot(), recorder, pipeline, whole),
        };
        let (is_drained, others_cpu_share) = command::facts(recorder, workers.as_ref());
        let mut report = Self {
            execution: Execution {
                executor: executor.to_string(),
                part: None,
                threads,
                threads_busy_share: if threads > 0 && wall > 0.0 {
                    (busy / (wall * threads as f64)).min(1.0)
                } else {
                    0.0
                },
                cores: std::thread::available_parallelism().map_or(1, usize::from),
            },
            wall_s: wall,
            delivered: meter.delivered,
            is_drained,
            others_cpu_share,
            waits: Waits {
                consumer_wait_share: share(whole.waited.as_secs_f64()),
                steady_wait_share: if steady_s > 0.0 { (steady_wait_s / steady_s).min(1.0) } else { 0.0 },
                first_wait_s: whole.first_wait.as_secs_f64(),
                startup_share: rest.startup,
                startup: startup::causes(whole.first_wait, workers.as_ref(), first, &stages),
                handover_share: rest.handover,
                aside_share: rest.aside,
                why,
                longest_waits,
                next_p50_us: us(0.5),
                next_p99_us: us(0.99),
                buffer_fill: meter.fill(),
            },
            workers,
            is_tuned: run.is_tuned(),
            decisions: run.decisions(),
            stages,
            components: components::of(pipeline, &totals, recorder),
            remarks: remarks(pipeline).into_iter().chain(blocks(&notes)).chain(decoding::remarks(&notes)).collect(),
            notes,
            verdict: Verdict::default(),
            picture: Arc::new(picture),
        };
        report.verdict = verdict::judge(&report);
        report
    }

    /// Returns the elements (batches) delivered per second of the consumer's wall time.
    pub fn delivered_per_s(&self) -> f64 {
        if self.wall_s > 0.0 { self.delivered as f64 / self.wall_s } else { 0.0 }
    }
}

/// Returns a remark on the memory held for blocks of stores, if the pipeline has read from a store.
fn blocks(notes: &[(String, u64)]) -> Option<String> {
    let has_read = notes.iter().any(|(what, _)| what.starts_with("store "));
    let (held, most) = store::memory().filter(|_| has_read)?;
    Some(format!("{} of at most {} of memory hold blocks of stores", Bytes(held), Bytes(most)))
}

fn remarks(pipeline: &dyn Stage) -> Vec<String> {
    let mut remarks = Vec::new();
    pipeline.walk(&mut |id, stage| {
        remarks.extend(remark(id, stage));
    });
    remarks
}

/// Returns the [remark](crate::dataset::Describe::remark) of the stage with this `id`, preceded by the stage's name.
pub(crate) fn remark(id: usize, stage: &dyn Stage) -> Option<String> {
    Some(format!("{} (stage {id}): {}", stage.name(), stage.node().describe.remark()?))
}

/// Returns the place of a stage: `Threads` if more than half of its work ran ahead of the consumer, otherwise `node`.
/// For example, a batch of a pipeline that drops nothing runs ahead although the stage follows the border.
fn place(node: Place, tally: &StageTally) -> Place {
    if 2 * tally.counts.ahead_ns > tally.counts.self_ns { Place::Threads } else { node }
}

fn stage_reports(pipeline: &dyn Stage, totals: &[StageTally], wall: f64, threaded: bool) -> Vec<StageReport> {
    let mut stages = Vec::with_capacity(totals.len());
    let place = if threaded { Place::Suffix } else { Place::Consumer };
    visit(pipeline, threaded, Spot { place, is_behind: false }, &mut |node, Spot { place, is_behind }| {
        let tally = totals.get(stages.len()).cloned().unwrap_or_default();
        let place = self::place(place, &tally);
        let is_behind = is_behind && place != Place::Threads;
        let mut report = StageReport::new(stages.len(), node, place, &tally, wall);
        report.traits.is_behind = is_behind;
        stages.push(report);
    });
    let mut reports = stages.iter_mut();
    pipeline
        .walk_in_order(&mut |_, in_order| reports.by_ref().take(1).for_each(|stage| stage.traits.in_order = in_order));
    stages
}

/// Position of a node in the pipeline.
#[derive(Clone, Copy)]
struct Spot {
    place: Place,
    /// Whether the node is an elementwise stage that follows the executor's stages; the reader of the stream evaluates it.
    is_behind: bool,
}

/// Visits the nodes in post-order, with the place of each. Nodes below a border run on the threads, if there are any. If the prefix
/// is cut, only the nodes below the cut run there.
fn visit(node: &dyn Stage, threaded: bool, spot: Spot, see: &mut dyn FnMut(&dyn Stage, Spot)) {
    let ahead = if threaded { Place::Threads } else { Place::Consumer };
    // The cut of a stream changes no place: stages of a stream are counted in the place that ran them.
    let spot = if node.node().is_cut && spot.is_behind { Spot { place: ahead, is_behind: false } } else { spot };
    let below = match node.node().work == Work::Border {
        true if has_cut(node) => Spot { is_behind: true, ..spot },
        true => Spot { place: ahead, is_behind: false },
        false => spot,
    };
    for parent in node.parents() {
        visit(parent, threaded, below, see);
    }
    see(node, spot);
}

/// Returns true if the prefix before this border, or a part of it, is cut.
fn has_cut(node: &dyn Stage) -> bool {
    node.parents()
        .into_iter()
        .any(|parent| parent.node().is_cut || parent.node().work != Work::Border && has_cut(parent))
}

impl StageReport {
    /// Returns true if the stage runs ahead of the consumer, on any of several threads.
    pub(crate) fn runs_ahead(&self) -> bool {
        self.place == Place::Threads
    }

    fn new(id: usize, stage: &dyn Stage, place: Place, tally: &StageTally, wall: f64) -> Self {
        let per_s = |n: u64| if wall > 0.0 { n as f64 / wall } else { 0.0 };
        let counts = &tally.counts;
        let self_s = counts.self_time().as_secs_f64();
        Self {
            id,
            name: stage.name().into(),
            params: stage.params(),
            place,
            wait_share: 0.0,
            work: StageWork {
                self_s,
                cpu_s: counts.seconds_of(counts.cpu_ns),
                blocked_s: counts.seconds_of(counts.blocked_ns),
                lock_s: counts.seconds_of(counts.lock_ns),
            },
            interpreted: 2 * counts.interpreted_ns > counts.looked_ns,
            self_us_per_element: self_s * 1e6 / counts.elements.max(1) as f64,
            p99_us: tally.latency.value_at_quantile(0.99) as f64 / 1e3,
            elements: counts.elements,
            elements_per_s: per_s(counts.elements),
            bytes_per_s: per_s(counts.bytes),
            hosts: Vec::new(),
            traits: Traits { role: stage.role(), reads_far: stage.node().reads.far, ..Traits::default() },
        }
    }
}
