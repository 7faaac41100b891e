//! Why the consumer waited: its waits by cause, and the longest of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::format::{bytes, percent, time};
use super::model::MOST_GAIN;
use super::{Advice, Change, Place, Report, StageReport, Verdict};
use crate::cx::{Cause, LongWait, Recorder, StageId};
use crate::dataset::{Stage, suspect_in};

/// A part of the consumer's waits with one cause. All parts add up to what it waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// The cause.
    pub cause: Cause,
    /// The stage whose work it was, by id, where it was work of one: waits for work of several are divided by what each has done.
    pub stage: Option<usize>,
    /// Share of the consumer's wall time.
    pub share: f64,
    /// Seconds.
    pub seconds: f64,
}

/// Parts that are shorter than this share of the wall time are not worth a word.
const LEAST: f64 = 0.0005;
/// Waits of a report: the longest.
const LONGEST: usize = 16;
/// A single wait is told of where it took at least so many seconds.
const LONG: f64 = 0.005;

/// Finds the causes of what `recorder` has seen the consumer wait for, in a run of `wall` seconds whose stages did this.
pub(super) fn causes(recorder: &Recorder, stages: &[StageReport], wall: f64) -> (Vec<Why>, Vec<LongWait>) {
    let (shares, longest) = (recorder.waits().causes(), recorder.waits().longest(LONGEST));
    let mut why = Vec::new();
    for (cause, waited) in shares.iter().filter(|(_, waited)| !waited.is_zero()) {
        match cause {
            Cause::Reader => divide(&mut why, cause, waited, stages, Place::Suffix),
            Cause::Queue | Cause::Evaluation => divide(&mut why, cause, waited, stages, Place::Threads),
            _ => why.push((cause, None, waited.as_secs_f64())),
        }
    }
    why.sort_by(|a, b| b.2.total_cmp(&a.2));
    let share = |seconds: f64| if wall > 0.0 { seconds / wall } else { 0.0 };
    let why = why.into_iter().map(|(cause, stage, seconds)| Why { cause, stage, share: share(seconds), seconds });
    (why.collect(), longest)
}

/// Divides a wait among the stages that run in a place, by the work that each has done.
fn divide(
    why: &mut Vec<(Cause, Option<usize>, f64)>,
    cause: Cause,
    waited: Duration,
    stages: &[StageReport],
    place: Place,
) {
    let there = || stages.iter().filter(|stage| stage.place == place && stage.self_s > 0.0);
    let all: f64 = there().map(|stage| stage.self_s).sum();
    if all > 0.0 {
        why.extend(there().map(|stage| (cause, Some(stage.id), waited.as_secs_f64() * stage.self_s / all)));
    } else {
        why.push((cause, None, waited.as_secs_f64()));
    }
}

/// Elements that were evaluated together, at most, of which one is looked for that is larger than all others.
const TOGETHER: u64 = 4096;

/// Names the records that the elements in `waits` are made of.
pub(super) fn name_records(waits: &mut [LongWait], pipeline: &dyn Stage) {
    for wait in waits {
        let border = wait.border.and_then(|border| u32::try_from(border.checked_sub(1)?).ok());
        let (Some(first), Some(count), Some(border)) = (wait.element, wait.elements, border) else { continue };
        let indices: Vec<u64> = (first..first.saturating_add(count.min(TOGETHER))).collect();
        let Some(suspect) = suspect_in(pipeline, StageId(border), &indices) else { continue };
        wait.largest = suspect.element.filter(|_| count > 1);
        wait.record_bytes = suspect.bytes;
        wait.record = Some(suspect.place);
    }
}

/// The elements that a wait was for, and the record that they are made of.
pub(crate) fn who(wait: &LongWait) -> Option<String> {
    let (element, elements) = (wait.element?, wait.elements?);
    let size =
        wait.record_bytes.map_or_else(String::new, |size| format!(", {}", bytes(size as f64).replace(' ', "\u{a0}")));
    let record = wait.record.as_ref().map(|record| format!("{record}{size}"));
    let record = |from: &str| record.as_ref().map_or_else(String::new, |record| format!(" ({from}{record})"));
    Some(match (elements, wait.largest) {
        (1, _) => format!("element {element}{}", record("")),
        (_, Some(largest)) => {
            let last = element + elements - 1;
            format!("elements {element} to {last}, the largest of which is {largest}{}", record(""))
        }
        (_, None) => format!("elements {element} to {}{}", element + elements - 1, record("from ")),
    })
}

/// The causes in words, the largest first; nothing where there was no wait worth a word.
pub(super) fn in_words(why: &[Why], stages: &[StageReport]) -> Option<String> {
    let said: Vec<String> = why.iter().filter(|why| why.share >= LEAST).map(|why| part(why, stages)).collect();
    // Of one cause alone the line above has said how much.
    (said.len() > 1).then(|| said.join(" · "))
}

fn part(why: &Why, stages: &[StageReport]) -> String {
    let stage = why.stage.and_then(|id| stages.get(id)).map(|stage| stage.name.as_str());
    let what = match (why.cause, stage) {
        (Cause::Start, _) => "start-up".to_owned(),
        (Cause::Reader, Some(stage)) => format!("{stage}, on its one thread"),
        (Cause::Reader, None) => "stages on one thread".to_owned(),
        (Cause::Evaluation, Some(stage)) => format!("{stage}, being evaluated"),
        (Cause::Evaluation, None) => "elements that were being evaluated".to_owned(),
        (Cause::Queue, Some(stage)) => format!("{stage}, waiting for somebody free"),
        (Cause::Queue, None) => "elements that waited for somebody free".to_owned(),
        (Cause::HeadOfLine, _) => "single elements that all others waited for".to_owned(),
        (Cause::HandOver, _) => "hand-over".to_owned(),
    };
    format!("{} {what}", percent(why.share).replace(' ', "\u{a0}"))
}

/// The verdict where single elements are what the consumer waited for most.
pub(super) fn held_up(report: &Report) -> Option<Verdict> {
    let share: f64 = report.why.iter().filter(|why| why.cause == Cause::HeadOfLine).map(|why| why.share).sum();
    let of_steady = (share * report.wall_s / (report.wall_s - report.first_wait_s)).min(0.99);
    if 2.0 * of_steady < report.steady_wait_share {
        return None;
    }
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
    Some(Verdict { bottleneck, stage: stage.map(|stage| stage.id), text, advice: vec![advice] })
}

/// The longest wait in words, where something in it took longer than all that was asked for behind it.
pub(super) fn longest_in_words(waits: &[LongWait], stages: &[StageReport]) -> Option<String> {
    let wait = waits.iter().find(|wait| wait.cause == Cause::HeadOfLine && wait.wait_s >= LONG)?;
    let (who, took) = (who(wait)?, wait.took_s?);
    let stage = wait.stage.and_then(|id| stages.get(id));
    let stage = stage.map_or_else(String::new, |stage| format!(" in {} (stage {})", stage.name, stage.id));
    let time = |seconds: f64| time(seconds * 1e6).replace(' ', "\u{a0}");
    Some(format!(
        "{} at {:.1}\u{a0}s for {who}, which took {}{stage}, while what comes behind was there",
        time(wait.wait_s),
        wait.at_s,
        time(took)
    ))
}
