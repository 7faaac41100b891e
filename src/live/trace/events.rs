//! Trace events, built from records.
//!
//! Tracks exist for the consumer, for the thread that reads in order, and for each thread or worker that evaluates. A
//! worker with several chunks under way at a time has additional tracks. An arrow leads from a chunk to the batch in
//! progress when the chunk was taken, and from there to the step on that batch.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cx::{Batch, Cause, Chunk, EvaluatorId, Interval, Update, WorkerMemory};
use crate::report::{Report, StageReport, who};

/// Numbers of tracks; evaluation tracks come after the others.
const CONSUMER: u32 = 1;
const IN_ORDER: u32 = 2;
const LONGEST: u32 = 3;
const EVALUATION: u32 = 10;
/// Maximum number of chunks that wait for their batch; further chunks get no arrow.
const WAITING: usize = 4096;
/// Shortest wait in the trace.
const LEAST: Duration = Duration::from_micros(1);

/// Events not yet written, and state for the next events.
#[derive(Debug, Default)]
pub(super) struct Events {
    text: String,
    /// True if an event was added before.
    has_any: bool,
    /// Thread or worker on each evaluation track, with the end of its last chunk.
    lanes: Vec<(EvaluatorId, Duration)>,
    /// Chunks taken for a batch that is not given yet, each with its arrow and its time.
    chunks: VecDeque<(u64, Duration)>,
    /// Batch whose step is under way, with the arrows that lead to it.
    step: Option<(Batch, Vec<u64>)>,
    /// End of the last batch that was made.
    made: Duration,
    /// Time in the trace at which the pass began; `latest` is the end of the last event.
    base: Duration,
    latest: Duration,
    flows: u64,
}

impl Events {
    /// Adds `update` of a pipeline with `stages`.
    pub(super) fn add(&mut self, update: Update, stages: &[StageReport]) {
        if !self.has_any {
            self.name_tracks();
        }
        if update.anew {
            // A pass that replaces another pass comes after it in the trace.
            self.end_step(None);
            (self.base, self.made) = (self.latest, Duration::ZERO);
            self.lanes.iter_mut().for_each(|(_, end)| *end = Duration::ZERO);
            self.chunks.clear();
        }
        let mut chunks = update.chunks.into_iter().peekable();
        for batch in &update.batches {
            // Chunks taken before the batch was made come first.
            let made = batch.made.map_or(batch.given, |(_, done)| done);
            while let Some(chunk) = chunks.next_if(|chunk| chunk.taken <= made) {
                self.chunk(&chunk, stages);
            }
            self.batch(batch);
        }
        chunks.for_each(|chunk| self.chunk(&chunk, stages));
        update.intervals.iter().for_each(|interval| self.interval(interval));
    }

    /// Ends the last step and adds the longest waits.
    pub(super) fn finish(&mut self, report: &Report) {
        self.end_step(None);
        let mut waits: Vec<_> = report.named_waits().iter().collect();
        waits.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        let mut name = "the longest waits".to_owned();
        for wait in waits {
            if !name.is_empty() {
                self.name_track(LONGEST, &std::mem::take(&mut name));
            }
            let told = who(wait).unwrap_or_else(|| wait.cause.name().replace('_', " "));
            let (from, time) = (Duration::from_secs_f64(wait.at_s), Duration::from_secs_f64(wait.wait_s));
            let args = serde_json::to_value(wait).unwrap_or_default();
            self.slice(LONGEST, &told, from, from + time, &args);
        }
    }

    /// Removes and returns the text of the events.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Adds the wait for a batch, its making, and the arrows to it. The previous step ends when the batch was
    /// requested.
    fn batch(&mut self, batch: &Batch) {
        self.end_step(Some(batch));
        if let Some(ready) = batch.ready {
            self.count("batches ready", batch.asked, &json!({"batches": ready}));
        }
        let waited: Duration = batch.shares.iter().map(|(_, time)| time).sum();
        if waited >= LEAST && batch.given > batch.asked {
            let most = batch.shares.iter().max_by_key(|(_, time)| *time).map_or(Cause::Reader, |(cause, _)| cause);
            let parts = batch.shares.iter().filter(|(_, time)| !time.is_zero());
            let parts: serde_json::Map<String, Value> =
                parts.map(|(cause, time)| (cause.name().to_owned(), json!(micros(time)))).collect();
            let name = format!("waits: {}", most.name().replace('_', " "));
            self.slice(CONSUMER, &name, batch.asked, batch.given, &json!({"batch": batch.first, "µs by cause": parts}));
        }
        let mut arrows = Vec::new();
        if let Some((begun, done)) = batch.made {
            // A batch may begin before the previous batch is done, but slices follow each other.
            let begun = begun.max(self.made).min(done);
            let name = match batch.count {
                1 => format!("batch {}", batch.first),
                count => format!("batches {} to {}", batch.first, batch.first + u64::from(count.max(1)) - 1),
            };
            if batch.count > 0 {
                self.slice(IN_ORDER, &name, begun, done, &json!({"first": batch.first, "count": batch.count}));
            }
            self.made = self.made.max(done);
            while let Some((flow, _)) = self.chunks.front().filter(|(_, taken)| *taken <= done).copied() {
                self.chunks.pop_front();
                if batch.count > 0 {
                    self.flow("t", flow, IN_ORDER, within(begun, done));
                    arrows.push(flow);
                }
            }
        }
        if batch.count > 0 {
            self.step = Some((*batch, arrows));
        }
    }

