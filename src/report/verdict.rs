//! From figures to a verdict: whose fault the wait is, and what removing it would gain.

use serde::{Deserialize, Serialize};

use super::format::time;
use super::model::{Crew, Load};
use super::{Place, Report, StageReport};
use crate::dataset::Role;

/// Below this share of waiting, the input pipeline is not the limit.
const KEEPS_UP: f64 = 0.03;
/// Fewer elements after the first, or less time, say nothing about a steady state.
const STEADY: (u64, f64) = (10, 0.02);
/// An advice that gains less is none.
const WORTH: f64 = 1.05;
/// Worker processes cost memory: threads are advised unless processes gain so much more.
const RATHER: f64 = 1.3;
/// Less work in a stage, which may not be possible, is advised behind more threads that gain as much.
const FIRST: f64 = 1.2;

/// The limit of a run, and advice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The name of the stage that makes the consumer wait; `consumer` where the pipeline keeps up; `hand-over` where what it waits
    /// for is there; `start-up` where most of a short run was that; `none` where nothing can be said yet.
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
}

pub(super) fn judge(report: &Report) -> Verdict {
    let of = |bottleneck: &str, text: String| Verdict { bottleneck: bottleneck.into(), text, ..Verdict::default() };
    if report.delivered == 0 {
        return of("none", "nothing was delivered yet".into());
    }
    let steady_s = report.wall_s - report.first_wait_s;
    if report.delivered <= STEADY.0 || steady_s < STEADY.1 {
        let what = if report.startup_share > 0.5 { "start-up" } else { "none" };
        let (first, rest) = (time(report.first_wait_s * 1e6), time(steady_s.max(0.0) * 1e6));
        let text = format!(
            "too short to say what limits the run: {first} before the first element, and {} more in {rest}",
            report.delivered - 1
        );
        return of(what, text);
    }
    if report.steady_wait_share < KEEPS_UP {
        let percent = report.steady_wait_share * 100.0;
        return of(
            "consumer",
            format!("not the input pipeline: the consumer waited {percent:.1} % of the time after the start"),
        );
    }
    if let Some(verdict) = super::causes::verdict(report) {
        return verdict;
    }
    // Shares are of all of the time.
    let steady = |share: f64| (share * report.wall_s / steady_s).min(1.0) * 100.0;
    let worst = report.stages.iter().max_by(|a, b| a.wait_share.total_cmp(&b.wait_share));
    let Some(worst) = worst else { return of("none", "the pipeline has no stages".into()) };
    if report.handover_share > worst.wait_share {
        let percent = steady(report.handover_share);
        // What workers evaluate holds the lock of another process.
        let is_here = |place: Place| place == Place::Suffix || (place == Place::Threads && report.workers.is_none());
        let holder = report.stages.iter().filter(|stage| stage.interpreted && is_here(stage.place));
        let holder = holder.max_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s)).filter(|holder| holder.cpu_s > 0.0);
        let Some(holder) = holder else {
            let text =
                format!("handing elements over limits the run: {percent:.0} % of the consumer's time went into it");
            return of("hand-over", text);
        };
        let text = format!(
            "{} (stage {}) limits the run: it holds the interpreter's lock, for which the consumer waited {percent:.0} % of \
             its time when elements were there",
            holder.name, holder.id
        );
        return Verdict {
            bottleneck: holder.name.clone(),
            stage: Some(holder.id),
            text,
            advice: advise(report, holder, holder.wait_share + report.handover_share),
        };
    }
    let text = format!(
        "{} (stage {}) limits the run: {:.0} % of the consumer's time went into waiting for it",
        worst.name,
        worst.id,
        steady(worst.wait_share)
    );
    Verdict {
        bottleneck: worst.name.clone(),
        stage: Some(worst.id),
        text,
        advice: advise(report, worst, worst.wait_share),
    }
}

/// Remedies for a stage to which so large a share of the wait is owed.
fn advise(report: &Report, worst: &StageReport, wait_share: f64) -> Vec<Advice> {
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
        Place::Suffix => format!("{what}; it runs on one thread: do this work before `to_iter` if it is per element"),
        _ => what,
    }
}
