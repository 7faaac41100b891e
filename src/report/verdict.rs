//! From figures to a verdict: whose fault the wait is, and what removing it would gain.

use serde::Serialize;

use super::{Place, Report, StageReport};
use crate::dataset::Role;

/// Below this share of waiting, the input pipeline is not the limit.
const KEEPS_UP: f64 = 0.02;

/// What limits the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    /// The name of the stage that makes the consumer wait; `consumer` where the pipeline keeps up; `none` before anything ran.
    pub bottleneck: String,
    /// Its stage id, if it is one.
    pub stage: Option<usize>,
    /// The verdict in words.
    pub text: String,
    /// What to do, best first.
    pub advice: Vec<Advice>,
}

/// One thing to do.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// What.
    pub text: String,
    /// How many times faster the run would be, as far as the measured figures tell.
    pub expected_speedup: f64,
}

/// Splits the consumer's wait over the stages.
///
/// Inside one thread a wait goes to the stages by self time. With threads, the stateful part either worked or was
/// `blocked` (seconds) on elements from the threads: that proportion divides the wait between the two groups first.
pub(super) fn share_out(stages: &mut [StageReport], wait_share: f64, blocked: f64) {
    let total = |stages: &[StageReport], threads: bool| -> f64 {
        stages.iter().filter(|s| (s.place == Place::Threads) == threads).map(|s| s.self_s).sum()
    };
    let (on_threads, elsewhere) = (total(stages, true), total(stages, false));
    let blamed_on_threads = match (on_threads > 0.0, blocked + elsewhere > 0.0) {
        (true, true) => blocked / (blocked + elsewhere),
        (has_threads, _) => f64::from(has_threads),
    };
    for stage in stages {
        let (group, share) = match stage.place {
            Place::Threads => (on_threads, blamed_on_threads),
            _ => (elsewhere, 1.0 - blamed_on_threads),
        };
        stage.wait_share = if group > 0.0 { wait_share * share * stage.self_s / group } else { 0.0 };
    }
}

/// Seconds per delivered element that each part of the machine is busy with.
#[derive(Clone, Copy)]
struct Load {
    /// The elementwise part, summed over all threads.
    prefix: f64,
    /// Everything that runs on one thread of the pipeline.
    suffix: f64,
    /// The consumer's own work between two calls of `next`.
    consumer: f64,
    /// Threads of the elementwise part that the machine can really run; 0 where it runs inside `next`.
    threads: f64,
}

impl Load {
    fn of(report: &Report) -> Self {
        let per_element = |place: fn(&StageReport) -> bool| -> f64 {
            report.stages.iter().filter(|s| place(s)).map(|s| s.self_s).sum::<f64>() / report.delivered.max(1) as f64
        };
        let elementwise =
            |s: &StageReport| s.place == Place::Threads || (s.place == Place::Consumer && s.role < Role::Stateful);
        Self {
            prefix: per_element(elementwise),
            suffix: per_element(|s| {
                s.place == Place::Suffix || (s.place == Place::Consumer && s.role == Role::Stateful)
            }),
            consumer: report.wall_s * (1.0 - report.consumer_wait_share) / report.delivered.max(1) as f64,
            threads: report.threads.min(report.cores) as f64,
        }
    }

    /// Predicted seconds per delivered element.
    fn period(self) -> f64 {
        if self.threads == 0.0 {
            return self.prefix + self.suffix + self.consumer;
        }
        (self.prefix / self.threads).max(self.suffix).max(self.consumer)
    }

    fn speedup_to(self, other: Self) -> f64 {
        if other.period() > 0.0 { self.period() / other.period() } else { 1.0 }
    }

    fn without(self, stage: &StageReport, delivered: u64) -> Self {
        let own = stage.self_s / delivered.max(1) as f64;
        let in_prefix =
            stage.place == Place::Threads || (stage.place == Place::Consumer && stage.role < Role::Stateful);
        if in_prefix {
            Self { prefix: (self.prefix - own).max(0.0), ..self }
        } else {
            Self { suffix: (self.suffix - own).max(0.0), ..self }
        }
    }
}

pub(super) fn judge(report: &Report) -> Verdict {
    if report.delivered == 0 {
        return Verdict { bottleneck: "none".into(), text: "nothing was delivered yet".into(), ..Verdict::default() };
    }
    let percent = report.consumer_wait_share * 100.0;
    if report.consumer_wait_share < KEEPS_UP {
        let text = format!("not the input pipeline: the consumer waited {percent:.1} % of the time");
        return Verdict { bottleneck: "consumer".into(), text, ..Verdict::default() };
    }
    let Some(worst) = report.stages.iter().max_by(|a, b| a.wait_share.total_cmp(&b.wait_share)) else {
        return Verdict { bottleneck: "none".into(), text: "the pipeline has no stages".into(), ..Verdict::default() };
    };
    let text = format!(
        "{} (stage {}) limits the run: {:.0} % of the consumer's time went into waiting for it",
        worst.name,
        worst.id,
        worst.wait_share * 100.0
    );
    Verdict { bottleneck: worst.name.clone(), stage: Some(worst.id), text, advice: advise(report, worst) }
}

fn advise(report: &Report, worst: &StageReport) -> Vec<Advice> {
    let load = Load::of(report);
    let mut advice = Vec::new();
    let mut add = |text: String, expected_speedup: f64| advice.push(Advice { text, expected_speedup });
    match worst.place {
        Place::Consumer => {
            let threaded = load.speedup_to(Load { threads: report.cores as f64, ..load });
            add(format!("run it ahead of the consumer: threads {}", report.cores), threaded);
        }
        Place::Threads if report.threads < report.cores => {
            let more = load.speedup_to(Load { threads: report.cores as f64, ..load });
            add(format!("threads {} → {}", report.threads, report.cores), more);
        }
        Place::Threads | Place::Suffix => {}
    }
    let without = load.speedup_to(load.without(worst, report.delivered));
    add(cheaper(report, worst), without);
    advice.retain(|a| a.expected_speedup >= 1.01);
    advice.sort_by(|a, b| b.expected_speedup.total_cmp(&a.expected_speedup));
    advice
}

/// What makes this kind of stage cheaper; the gain printed beside it is that of removing it altogether.
fn cheaper(report: &Report, stage: &StageReport) -> String {
    if let Some(less) = super::decoding::advice(&stage.name, &report.notes).filter(|_| stage.role == Role::Source) {
        return less;
    }
    let cost = format!("{} per element", super::format::time(stage.self_us_per_element));
    let what = match (stage.name.as_str(), stage.role) {
        ("tokenise", _) => "tokenise once and store the ids".to_owned(),
        (_, Role::Source) => "read from faster storage, fewer columns, or a format with less to parse".to_owned(),
        ("map" | "random_map" | "map_with_index" | "filter" | "flat_map", _) => {
            format!("make the function of {} cheaper ({cost})", stage.name)
        }
        _ => format!("make {} cheaper or leave it out ({cost})", stage.name),
    };
    if stage.place == Place::Threads && report.threads >= report.cores {
        return format!("{what}; this machine has {} cores, more threads gain nothing", report.cores);
    }
    if stage.place == Place::Suffix {
        return format!("{what}; it runs on one thread: do this work before `to_iter` if it is per element");
    }
    what
}
