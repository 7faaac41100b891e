//! The step ribbon: tracks of the consumer, threads, workers and memory over the time of the run.

use super::super::format::{bytes, count, percent};
use super::super::{Place, Report};
use super::columns::{Column, Columns};
use super::knobs::turned;
use super::row::{Ticks, up_to};
use super::svg;
use crate::cx::Cause;

/// A track of the ribbon.
pub(super) struct Track {
    /// Name of the track, and the text of the figure next to it.
    pub(super) name: &'static str,
    pub(super) detail: String,
    /// Shapes in a box of [`svg::WIDTH`] by [`svg::HEIGHT`].
    pub(super) shapes: String,
    /// Height in pixels.
    pub(super) height: u32,
    /// Scale left of the shapes, from the bottom.
    pub(super) scale: Ticks,
}

/// Unit of the axis of time.
pub(super) const RUN: &str = "time of the run";

/// Returns the colour class and the name of a cause.
pub(super) fn cause(cause: Cause) -> (&'static str, &'static str) {
    match cause {
        Cause::Start => ("start", "start-up"),
        Cause::Restore => ("restore", "resume from a checkpoint"),
        Cause::Reader => ("reader", "work on one thread"),
        Cause::Queue => ("queue", "no free thread"),
        Cause::Memory => ("memory-wait", "no memory left in the budget"),
        Cause::Leases => ("leases", "memory of batches that you hold"),
        Cause::Evaluation => ("evaluation", "elements being evaluated"),
        Cause::HeadOfLine => ("head", "an element that held up later ones"),
        Cause::Store => ("store", "object stores"),
        Cause::Death => ("death", "worker deaths"),
        Cause::Lock => ("lock", "the interpreter's lock"),
        Cause::HandOver => ("handover", "hand-over"),
        Cause::Transfer => ("transfer", "transfer to the device"),
    }
}

/// Returns the meaning of a cause, for a reader who sees its name for the first time.
pub(super) fn meaning(cause: Cause) -> &'static str {
    match cause {
        Cause::Start => "The first batch of the run: files are opened, tokenizers loaded, workers started.",
        Cause::Restore => "The first batch after a state was restored.",
        Cause::Reader => "Stages after `to_iter` run on a single thread, in order.",
        Cause::Queue => "Elements waited for a free thread or worker process.",
        Cause::Memory => "Workers waited for memory within the RAM budget.",
        Cause::Leases => "Workers waited for memory that delivered batches still hold.",
        Cause::Evaluation => "Threads or workers were evaluating the elements of the next batch.",
        Cause::HeadOfLine => "A slow element held up later elements that were ready.",
        Cause::Store => "An object store had not answered yet.",
        Cause::Death => "A worker process died, and another repeated its work.",
        Cause::Lock => "A thread held the lock of the Python interpreter.",
        Cause::HandOver => "The batch was ready and on its way to the consumer.",
        Cause::Transfer => "The batch was on its way to the device.",
    }
}

/// Returns all tracks, from the consumer downwards.
pub(super) fn tracks(report: &Report, columns: &Columns) -> Vec<Track> {
    let all = &columns.all;
    let mut tracks = vec![Track {
        name: "your step",
        detail: format!("waited {}", percent(report.waits.consumer_wait_share)),
        shapes: consumer(all),
        height: 64,
        scale: up_to("100 %"),
    }];
    if let Some(fill) = report.waits.buffer_fill {
        let most = report.picture.capacity.max(1) as f64;
        let ready: Vec<f64> = all.iter().map(|column| column.ready / most).collect();
        tracks.push(line(
            "batches ready",
            format!("{} full when asked", whole(fill)),
            svg::area("ready", &ready),
            up_to(count(most)),
        ));
    }
    let mean = |of: fn(&Column) -> f64| all.iter().map(of).sum::<f64>() / all.len().max(1) as f64;
    let share = |of: fn(&Column) -> f64| all.iter().map(of).collect::<Vec<_>>();
    if report.stages.iter().any(|stage| stage.place == Place::Suffix && stage.work.self_s > 0.0) {
        let busy = format!("{} busy", whole(mean(|column| column.reader)));
        tracks.push(line(
            "one thread, in order",
            busy,
            svg::area("work", &share(|column| column.reader)),
            up_to("100 %"),
        ));
    }
    if report.execution.threads > 0 {
        let (what, number) = if let Some(workers) = &report.workers {
            ("workers", format!("{} with {} threads", workers.workers.len(), report.execution.threads))
        } else {
            ("threads", report.execution.threads.to_string())
        };
        let busy = format!("{number} · {} busy", whole(mean(|column| column.threads)));
        tracks.push(line(what, busy, svg::area("work", &share(|column| column.threads)), up_to("100 %")));
    }
    tracks.extend(own_memory(all));
    tracks.extend(memory_of_workers(all));
    let workers = report.workers.iter().flat_map(|workers| &workers.decisions);
    for knob in turned(report.decisions.iter().chain(workers), all.len(), |at_s| columns.place(at_s)) {
        let marks: String = knob.changes.iter().map(|at| svg::mark("ink", *at)).collect();
        tracks.push(line(
            knob.name,
            knob.detail,
            svg::area("knob", &knob.heights) + &marks,
            up_to(knob.most.to_string()),
        ));
    }
    tracks
}

