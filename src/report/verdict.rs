//! The verdict of a report: the largest cause of the consumer's wait, and the changes that would remove it.
//!
//! A verdict and its share of the wall time come from [`Report::why`], the account of the wait, and from nothing else. The advice
//! comes from a [model](super::model) of the time after the start.

use serde::{Deserialize, Serialize};

use super::causes::{self, Limit};
use super::format::{percent, time};
use super::model::{Crew, Load};
use super::{Place, Report, StageReport};
use crate::dataset::Role;

/// Share of waiting below which the consumer is the limit.
const KEEPS_UP: f64 = 0.03;
/// Elements, and seconds after the first element, that a run must exceed for a cause to be named.
const STEADY: (u64, f64) = (10, 0.1);
/// Largest share of all cores used by other programs for which a cause is named: they take cores from threads in the middle of an
/// element.
const BUSY: f64 = 0.25;
/// Smallest speedup that is advised.
pub(super) const WORTH: f64 = 1.05;
/// Factor by which processes must outperform threads to be advised: worker processes cost memory.
const RATHER: f64 = 1.3;
/// Speedup from which more threads or processes are advised before less work in a stage, which may not be possible.
const FIRST: f64 = 1.2;

/// The limit of a run, and advice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// Name of the limit: the stage that the consumer waited for most, or a name from the following list.
    ///
    /// `consumer` if the consumer waited less than 3 % of the time. `start-up`, `hand-over`, `memory`, `store`, `workers`, `lock`,
    /// `device` or `restore` if this cause cost more than each stage. `machine` if other programs used more than a quarter of the
    /// cores. `none` if the run is too short.
    pub bottleneck: String,
    /// Id of the limiting stage, if the limit is a stage.
    pub stage: Option<usize>,
    /// The verdict in words.
    pub text: String,
    /// Advice, best first.
    pub advice: Vec<Advice>,
}

/// A change that would make the run faster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Advice {
    /// The advice in words.
    pub text: String,
    /// The advice for programs.
    pub change: Change,
    /// Upper bound of the speedup, from a model of the time after the start. Never exceeds the speedup from removing all waits for the
    /// changed part.
    pub expected_speedup: f64,
}

/// Change that an [`Advice`] proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Number of threads of this process.
    Threads(usize),
    /// Number of worker processes, and of threads in each.
    Workers {
        /// Number of worker processes.
        workers: usize,
        /// Number of threads in each worker process.
        threads_per_worker: usize,
    },
    /// Less work in the stage with this id. The expected speedup assumes no work at all.
    Cheaper(usize),
    /// Splitting of elements that take much longer than others, before the stage with this id, if it is known.
    Split(Option<usize>),
    /// Memory budget of worker processes, in bytes.
    Budget(u64),
    /// Earlier release of elements by the consumer.
    LetGo,
    /// Faster reads of objects from stores.
    Store,
    /// Release of the interpreter's lock by another thread of the program.
    Unlock,
    /// Repair of the cause of death of workers.
    Mend,
    /// Batches sent further ahead, or smaller batches.
    Transfer,
    /// Fewer, larger batches.
    LargerBatches,
}

/// Finds the limit of a run in the account of the consumer's wait.
pub(super) fn judge(report: &Report) -> Verdict {
    let of = |bottleneck: &str, text: String| Verdict { bottleneck: bottleneck.into(), text, ..Verdict::default() };
    if report.delivered == 0 {
        return of("none", "nothing was delivered yet".into());
    }
    let waited: f64 = report.waits.why.iter().map(|part| part.share).sum();
    let mut limits = causes::limits(&report.waits.why).into_iter();
    let Some((limit, share)) = limits.next().filter(|_| waited >= KEEPS_UP) else {
        let limit = if report.is_drained { "the loop that takes the batches" } else { "the consumer" };
        return of("consumer", format!("nothing: {limit} is the limit, and waited {} of the time", percent(waited)));
    };
    let steady_s = report.wall_s - report.waits.first_wait_s;
    let is_short = report.delivered <= STEADY.0 || steady_s < STEADY.1;
    let busy = report.others_cpu_share.filter(|share| *share > BUSY);
    if limit == Limit::Start {
        let [took, all] = [share, 1.0].map(|share| time(share * report.wall_s * 1e6));
        let causes: String = report.waits.startup.iter().map(|cause| format!("; {cause}")).collect();
        let text = format!("start-up limits the run: it took {took} of {all}{causes}");
        let rest = (waited - share).max(0.0);
        let next = limits.next().filter(|_| rest >= KEEPS_UP && !is_short && busy.is_none());
        let next = next.map(|(limit, share)| causes::verdict(report, limit, share));
        return if let Some(Verdict { text: next, advice, .. }) = next {
            Verdict { advice, ..of("start-up", format!("{text}. After that, {next}")) }
        } else {
            of("start-up", format!("{text}. After that, {}", causes::waited(report, rest)))
        };
    }
    if let Some(share) = busy {
        let text = format!(
            "the machine was busy: other programs used {} of its cores, so the report names no cause; measure again on an idle machine",
            percent(share)
        );
        return of("machine", text);
    }
    if is_short {
        let (first, rest) = (time(report.waits.first_wait_s * 1e6), time(steady_s.max(0.0) * 1e6));
        let text = format!(
            "the run is too short for a verdict: {first} before the first element, and {} more in {rest}",
            report.delivered - 1
        );
        return of("none", text);
    }
    causes::verdict(report, limit, share)
}

