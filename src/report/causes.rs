//! Causes of the consumer's waits as limits of a run, with the verdict and the advice for each.

use super::format::{bytes, percent};
use super::model::MOST_GAIN;
use super::{Advice, Change, Report, StageReport, Verdict, Why, verdict};
use crate::cx::Cause;
use crate::units::Bytes;

/// A limit of a run: one or more parts of the account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// The wait for the first element.
    Start,
    /// All parts of the stage with this id; their sum is the column `wait %`.
    Stage(usize),
    /// The part of a cause that belongs to no stage.
    Other(Cause),
}

/// Returns the limits of the account with their shares, the largest first.
pub(super) fn limits(why: &[Why]) -> Vec<(Limit, f64)> {
    let mut limits: Vec<(Limit, f64)> = Vec::new();
    for part in why {
        let limit = match (part.stage, part.cause) {
            (Some(id), _) => Limit::Stage(id),
            (None, Cause::Start) => Limit::Start,
            (None, cause) => Limit::Other(cause),
        };
        match limits.iter_mut().find(|(known, _)| *known == limit) {
            Some((_, share)) => *share += part.share,
            None => limits.push((limit, part.share)),
        }
    }
    limits.sort_by(|a, b| b.1.total_cmp(&a.1));
    limits
}

/// Returns the verdict on a limit that the consumer waited for during `share` of the wall time.
pub(super) fn verdict(report: &Report, limit: Limit, share: f64) -> Verdict {
    match limit {
        Limit::Stage(id) => match report.stages.get(id) {
            Some(stage) => of_stage(report, stage, share),
            None => other(report, Cause::HandOver, share),
        },
        Limit::Other(cause) => other(report, cause, share),
        Limit::Start => other(report, Cause::Start, share),
    }
}

/// Returns the largest cause of waits for a stage. Waits for the reader, the queue and the evaluation count as a single cause.
fn largest_kind(report: &Report, stage: usize) -> Cause {
    let of = |is: fn(Cause) -> bool| -> f64 {
        report.waits.why.iter().filter(|part| part.stage == Some(stage) && is(part.cause)).map(|part| part.share).sum()
    };
    let kinds = [
        (Cause::Evaluation, of(|cause| matches!(cause, Cause::Reader | Cause::Queue | Cause::Evaluation))),
        (Cause::HeadOfLine, of(|cause| cause == Cause::HeadOfLine)),
        (Cause::Store, of(|cause| cause == Cause::Store)),
        (Cause::Lock, of(|cause| cause == Cause::Lock)),
    ];
    kinds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(Cause::Evaluation, |(cause, _)| cause)
}

/// Describes a share of the wall time spent waiting.
pub(super) fn waited(report: &Report, share: f64) -> String {
    let share = percent(share);
    match report.is_drained {
        false => format!("the consumer waited {share} of the time"),
        true => format!("{share} of the time was spent waiting"),
    }
}

fn of_stage(report: &Report, stage: &StageReport, share: f64) -> Verdict {
    let (name, id) = (&stage.name, stage.id);
    let told = format!("{} for {name} (stage {id})", waited(report, share));
    let (bottleneck, text, advice) = match largest_kind(report, id) {
        Cause::HeadOfLine => (
            name.as_str(),
            format!("single elements limit the run: {told}, mostly for one element while later ones were ready"),
            vec![Advice {
                text: format!(
                    "split or drop such slow elements before {name} (stage {id}); a larger `buffer` bridges rare delays"
                ),
                change: Change::Split(Some(id)),
                expected_speedup: gain(report, share),
            }],
        ),
        Cause::Store => {
            let used = report.waits.why.iter().find_map(|why| why.store).unwrap_or_default();
            let again = if used.retries > 0 { format!(", {} asked again", used.retries) } else { String::new() };
            let read = bytes(used.bytes as f64);
            let text =
                format!("stores limit the run: {told}, mostly for {} blocks of stores ({read}{again})", used.requests);
            ("store", text, vec![store(report, share)])
        }
        Cause::Lock => (
            name.as_str(),
            format!(
                "{name} (stage {id}) limits the run: {} for it, mostly for the interpreter's lock, which it held",
                waited(report, share)
            ),
            verdict::advise(report, stage, share),
        ),
        _ => (
            name.as_str(),
            format!("{name} (stage {id}) limits the run: {} for it", waited(report, share)),
            verdict::advise(report, stage, share),
        ),
    };
    let advice = advice.into_iter().filter(|advice| advice.expected_speedup >= verdict::WORTH).collect();
    Verdict { bottleneck: bottleneck.to_owned(), stage: Some(id), text, advice }
}

/// Returns an upper bound of the speedup if waits of `share` of the wall time disappear.
fn gain(report: &Report, share: f64) -> f64 {
    let of_steady = (share * report.wall_s / (report.wall_s - report.waits.first_wait_s)).clamp(0.0, 0.99);
    (1.0 / (1.0 - of_steady)).min(MOST_GAIN)
}

fn store(report: &Report, share: f64) -> Advice {
    Advice {
        text: "use a faster store, a disk cache (GRISTMILL_STORE_CACHE_DIR) or more threads".to_owned(),
        change: Change::Store,
        expected_speedup: gain(report, share),
    }
}