/// Returns the track of the memory of this process.
fn own_memory(all: &[Column]) -> Option<Track> {
    let most = Some(all.iter().map(|column| column.memory).fold(0.0, f64::max)).filter(|most| *most > 0.0)?;
    let memory: Vec<f64> = all.iter().map(|column| column.memory / most).collect();
    Some(line("memory", format!("{} at most", bytes(most)), svg::area("memory", &memory), up_to(bytes(most))))
}

/// Returns the track of the memory of workers: private memory, shared memory above it, and a line at their budget.
fn memory_of_workers(all: &[Column]) -> Option<Track> {
    let budget = all.iter().map(|column| column.workers.budget).max().filter(|budget| *budget > 0)?;
    let most = all.iter().map(|column| column.workers.used()).max().unwrap_or(0);
    let share = |size: u64| size as f64 / budget.max(most) as f64;
    let heaps: Vec<f64> = all.iter().map(|column| share(column.workers.heaps)).collect();
    let shared = all.iter().map(|column| (share(column.workers.heaps), share(column.workers.used())));
    let shapes = svg::area("memory", &heaps)
        + &svg::bars("shared", &shared.collect::<Vec<_>>())
        + &svg::level("ink", share(budget));
    let detail = format!("{} at most · budget {}", bytes(most as f64), bytes(budget as f64));
    Some(Track { height: 34, ..line("memory of workers", detail, shapes, up_to(bytes(budget.max(most) as f64))) })
}

fn whole(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn line(name: &'static str, detail: String, shapes: String, scale: Ticks) -> Track {
    Track { name, detail, shapes, height: 26, scale }
}

/// Returns the waits by cause, stacked on the ground colour of a consumer at work.
fn consumer(columns: &[Column]) -> String {
    let mut shapes = format!("<path class=\"busy\" d=\"M0 0h{}v{}H0z\"/>", svg::WIDTH, svg::HEIGHT);
    let mut base = vec![0.0; columns.len()];
    for kind in Cause::ALL {
        let spans = columns.iter().zip(&mut base).map(|(column, base)| {
            let from = *base;
            *base = (from + column.waits[kind as usize]).min(1.0);
            (from, *base)
        });
        shapes += &svg::bars(cause(kind).0, &spans.collect::<Vec<_>>());
    }
    shapes
}

/// A cause of waits in the legend.
pub(super) struct Entry {
    pub(super) cause: Cause,
    /// Colour class.
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    /// Share of the run.
    pub(super) share: f64,
}

/// Returns the causes in the run, the largest first.
pub(super) fn legend(report: &Report, columns: &Columns) -> Vec<Entry> {
    let all = columns.all.len().max(1) as f64;
    let share = |cause: Cause| columns.all.iter().map(|column| column.waits[cause as usize]).sum::<f64>() / all;
    let entry = |kind| {
        let (class, name) = cause(kind);
        // A consumer that makes elements in `next` waits for its own work.
        let (name, meaning) = match kind {
            Cause::Reader if report.execution.threads == 0 => (
                "making the batch itself",
                "The consumer's thread evaluates all stages. `threads` or workers run ahead of it.",
            ),
            _ => (name, meaning(kind)),
        };
        Entry { cause: kind, class, name, meaning, share: share(kind) }
    };
    let mut entries: Vec<_> = Cause::ALL.into_iter().map(entry).filter(|entry| entry.share >= 0.0005).collect();
    entries.sort_by(|a, b| b.share.total_cmp(&a.share));
    entries
}

/// Last place on the axis for a tick, which leaves room for the end time.
const LAST: f64 = 0.87;

/// Returns the ticks of the time axis: places from 0 to 1, and texts.
pub(super) fn axis(span: f64) -> Vec<(f64, String)> {
    let step = [
        0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
        600.0,
    ]
    .into_iter()
    .chain([1800.0, 3600.0, 7200.0, 21_600.0, 86_400.0, 604_800.0])
    .find(|step| span / step <= 7.5)
    .unwrap_or(span.max(1.0));
    let ticks = (0..=(span / step) as u32).map(|tick| f64::from(tick) * step);
    ticks.filter(|at| *at < LAST * span).map(|at| (at / span.max(1e-9), clock(at, step))).collect()
}

/// Formats a time after the start, with the precision of the step between two ticks.
fn clock(at: f64, step: f64) -> String {
    match step {
        _ if at == 0.0 => "0".to_owned(),
        step if step < 1.0 && at < 1.0 => format!("{:.0} ms", at * 1e3),
        step if step < 1.0 => format!("{at:.1} s"),
        step if step < 60.0 => format!("{at:.0} s"),
        step if step < 3600.0 => format!("{:.0} min", at / 60.0),
        step if step < 86_400.0 => format!("{:.0} h", at / 3600.0),
        _ => format!("{:.0} d", at / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_a_few_round_times() {
        for (span, last) in
            [(0.004, "3 ms"), (2.3, "2.0 s"), (47.0, "40 s"), (900.0, "12 min"), (7.0 * 86_400.0, "6 d")]
        {
            let ticks = axis(span);
            assert!((3..8).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks.last().is_some_and(|(at, text)| *at < LAST && text == last), "{span}: {ticks:?}");
        }
    }
}
