//! Verdicts where most of the wait was for something else than the work of stages.

use super::format::{bytes, percent};
use super::model::MOST_GAIN;
use super::{Advice, Change, Report, StageReport, Verdict, Why};
use crate::cx::Cause;
use crate::units::Bytes;

/// Causes that are no work of stages, each of which may be the limit of a run.
const BESIDE: [Cause; 8] = [
    Cause::HeadOfLine,
    Cause::Memory,
    Cause::Leases,
    Cause::Store,
    Cause::Death,
    Cause::Lock,
    Cause::Transfer,
    Cause::Restore,
];

impl Cause {
    /// Whether it is neither the work of a stage, nor something that one waited for, nor how elements come to the consumer.
    pub(super) fn is_aside(self) -> bool {
        matches!(self, Self::Memory | Self::Leases | Self::Death | Self::Restore | Self::Transfer)
    }
}

/// Share of the wall time that was waited because of `cause`.
pub(super) fn share(why: &[Why], cause: Cause) -> f64 {
    why.iter().filter(|why| why.cause == cause).map(|why| why.share).sum()
}

/// The verdict where one of those causes was waited for longer than for any other, and for all work of stages together.
pub(super) fn verdict(report: &Report) -> Option<Verdict> {
    let of = |cause: Cause| share(&report.why, cause);
    let work: f64 = [Cause::Reader, Cause::Queue, Cause::Evaluation].into_iter().map(of).sum();
    // Where stages have the lock for as long as it is waited for, they wait for each other.
    let is_own = of(Cause::Lock) * report.wall_s <= held(report);
    let candidates = BESIDE.into_iter().filter(|cause| *cause != Cause::Lock || !is_own);
    let (cause, most) = candidates.map(|cause| (cause, of(cause))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let handed = if is_own { report.handover_share.max(of(Cause::Lock)) } else { 0.0 };
    let least = work.max(of(Cause::HandOver)).max(handed).max(f64::MIN_POSITIVE);
    (most >= least).then(|| found(report, cause, most))
}

/// Seconds for which functions of stages had the interpreter's lock: on a core, without what they waited for it.
fn held(report: &Report) -> f64 {
    let interpreted = || report.stages.iter().filter(|stage| stage.interpreted);
    let sum = |of: fn(&StageReport) -> f64| interpreted().map(of).sum::<f64>();
    let (own, cpu) = (sum(|stage| stage.self_s) - report.locked_s, sum(|stage| stage.cpu_s));
    own.max(0.0) * cpu / (cpu + sum(|stage| stage.blocked_s)).max(1e-9)
}

/// The verdict on a cause that was waited for in such a share of the wall time.
fn found(report: &Report, cause: Cause, share: f64) -> Verdict {
    let of_steady = (share * report.wall_s / (report.wall_s - report.first_wait_s)).min(0.99);
    let told = format!("{:.0} % of the consumer's time", of_steady * 100.0);
    let stage = |cause| report.why.iter().find(|why| why.cause == cause).and_then(|why| why.stage);
    let (bottleneck, stage, text, advice) = match cause {
        Cause::Memory => (
            "memory",
            None,
            format!("the budget limits the run: {told} went into waiting for memory, while somebody was free to work"),
            budget(report),
        ),
        Cause::Leases => (
            "memory",
            None,
            format!(
                "what you hold limits the run: {told} went into waiting for memory of elements that were handed over"
            ),
            Some((format!("let go of batches sooner, or copy what you keep{}", or_budget(report)), Change::LetGo)),
        ),
        Cause::Store => {
            let used = report.why.iter().find_map(|why| why.store).unwrap_or_default();
            let again = if used.retries > 0 { format!(", {} asked again", used.retries) } else { String::new() };
            let text = format!(
                "stores limit the run: {told} went into waiting for {} blocks of them ({}{again})",
                used.requests,
                bytes(used.bytes as f64)
            );
            let what = "read from what answers sooner, keep its blocks in a folder (GRISTMILL_STORE_CACHE_DIR), or have more threads wait at a time";
            ("store", stage(cause), text, Some((what.to_owned(), Change::Store)))
        }
        Cause::Death => {
            let replaced = report.workers.as_ref().map_or(0, |workers| workers.replaced);
            let text = format!("workers that die limit the run: {told} went into what {replaced} of them had at hand");
            ("workers", None, text, Some(("see why they die: the counts above say it".to_owned(), Change::Mend)))
        }
        Cause::Lock => (
            "lock",
            None,
            format!(
                "another thread of this program limits the run: {told} went into waiting for the interpreter's lock, which no stage held"
            ),
            Some((
                "have that thread let go of the lock, or evaluate functions in worker processes (mp_prefetch)"
                    .to_owned(),
                Change::Unlock,
            )),
        ),
        Cause::Transfer => (
            "device",
            None,
            format!("transfers limit the run: {told} went into handing batches to the device"),
            Some(("send more batches ahead, or fewer bytes of each".to_owned(), Change::Transfer)),
        ),
        Cause::Restore => (
            "restore",
            None,
            format!("going on from checkpoints limits the run: {told} went into the first batches behind them"),
            None,
        ),
        _ => return held_up(report, of_steady),
    };
    let expected_speedup = (1.0 / (1.0 - of_steady)).min(MOST_GAIN);
    let advice = advice.map(|(text, change)| Advice { text, change, expected_speedup });
    Verdict { bottleneck: bottleneck.to_owned(), stage, text, advice: advice.into_iter().collect() }
}

/// The budget that is twice as large as the present one.
fn budget(report: &Report) -> Option<(String, Change)> {
    let now = report.workers.as_ref().map(|workers| workers.ram_budget).filter(|bytes| *bytes > 0)?;
    let text = format!("ram_budget {} → {}, or make elements smaller", Bytes(now), Bytes(2 * now));
    Some((text, Change::Budget(2 * now)))
}

fn or_budget(report: &Report) -> String {
    budget(report)
        .map_or_else(String::new, |(text, _)| format!("; or {}", text.replace(", or make elements smaller", "")))
}

/// The verdict where single elements are what the consumer waited for most.
fn held_up(report: &Report, of_steady: f64) -> Verdict {
    let slow = report.longest_waits.iter().find(|wait| wait.cause == Cause::HeadOfLine);
    let stage = slow.and_then(|wait| wait.stage).and_then(|id| report.stages.get(id));
    let percent = of_steady * 100.0;
    let text = format!(
        "single elements limit the run: {percent:.0} % of the consumer's time went into waiting for one, when those behind it were there"
    );
    let at = stage.map_or_else(String::new, |stage| format!(" in front of {} (stage {})", stage.name, stage.id));
    let advice = Advice {
        text: format!("split what takes so long{at}, or drop it; a larger `buffer` bridges what is rare"),
        change: Change::Split(stage.map(|stage| stage.id)),
        expected_speedup: (1.0 / (1.0 - of_steady)).min(MOST_GAIN),
    };
    let bottleneck = stage.map_or("single elements", |stage| &stage.name).to_owned();
    Verdict { bottleneck, stage: stage.map(|stage| stage.id), text, advice: vec![advice] }
}

/// A part of the waits in words.
pub(super) fn part(why: &Why, stage: Option<&str>) -> String {
    let of = |what: &str| stage.map_or_else(|| what.to_owned(), |stage| format!("{what} by {stage}"));
    let what = match (why.cause, stage) {
        (Cause::Start, _) => "start-up".to_owned(),
        (Cause::Restore, _) => "the first behind a checkpoint".to_owned(),
        (Cause::Reader, Some(stage)) => format!("{stage}, on its one thread"),
        (Cause::Reader, None) => "stages on one thread".to_owned(),
        (Cause::Evaluation, Some(stage)) => format!("{stage}, being evaluated"),
        (Cause::Evaluation, None) => "elements that were being evaluated".to_owned(),
        (Cause::Queue, Some(stage)) => format!("{stage}, waiting for somebody free"),
        (Cause::Queue, None) => "elements that waited for somebody free".to_owned(),
        (Cause::Memory, _) => "no memory left of the budget".to_owned(),
        (Cause::Leases, _) => "memory of elements that you hold".to_owned(),
        (Cause::HeadOfLine, Some(stage)) => format!("single elements that all others waited for, in {stage}"),
        (Cause::HeadOfLine, None) => "single elements that all others waited for".to_owned(),
        (Cause::Store, _) => {
            let used = why.store.unwrap_or_default();
            let again = if used.retries > 0 { format!(", {} asked again", used.retries) } else { String::new() };
            format!("{} ({} blocks{again})", of("stores, read"), used.requests)
        }
        (Cause::Death, _) => "workers that died".to_owned(),
        (Cause::Lock, Some(stage)) => format!("the interpreter's lock, for {stage}"),
        (Cause::Lock, None) => "the interpreter's lock".to_owned(),
        (Cause::HandOver, Some(stage)) => format!("hand-over, behind {stage}"),
        (Cause::HandOver, None) => "hand-over".to_owned(),
        (Cause::Transfer, _) => "transfer to the device".to_owned(),
    };
    format!("{} {what}", percent(why.share).replace(' ', "\u{a0}"))
}