/// Returns the verdict on a cause that belongs to no stage.
fn other(report: &Report, cause: Cause, share: f64) -> Verdict {
    let told = waited(report, share);
    let (bottleneck, text, advice) = match cause {
        Cause::HandOver => (
            "hand-over",
            format!("hand-over limits the run: {told} for elements that were ready and on their way"),
            Some((
                "hand over fewer, larger batches, or leave a core free for the hand-over".to_owned(),
                Change::LargerBatches,
            )),
        ),
        Cause::Memory => {
            ("memory", format!("the budget limits the run: {told} for memory, while threads were free"), budget(report))
        }
        Cause::Leases => (
            "memory",
            format!("held batches limit the run: {told} for memory of delivered batches"),
            Some((format!("release batches sooner, or copy what you keep{}", or_budget(report)), Change::LetGo)),
        ),
        Cause::Store => {
            let Advice { text, change, .. } = store(report, share);
            ("store", format!("stores limit the run: {told} for blocks of stores"), Some((text, change)))
        }
        Cause::Death => {
            let replaced = report.workers.as_ref().map_or(0, |workers| workers.replaced);
            let text = format!("worker deaths limit the run: {told} for the tasks of {replaced} of them");
            ("workers", text, Some(("the counts above give the causes of death".to_owned(), Change::Mend)))
        }
        Cause::Lock => (
            "lock",
            format!(
                "another thread of this program limits the run: {told} for the interpreter's lock, which no stage held"
            ),
            Some((
                "release the lock in that thread, or run functions in worker processes (mp_prefetch)".to_owned(),
                Change::Unlock,
            )),
        ),
        Cause::Transfer => (
            "device",
            format!("transfers limit the run: {told} while batches were handed to the device"),
            Some(("send more batches ahead, or fewer bytes of each".to_owned(), Change::Transfer)),
        ),
        Cause::Restore => ("restore", format!("resumes limit the run: {told} for the first batch after each"), None),
        Cause::HeadOfLine => (
            "single elements",
            format!("single elements limit the run: {told} for one element while later ones were ready"),
            Some((
                "split or drop such slow elements; a larger `buffer` bridges rare delays".to_owned(),
                Change::Split(None),
            )),
        ),
        Cause::Start | Cause::Reader | Cause::Queue | Cause::Evaluation => {
            ("pipeline", format!("the pipeline limits the run: {told} for work that no stage has measured"), None)
        }
    };
    let expected_speedup = gain(report, share);
    let advice = advice.filter(|_| expected_speedup >= verdict::WORTH);
    let advice = advice.map(|(text, change)| Advice { text, change, expected_speedup });
    Verdict { bottleneck: bottleneck.to_owned(), stage: None, text, advice: advice.into_iter().collect() }
}

/// Returns advice to double the memory budget; `None` without a budget.
fn budget(report: &Report) -> Option<(String, Change)> {
    let now = report.workers.as_ref().map(|workers| workers.ram_budget).filter(|bytes| *bytes > 0)?;
    let text = format!("ram_budget {} → {}, or make elements smaller", Bytes(now), Bytes(2 * now));
    Some((text, Change::Budget(2 * now)))
}

fn or_budget(report: &Report) -> String {
    budget(report)
        .map_or_else(String::new, |(text, _)| format!("; or {}", text.replace(", or make elements smaller", "")))
}

/// Describes a part of the waits.
pub(super) fn part(why: &Why, stage: Option<&str>) -> String {
    let of = |what: &str| stage.map_or_else(|| what.to_owned(), |stage| format!("{what} by {stage}"));
    let what = match (why.cause, stage) {
        (Cause::Start, _) => "start-up".to_owned(),
        (Cause::Restore, _) => "the first after a resume".to_owned(),
        (Cause::Reader, Some(stage)) => format!("{stage}, on one thread"),
        (Cause::Reader, None) => "stages on one thread".to_owned(),
        (Cause::Evaluation, Some(stage)) => format!("{stage}, being evaluated"),
        (Cause::Evaluation, None) => "elements that were being evaluated".to_owned(),
        (Cause::Queue, Some(stage)) => format!("{stage}, waiting for a free thread"),
        (Cause::Queue, None) => "elements that waited for a free thread".to_owned(),
        (Cause::Memory, _) => "no memory left in the budget".to_owned(),
        (Cause::Leases, _) => "memory of batches that you hold".to_owned(),
        (Cause::HeadOfLine, Some(stage)) => format!("single elements that held up later ones, in {stage}"),
        (Cause::HeadOfLine, None) => "single elements that held up later ones".to_owned(),
        (Cause::Store, _) => {
            let used = why.store.unwrap_or_default();
            let again = if used.retries > 0 { format!(", {} asked again", used.retries) } else { String::new() };
            format!("{} ({} blocks{again})", of("stores, read"), used.requests)
        }
        (Cause::Death, _) => "workers that died".to_owned(),
        (Cause::Lock, Some(stage)) => format!("the interpreter's lock, held by {stage}"),
        (Cause::Lock, None) => "the interpreter's lock".to_owned(),
        (Cause::HandOver, _) => "hand-over".to_owned(),
        (Cause::Transfer, _) => "transfer to the device".to_owned(),
    };
    format!("{} {what}", percent(why.share).replace(' ', "\u{a0}"))
}
