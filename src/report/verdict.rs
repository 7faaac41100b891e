//! The verdict of a report: the largest cause of the consumer's wait, and the changes that would remove it.
//!
//! A verdict is read off [`Report::why`], the account of the wait, and off nothing else: the share that a verdict gives is the share that the
//! account gives, of the same wall time. The advice beside it comes from a [model](super::model) of the time after the start.

use serde::{Deserialize, Serialize};

use super::causes::{self, Limit};
use super::format::{percent, time};
use super::model::{Crew, Load};
use super::{Place, Report, StageReport};
use crate::dataset::Role;

/// Below this share of waiting, the consumer is the limit.
const KEEPS_UP: f64 = 0.03;
/// A run with fewer elements after the first, or less time, is too short for a cause.
const STEADY: (u64, f64) = (10, 0.1);
/// No cause is named if other programs used more of all cores: they take cores from threads in the middle of an element.
const BUSY: f64 = 0.25;
/// An advice that gains less is none.
pub(super) const WORTH: f64 = 1.05;
/// Worker processes cost memory: threads are advised unless processes gain so much more.
const RATHER: f64 = 1.3;
/// Less work in a stage, which may not be possible, is advised behind more threads that gain as much.
const FIRST: f64 = 1.2;

/// The limit of a run, and advice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The name of the stage that the consumer waited for most; or `consumer` if the consumer waited less than 3 % of the time; `start-up`;
    /// `hand-over`, `memory`, `store`, `workers`, `lock`, `device` or `restore`, if that cost more than each stage; `machine` if other programs used more
    /// than a quarter of the cores; `none` if the run is too short.
    pub bottleneck: String,
    /// Its stage id, if it is one.
    pub stage: Option<usize>,
    /// The verdict in words.
    pub text: String,
    /// Advice, best first.
    pub advice: Vec<Advice>,
}

/// One thing to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Advice {
    /// The finding, in words.
    pub text: String,
    /// The same for programs.
    pub change: Change,
    /// Bound of how many times faster the run would be: by a model of what was measured after the start, and never more than if
    /// nobody waited for what is changed.
    pub expected_speedup: f64,
}

/// Change that an [`Advice`] asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// This many threads of this process.
    Threads(usize),
    /// This many worker processes, each of so many threads.
    Workers {
        /// Processes.
        workers: usize,
        /// Threads of each.
        threads_per_worker: usize,
    },
    /// Less work in the stage of this id: none, for the gain that is given.
    Cheaper(usize),
    /// Elements that take much longer than others split into several, in front of the stage of this id, where it is known.
    Split(Option<usize>),
    /// So many bytes of memory for worker processes.
    Budget(u64),
    /// Elements that the consumer lets go of sooner.
    LetGo,
    /// Objects that come sooner from where they are stored.
    Store,
    /// A thread of the program that does not keep the interpreter's lock.
    Unlock,
    /// Workers that do not die.
    Mend,
    /// Batches that are sent further ahead, or are smaller.
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
    let waited: f64 = report.why.iter().map(|part| part.share).sum();
    let mut limits = causes::limits(&report.why).into_iter();
    let Some((limit, share)) = limits.next().filter(|_| waited >= KEEPS_UP) else {
        let limit = if report.is_drained { "the loop that takes the batches" } else { "the consumer" };
        return of("consumer", format!("nothing: {limit} is the limit, and waited {} of the time", percent(waited)));
    };
    let steady_s = report.wall_s - report.first_wait_s;
    let is_short = report.delivered <= STEADY.0 || steady_s < STEADY.1;
    let busy = report.others_cpu_share.filter(|share| *share > BUSY);
    if limit == Limit::Start {
        let [took, all] = [share, 1.0].map(|share| time(share * report.wall_s * 1e6));
        let causes: String = report.startup.iter().map(|cause| format!("; {cause}")).collect();
        let text = format!("start-up limits the run: it took {took} of {all}{causes}");
        let rest = (waited - share).max(0.0);
        let next = limits.next().filter(|_| rest >= KEEPS_UP && !is_short && busy.is_none());
        let next = next.map(|(limit, share)| causes::verdict(report, limit, share));
        return match next {
            Some(Verdict { text: next, advice, .. }) => {
                Verdict { advice, ..of("start-up", format!("{text}. After that, {next}")) }
            }
            None => of("start-up", format!("{text}. After that, {}", causes::waited(report, rest))),
        };
    }
    if let Some(share) = busy {
        let text = format!(
            "the machine was busy: other programs used {} of its cores, so no cause is named; measure again when they have ended",
            percent(share)
        );
        return of("machine", text);
    }
    if is_short {
        let (first, rest) = (time(report.first_wait_s * 1e6), time(steady_s.max(0.0) * 1e6));
        let text = format!(
            "too short to say what limits the run: {first} before the first element, and {} more in {rest}",
            report.delivered - 1
        );
        return of("none", text);
    }
    causes::verdict(report, limit, share)
}

