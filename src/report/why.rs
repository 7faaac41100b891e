//! Causes of the consumer's waits, and the longest waits.

use serde::{Deserialize, Serialize};

use super::format::{bytes, time};
use super::{Place, StageReport, WorkersReport, causes};
use crate::cx::{Account, Cause, LongWait, Shares, StageId, StoreUse};
use crate::dataset::{Stage, suspect_in};

/// A part of the consumer's waits with a single cause. All parts add up to the whole wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// The cause.
    pub cause: Cause,
    /// Id of the stage whose work caused the wait, if any. A wait for several stages is divided in proportion to their work.
    pub stage: Option<usize>,
    /// Share of the consumer's wall time.
    pub share: f64,
    /// Seconds of waiting.
    pub seconds: f64,
    /// Use of stores during the wait, if stores were the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreUse>,
}

/// Smallest share of the wall time for which a part is printed.
const LEAST: f64 = 0.0005;
/// Number of waits in a report: the longest.
pub(super) const LONGEST: usize = 16;
/// Shortest single wait that is printed, in seconds.
const LONG: f64 = 0.005;

/// Divides the consumer's waits into a part for each cause and stage, the largest first.
///
/// `account` holds the waits in the loader, `beside` the waits around the loader. The run took `wall` seconds.
pub(super) fn parts(account: &Account, beside: Shares, locks: Locks, stages: &[StageReport], wall: f64) -> Vec<Why> {
    let mut parts = Parts::default();
    let mut locked = 0.0;
    for (cause, waited) in account.shares.iter() {
        let mut seconds = waited.as_secs_f64();
        match cause {
            Cause::Lock => locked += std::mem::take(&mut seconds),
            Cause::HeadOfLine => {
                for (stage, ns) in &account.held_up {
                    let own = (*ns as f64 / 1e9).min(seconds);
                    parts.add(cause, Some(*stage as usize).filter(|id| *id < stages.len()), own);
                    seconds -= own;
                }
            }
            _ => {}
        }
        parts.divide(cause, seconds, stages);
    }
    // Waits around the loader belong to no stage.
    for (cause, waited) in beside.iter() {
        match cause {
            Cause::Lock => locked += waited.as_secs_f64(),
            _ => parts.add(cause, None, waited.as_secs_f64()),
        }
    }
    parts.lock(locked, locks, stages);
    let share = |seconds: f64| if wall > 0.0 { seconds / wall } else { 0.0 };
    let parts = parts.0.into_iter().filter(|(.., seconds)| *seconds > 0.0).map(|(cause, stage, seconds)| {
        let store = Some(account.store).filter(|_| cause == Cause::Store);
        Why { cause, stage, share: share(seconds), seconds, store }
    });
    let mut why: Vec<Why> = parts.collect();
    why.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    why
}

/// Stages that may hold the interpreter's lock of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locks {
    /// Stages on all threads of the pipeline.
    Here,
    /// Only stages outside the elementwise part, which runs in other processes with separate locks.
    Elsewhere,
}

impl Locks {
    pub(super) fn of(workers: Option<&WorkersReport>) -> Self {
        if workers.is_some() { Self::Elsewhere } else { Self::Here }
    }

    /// Returns true if functions of a stage hold the lock while the consumer waits.
    fn are_held_by(self, stage: &StageReport) -> bool {
        let is_here = stage.place == Place::Suffix || (stage.place == Place::Threads && self == Self::Here);
        stage.interpreted && is_here
    }

    /// Returns the seconds in which functions of a stage held the lock: time on a core, without their waits for the lock.
    fn held(self, stage: &StageReport) -> f64 {
        let known = (stage.work.cpu_s + stage.work.blocked_s).max(1e-9);
        if self.are_held_by(stage) {
            (stage.work.self_s - stage.work.lock_s).max(0.0) * stage.work.cpu_s / known
        } else {
            0.0
        }
    }
}

/// Seconds by cause and stage.
#[derive(Default)]
struct Parts(Vec<(Cause, Option<usize>, f64)>);

impl Parts {
    fn add(&mut self, cause: Cause, stage: Option<usize>, seconds: f64) {
        match self.0.iter_mut().find(|part| (part.0, part.1) == (cause, stage)) {
            Some((.., sum)) => *sum += seconds,
            None => self.0.push((cause, stage, seconds)),
        }
    }