    /// Ends the current step when the `next` batch was requested, if there is a next batch. Waits outside the loader
    /// precede the step.
    fn end_step(&mut self, next: Option<&Batch>) {
        let Some((batch, arrows)) = self.step.take() else { return };
        let end = next.map_or(batch.given, |next| next.asked).max(batch.given);
        let mut begin = batch.given;
        for (cause, time) in next.map(|next| next.beside).unwrap_or_default().iter() {
            let time = time.min(end - begin);
            if time >= LEAST {
                let name = format!("waits: {}", cause.name().replace('_', " "));
                self.slice(CONSUMER, &name, begin, begin + time, &json!({"behind batch": batch.first}));
                begin += time;
            }
        }
        // Small batches that travel together are given at once.
        let name = if batch.count > 1 { format!("{} steps", batch.count) } else { "step".to_owned() };
        self.slice(CONSUMER, &name, begin, end, &json!({"first": batch.first, "count": batch.count}));
        arrows.into_iter().for_each(|flow| self.flow("f", flow, CONSUMER, begin));
    }

    fn chunk(&mut self, chunk: &Chunk, stages: &[StageReport]) {
        let lane = self.lane(chunk);
        // A chunk is done before it is taken; the clock of another process may differ.
        let done = chunk.done.min(chunk.taken).max(chunk.begun);
        self.lanes[lane].1 = done;
        let track = EVALUATION + lane as u32;
        let last = chunk.first + u64::from(chunk.count.max(1)) - 1;
        let slowest = chunk.slowest.map(|piece| {
            let stage = piece.stage.and_then(|stage| stages.get(stage as usize)).map(|stage| &stage.name);
            json!({"element": piece.index, "elements": piece.count, "µs": micros(piece.took), "stage": stage})
        });
        let args = json!({"border": chunk.border, "waited µs": micros(chunk.waited), "bytes": chunk.bytes, "slowest": slowest});
        self.slice(track, &format!("elements {} to {last}", chunk.first), chunk.begun, done, &args);
        // Chunks stay in the queue if no batch is given. No pass has more chunks under way.
        if self.chunks.len() < WAITING {
            self.flows += 1;
            self.flow("s", self.flows, track, within(chunk.begun, done));
            self.chunks.push_back((self.flows, chunk.taken));
        }
    }

    /// Returns the first idle track of the thread or worker that evaluated a chunk; adds a track if none is idle.
    fn lane(&mut self, chunk: &Chunk) -> usize {
        let of_same = |(who, _): &&(EvaluatorId, Duration)| *who == chunk.who;
        if let Some(lane) = self.lanes.iter().position(|lane| of_same(&lane) && lane.1 <= chunk.begun) {
            return lane;
        }
        let (lane, others) = (self.lanes.len(), self.lanes.iter().filter(of_same).count());
        self.lanes.push((chunk.who, Duration::ZERO));
        let beside = if others > 0 { format!(" ({})", others + 1) } else { String::new() };
        self.name_track(EVALUATION + lane as u32, &format!("evaluation by {}{beside}", chunk.who.number));
        lane
    }

    fn interval(&mut self, interval: &Interval) {
        let time = (interval.to.saturating_sub(interval.from)).as_secs_f64().max(1e-9);
        let waited: serde_json::Map<String, Value> = interval
            .shares
            .iter()
            .map(|(cause, waited)| (cause.name().to_owned(), json!(waited.as_secs_f64() / time)))
            .collect();
        self.count("share waited", interval.from, &Value::Object(waited));
        if interval.memory > 0 {
            self.count("memory", interval.to, &json!({"bytes": interval.memory}));
        }
        if !interval.workers.is_none() {
            let WorkerMemory { heaps, shared, budget } = interval.workers;
            let left = budget.saturating_sub(heaps + shared);
            self.count(
                "memory of workers",
                interval.to,
                &json!({"private": heaps, "shared": shared, "left of the budget": left}),
            );
        }
    }

    fn name_tracks(&mut self) {
        let process = json!({"name": format!("gristmill in process {}", std::process::id())});
        self.event(&json!({"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": process}));
        self.name_track(CONSUMER, "your step");
        self.name_track(IN_ORDER, "one thread, in order");
    }

    fn name_track(&mut self, track: u32, name: &str) {
        self.event(&json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": track, "args": {"name": name}}));
        self.event(
            &json!({"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": track, "args": {"sort_index": track}}),
        );
    }

    /// Adds an event with a duration to a track.
    fn slice(&mut self, track: u32, name: &str, from: Duration, to: Duration, args: &Value) {
        let time = to.saturating_sub(from);
        self.latest = self.latest.max(self.base + to);
        let from = self.base + from;
        let event = json!({"ph": "X", "cat": "gristmill", "name": name, "pid": 1, "tid": track, "ts": micros(from), "dur": micros(time), "args": args});
        self.event(&event);
    }

    /// Adds the values of a counter at a point in time.
    fn count(&mut self, name: &str, at: Duration, args: &Value) {
        self.latest = self.latest.max(self.base + at);
        self.event(&json!({"ph": "C", "name": name, "pid": 1, "ts": micros(self.base + at), "args": args}));
    }

    /// Adds the start, a step or the end of an arrow, attached to the slice at that time.
    fn flow(&mut self, kind: &str, id: u64, track: u32, at: Duration) {
        let event = json!({"ph": kind, "bp": "e", "cat": "gristmill", "name": "taken for", "id": id, "pid": 1, "tid": track, "ts": micros(self.base + at)});
        self.event(&event);
    }

    fn event(&mut self, event: &Value) {
        let before = if std::mem::replace(&mut self.has_any, true) { ",\n" } else { "\n" };
        let _ = write!(self.text, "{before}{event}");
    }
}

/// Returns a time within a slice, a nanosecond before its end.
fn within(from: Duration, to: Duration) -> Duration {
    to.saturating_sub(Duration::from_nanos(1)).max(from)
}

/// Returns a time in microseconds, with nanosecond resolution.
fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests;