/// Remedies for a stage to which so large a share of the wait is owed.
pub(super) fn advise(report: &Report, worst: &StageReport, wait_share: f64) -> Vec<Advice> {
    let load = Load::of(report);
    let mut advice = Vec::new();
    if worst.place != Place::Suffix && !worst.is_behind {
        advice.extend(more(report, load));
    }
    let first = advice.iter().any(|advice| advice.expected_speedup >= FIRST);
    // All that waiting for it can be made less by, if the consumer waits for nothing else afterwards.
    let share = wait_share * report.wall_s / (report.wall_s - report.first_wait_s);
    let expected_speedup = load.without(worst, report.delivered).min(1.0 / (1.0 - share.clamp(0.0, 0.99)));
    let text = cheaper(report, worst, load);
    advice.push(Advice { text, change: Change::Cheaper(worst.id), expected_speedup });
    advice.retain(|a| a.expected_speedup >= WORTH);
    if !first {
        advice.sort_by(|a, b| b.expected_speedup.total_cmp(&a.expected_speedup));
    }
    advice
}

/// More threads or processes, where either gains anything that tuning does not find out by itself.
fn more(report: &Report, load: Load) -> Option<Advice> {
    if report.is_tuned {
        return None;
    }
    let most = 1.0 / (1.0 - report.steady_wait_share.clamp(0.0, 0.99));
    let gain = |crew: Crew| load.with_crew(crew).min(most);
    let now = load.crew;
    let threads = load.useful_threads(now.processes).max(now.threads);
    let more_threads = gain(Crew { threads, ..now });
    let processes = load.useful_processes().max(now.processes);
    let each = load.useful_threads(processes).max(now.threads).div_ceil(processes);
    let more_processes = gain(Crew { threads: each * processes, processes });
    let locks = load.locked > 0.0 && processes > now.processes && more_processes > RATHER * more_threads;
    let waits = if load.blocked > load.cpu { " (it waits more than it computes)" } else { "" };
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

/// Remedies that make this kind of stage cheaper; the gain printed beside it is that of removing it altogether.
fn cheaper(report: &Report, stage: &StageReport, load: Load) -> String {
    if let Some(less) = super::decoding::advice(&stage.name, &report.notes).filter(|_| stage.role == Role::Source) {
        return less;
    }
    let blocked = if stage.self_s > 0.0 { stage.blocked_s / stage.self_s } else { 0.0 };
    let waits = if blocked >= 0.05 { format!(", {:.0} % of it waiting", 100.0 * blocked) } else { String::new() };
    let cost = format!("{} per element{waits}", time(stage.self_us_per_element));
    let what = match (stage.name.as_str(), stage.role) {
        ("tokenise", _) => "tokenise once and store the ids".to_owned(),
        (_, Role::Source) if blocked > 0.5 => format!("read from what answers sooner, or more at a time ({cost})"),
        (_, Role::Source) => "read from faster storage, fewer columns, or a format with less to parse".to_owned(),
        ("map" | "random_map" | "map_with_index" | "filter" | "flat_map", _) => {
            format!("make the function of {} cheaper ({cost})", stage.name)
        }
        _ => format!("make {} cheaper or leave it out ({cost})", stage.name),
    };
    match stage.place {
        Place::Threads if load.takes_all_cores() => format!("{what}; the cores are taken, more threads gain nothing"),
        _ if stage.is_behind => format!("put it in front of mp_prefetch, where workers run it; or {what}"),
        _ if stage.in_order && stage.role == Role::Source => match stage.name.as_str() {
            "source" => {
                format!("yield elements that cost less ({cost}), and do the rest in a map behind it, which threads run")
            }
            _ => format!("{what}; one thread reads it: with several files, `lanes` has several read at a time"),
        },
        Place::Suffix => format!("{what}; it runs on one thread: do this work before `to_iter` if it is per element"),
        _ => what,
    }
}