    /// Divides waits for the interpreter's lock among stages in proportion to the time each held the lock. Attributes them to no stage
    /// if the stages held the lock for less time: another thread of the program held it.
    fn lock(&mut self, seconds: f64, locks: Locks, stages: &[StageReport]) {
        let all: f64 = stages.iter().map(|stage| locks.held(stage)).sum();
        if seconds > all {
            return self.add(Cause::Lock, None, seconds);
        }
        for stage in stages.iter().filter(|_| seconds > 0.0) {
            self.add(Cause::Lock, Some(stage.id), seconds * locks.held(stage) / all);
        }
    }

    /// Divides a wait among stages in proportion to their work on its cause; leaves it unattributed if no stage worked.
    fn divide(&mut self, cause: Cause, seconds: f64, stages: &[StageReport]) {
        let done = |stage: &StageReport| {
            let work = |is_its: bool| if is_its { (stage.work.self_s - stage.work.lock_s).max(0.0) } else { 0.0 };
            match cause {
                Cause::Reader => work(stage.place != Place::Threads),
                Cause::Queue | Cause::Evaluation | Cause::HeadOfLine => work(stage.place == Place::Threads),
                Cause::Store if stage.traits.reads_far => stage.work.self_s.max(1e-9),
                _ => 0.0,
            }
        };
        let all: f64 = stages.iter().map(done).sum();
        if all > 0.0 {
            let shares = stages.iter().map(|stage| (stage.id, done(stage) / all)).filter(|(_, share)| *share > 0.0);
            shares.for_each(|(id, share)| self.add(cause, Some(id), seconds * share));
        } else {
            self.add(cause, None, seconds);
        }
    }
}

/// Maximum number of elements of a wait that are searched for the largest element.
const TOGETHER: u64 = 4096;

/// Sets the records that the elements of `waits` were made from.
pub(super) fn name_records(waits: &mut [LongWait], pipeline: &dyn Stage) {
    for wait in waits {
        let border = wait.border.and_then(|border| u32::try_from(border.checked_sub(1)?).ok());
        let (Some(first), Some(count), Some(border)) = (wait.element, wait.elements, border) else { continue };
        let indices: Vec<u64> = (first..first.saturating_add(count.min(TOGETHER))).collect();
        let Some(suspect) = suspect_in(pipeline, StageId(border), &indices) else { continue };
        wait.suspect.largest = suspect.element.filter(|_| count > 1);
        wait.suspect.record_bytes = suspect.bytes;
        wait.suspect.record = Some(suspect.place);
    }
}

/// Describes the elements that a wait was for, and the record they were made from.
pub(crate) fn who(wait: &LongWait) -> Option<String> {
    let (element, elements) = (wait.element?, wait.elements?);
    let size = wait
        .suspect
        .record_bytes
        .map_or_else(String::new, |size| format!(", {}", bytes(size as f64).replace(' ', "\u{a0}")));
    let record = wait.suspect.record.as_ref().map(|record| format!("{record}{size}"));
    let record = |from: &str| record.as_ref().map_or_else(String::new, |record| format!(" ({from}{record})"));
    Some(match (elements, wait.suspect.largest) {
        (1, _) => format!("element {element}{}", record("")),
        (_, Some(largest)) => {
            let last = element + elements - 1;
            format!("elements {element} to {last}, the largest of which is {largest}{}", record(""))
        }
        (_, None) => format!("elements {element} to {}{}", element + elements - 1, record("from ")),
    })
}

/// Describes the causes, the largest first; `None` if fewer than two are large enough to be printed.
pub(super) fn in_words(why: &[Why], stages: &[StageReport]) -> Option<String> {
    let said: Vec<String> =
        why.iter().filter(|why| why.share >= LEAST).map(|why| causes::part(why, name(why, stages))).collect();
    // The line above already gives the share of a single cause.
    (said.len() > 1).then(|| said.join(" · "))
}

fn name<'a>(why: &Why, stages: &'a [StageReport]) -> Option<&'a str> {
    why.stage.and_then(|id| stages.get(id)).map(|stage| stage.name.as_str())
}

/// Describes the longest wait for a slow element while later elements were ready.
pub(super) fn longest_in_words(waits: &[LongWait], stages: &[StageReport]) -> Option<String> {
    let wait = waits.iter().find(|wait| wait.cause == Cause::HeadOfLine && wait.wait_s >= LONG)?;
    let (who, took) = (who(wait)?, wait.took_s?);
    let stage = wait.stage.and_then(|id| stages.get(id));
    let stage = stage.map_or_else(String::new, |stage| format!(" in {} (stage {})", stage.name, stage.id));
    let time = |seconds: f64| time(seconds * 1e6).replace(' ', "\u{a0}");
    Some(format!(
        "{} at {:.1}\u{a0}s for {who}, which took {}{stage}, while later elements were ready",
        time(wait.wait_s),
        wait.at_s,
        time(took)
    ))
}