/// Returns remedies for a stage that caused `wait_share` of the wall time in waits.
pub(super) fn advise(report: &Report, worst: &StageReport, wait_share: f64) -> Vec<Advice> {
    let load = Load::of(report);
    let mut advice = Vec::new();
    if worst.place != Place::Suffix && !worst.traits.is_behind {
        advice.extend(more(report, load));
    }
    let first = advice.iter().any(|advice| advice.expected_speedup >= FIRST);
    // Upper bound: all waits for the stage disappear, and the consumer waits for nothing else instead.
    let share = wait_share * report.wall_s / (report.wall_s - report.waits.first_wait_s);
    let expected_speedup = load.without(worst, report.delivered).min(1.0 / (1.0 - share.clamp(0.0, 0.99)));
    let text = cheaper(report, worst, load);
    advice.push(Advice { text, change: Change::Cheaper(worst.id), expected_speedup });
    advice.retain(|a| a.expected_speedup >= WORTH);
    if !first {
        advice.sort_by(|a, b| b.expected_speedup.total_cmp(&a.expected_speedup));
    }
    advice
}

/// Returns the better of more threads and more processes; `None` if the run is tuned, or if more threads per worker do not help.
fn more(report: &Report, load: Load) -> Option<Advice> {
    if report.is_tuned {
        return None;
    }
    let most = 1.0 / (1.0 - report.waits.steady_wait_share.clamp(0.0, 0.99));
    let gain = |crew: Crew| load.with_crew(crew).min(most);
    let now = load.crew;
    let threads = load.useful_threads(now.processes).max(now.threads);
    let more_threads = gain(Crew { threads, ..now });
    let processes = load.useful_processes().max(now.processes);
    let each = load.useful_threads(processes).max(now.threads).div_ceil(processes);
    let more_processes = gain(Crew { threads: each * processes, processes });
    let locks = load.locked > 0.0 && processes > now.processes && more_processes > RATHER * more_threads;
    let waits = if load.blocked > load.cpu { " (the stage waits more than it computes)" } else { "" };
    let workers = |workers: usize, threads_per_worker: usize| Change::Workers { workers, threads_per_worker };
    let (text, change, expected_speedup) = if locks {
        let what = if now.processes > 0 { "workers" } else { "run it in worker processes with mp_prefetch: workers" };
        let from = if now.processes > 0 { format!("{} → ", now.processes) } else { String::new() };
        let text = format!("{what} {from}{processes}; its function holds the interpreter's lock, threads gain less");
        (text, workers(processes, each), more_processes)
    } else if now.processes > 0 {
        let (from, to) = (now.threads.div_ceil(now.processes), threads.div_ceil(now.processes));
        if to <= from {
            return None;
        }
        (format!("threads of each worker {from} → {to}{waits}"), workers(now.processes, to), more_threads)
    } else if now.threads == 0 {
        (format!("run it ahead of the consumer: threads {threads}{waits}"), Change::Threads(threads), more_threads)
    } else {
        (format!("threads {} → {threads}{waits}", now.threads), Change::Threads(threads), more_threads)
    };
    Some(Advice { text, change, expected_speedup })
}

/// Returns a remedy that makes this kind of stage cheaper. The gain printed with it is the gain from removing the stage.
fn cheaper(report: &Report, stage: &StageReport, load: Load) -> String {
    if let Some(less) =
        super::decoding::advice(&stage.name, &report.notes).filter(|_| stage.traits.role == Role::Source)
    {
        return less;
    }
    let blocked = if stage.work.self_s > 0.0 { stage.work.blocked_s / stage.work.self_s } else { 0.0 };
    let waits = if blocked >= 0.05 { format!(", {:.0} % of it waiting", 100.0 * blocked) } else { String::new() };
    let cost = format!("{} per element{waits}", time(stage.self_us_per_element));
    let what = match (stage.name.as_str(), stage.traits.role) {
        ("tokenise", _) => "tokenise once and store the ids".to_owned(),
        (_, Role::Source) if blocked > 0.5 => format!("use faster storage, or read more in parallel ({cost})"),
        (_, Role::Source) => "read from faster storage, fewer columns, or a format with less to parse".to_owned(),
        ("map" | "random_map" | "map_with_index" | "filter" | "flat_map", _) => {
            format!("make the function of {} cheaper ({cost})", stage.name)
        }
        _ => format!("make {} cheaper or leave it out ({cost})", stage.name),
    };
    match stage.place {
        Place::Threads if load.takes_all_cores() => format!("{what}; all cores are busy, so more threads gain nothing"),
        _ if stage.traits.is_behind => format!("move the stage before mp_prefetch, so that workers run it; or {what}"),
        _ if stage.traits.in_order && stage.traits.role == Role::Source => match stage.name.as_str() {
            "source" => {
                format!(
                    "yield cheaper elements ({cost}), and do the rest in a `map` after the source, which threads run"
                )
            }
            _ => format!("{what}; one thread reads the source: `lanes` reads several files at a time"),
        },
        Place::Suffix => {
            format!("{what}; the stage runs on one thread: move the work before `to_iter` if it is elementwise")
        }
        _ => what,
    }
}
