//! Counts of all threads, and counts of other processes.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::Cause;
use super::component::ComponentCounts;
use super::evaluation::ThreadWaits;
use super::outside_waits::OutsideWaits;
use super::records::{Cursor, Records, Snapshot, Taken, Update};
use super::response::Response;
use super::waits::{LongWait, Shares, StoreUse, Waits};
use crate::sync::Locked;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Counts of one stage, as plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Elements that left the stage.
    pub elements: u64,
    /// Payload bytes that left the stage, counted or estimated from the sample.
    pub bytes: u64,
    /// Nanoseconds of the stage's own work, estimated from the sample.
    pub self_ns: u64,
    /// Part of [`self_ns`](Self::self_ns) spent ahead of the consumer, in threads here or in worker processes.
    pub ahead_ns: u64,
    /// Nanoseconds of own work during which the thread's clocks were read. A sample of [`self_ns`](Self::self_ns); the next four
    /// fields are parts of it.
    pub looked_ns: u64,
    /// Part of [`looked_ns`](Self::looked_ns) on a core.
    pub cpu_ns: u64,
    /// Part of [`looked_ns`](Self::looked_ns) blocked on a disk, a network or a timer.
    pub blocked_ns: u64,
    /// Part of [`looked_ns`](Self::looked_ns) spent waiting for the interpreter's lock.
    pub lock_ns: u64,
    /// Part of [`looked_ns`](Self::looked_ns) in pieces of work that took the interpreter's lock.
    pub interpreted_ns: u64,
    /// Nanoseconds that the stage was blocked, waiting for elements from other threads.
    pub wait_ns: u64,
}

impl Counts {
    /// Returns the estimated time of the stage's own work.
    pub fn self_time(&self) -> Duration {
        Duration::from_nanos(self.self_ns)
    }

    /// Scales `part` of [`looked_ns`](Self::looked_ns) to [`self_ns`](Self::self_ns). Returns seconds, or 0 if `looked_ns` is 0.
    pub(crate) fn seconds_of(&self, part: u64) -> f64 {
        if self.looked_ns > 0 { self.self_ns as f64 / 1e9 * (part as f64 / self.looked_ns as f64) } else { 0.0 }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.elements += other.elements;
        self.bytes += other.bytes;
        self.self_ns += other.self_ns;
        self.ahead_ns += other.ahead_ns;
        self.looked_ns += other.looked_ns;
        self.cpu_ns += other.cpu_ns;
        self.blocked_ns += other.blocked_ns;
        self.lock_ns += other.lock_ns;
        self.interpreted_ns += other.interpreted_ns;
        self.wait_ns += other.wait_ns;
    }
}

/// Counts of one stage, summed over all threads.
#[derive(Clone, Debug)]
pub struct StageTally {
    /// The sums.
    pub counts: Counts,
    /// Nanoseconds of each piece of work. A measured piece also counts for the unmeasured pieces that it represents.
    pub latency: Histogram<u64>,
}

impl Default for StageTally {
    fn default() -> Self {
        // Two significant digits, growing with the range: a few kilobytes per stage.
        let mut latency = Histogram::new(2).expect("2 significant digits are valid");
        latency.auto(true);
        Self { counts: Counts::default(), latency }
    }
}

/// Totals of every stage, shared by all threads of a run.
#[derive(Debug)]
pub struct Recorder {
    stages: Mutex<Vec<StageTally>>,
    pub(super) notes: Mutex<Vec<(String, u64)>>,
    /// Counts of components, by the id of the component's last stage. Empty without a mix of streams.
    components: Mutex<Vec<ComponentCounts>>,
    pub(crate) waits: Waits,
    beside: Mutex<OutsideWaits>,
    /// Records of batches and chunks. `None` if none are kept.
    pub(super) records: Option<Records>,
    /// Other machines by name, each with its part of every stage, by stage id.
    pub(super) hosts: Mutex<Vec<(String, Vec<HostCounts>)>>,
    command: std::sync::OnceLock<Command>,
}

/// Facts about a pass that a command runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// True if the consumer is a loop that takes elements at full speed and discards them.
    pub(crate) is_drained: bool,
    /// Processor time at the start.
    pub(crate) cpu: Option<crate::cpu::Cpu>,
}

/// Part of a stage's work done on another machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCounts {
    /// Elements that left the stage on that machine.
    pub(crate) elements: u64,
    /// Nanoseconds of the stage's own work on that machine.
    pub(crate) self_ns: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        let waits = Waits::default();
        let records = Some(Records::new(waits.start));
        Self {
            stages: Mutex::default(),
            notes: Mutex::default(),
            components: Mutex::default(),
            waits,
            beside: Mutex::default(),
            records,
            hosts: Mutex::default(),
            command: std::sync::OnceLock::new(),
        }
    }
}

impl Recorder {
    /// Returns a recorder for a pipeline of `stages` stages.
    pub fn new(stages: usize) -> Arc<Self> {
        Arc::new(Self { stages: Mutex::new(vec![StageTally::default(); stages]), ..Self::default() })
    }

    /// Returns a recorder of totals and waits alone, without records of batches and chunks.
    pub(crate) fn without_records(stages: usize) -> Arc<Self> {
        Arc::new(Self { stages: Mutex::new(vec![StageTally::default(); stages]), records: None, ..Self::default() })
    }

    /// Returns the totals so far, by stage id.
    pub fn totals(&self) -> Vec<StageTally> {
        self.stages().clone()
    }

    /// Returns the time that stages waited for elements from other threads, and the time that work waited for an interpreter's
    /// lock.
    pub(crate) fn blocked(&self) -> (Duration, Duration) {
        let stages = self.stages();
        let wait_ns = stages.iter().map(|stage| stage.counts.wait_ns).sum();
        let lock_s: f64 = stages.iter().map(|stage| stage.counts.seconds_of(stage.counts.lock_ns)).sum();
        (Duration::from_nanos(wait_ns), Duration::from_secs_f64(lock_s))
    }

    /// Records that the reader took a chunk at the border with id `border`.
    pub(super) fn taken(&self, taken: &Taken, border: usize) {
        if let Some(wait) = taken.wait {
            self.waits.note(taken.awaited(wait, border));
        }
        if let Some(records) = &self.records {
            records.chunk(taken, border);
        }
    }

    /// Records a response to the consumer and splits its wait by cause.
    ///
    /// The first wait after a start or restore counts wholly as `begins`.
    pub(crate) fn responded(&self, response: &Response, begins: Option<Cause>) {
        let shares = self.waits.explain(response, begins);
        self.record(response, shares);
    }

    /// Records an element that the consumer made itself. `off` contains the waits during that work. The record represents
    /// `stands_for` calls.
    pub(crate) fn made(&self, response: &Response, begins: Option<Cause>, off: ThreadWaits, stands_for: u64) {
        let time = response.given.saturating_duration_since(response.asked);
        let (store, lock) = if begins.is_some() { Default::default() } else { off.within(time) };
        let mut shares = Shares::of(begins.unwrap_or(Cause::Reader), time - store - lock);
        shares.count(Cause::Store, store);
        shares.count(Cause::Lock, lock);
        self.record(response, shares);
        let used = if store.is_zero() { StoreUse::default() } else { StoreUse::of(&off) };
        self.waits.made(shares.times(stands_for), used);
    }

    fn record(&self, response: &Response, shares: Shares) {
        if let Some(records) = &self.records {
            records.batch(response, shares, self.beside.locked().take(), || self.work());
        }
    }

    /// Records the waits of the training loop outside the loader so far, by cause.
    pub(crate) fn waited_beside(&self, so_far: Shares) {
        self.beside.locked().note(so_far);
    }

    /// Returns the nanoseconds of own work of every stage so far, by id.
    fn work(&self) -> Vec<u64> {
        self.stages().iter().map(|stage| stage.counts.self_ns).collect()
    }

    /// Copies the records of the run.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.records.as_ref().map(|records| records.snapshot(&self.work())).unwrap_or_default()
    }

    /// Returns the records since `cursor` and advances `cursor`. At the `end` of a run, the present interval is included.
    pub(crate) fn updates(&self, cursor: &mut Cursor, end: bool) -> Update {
        let (anew, work) = (cursor.turn_to(self), end.then(|| self.work()));
        let update = self.records.as_ref().map(|records| records.updates(cursor, work.as_deref()));
        Update { anew, ..update.unwrap_or_default() }
    }

    pub(super) fn stages(&self) -> MutexGuard<'_, Vec<StageTally>> {
        self.stages.locked()
    }

    /// Returns the counted remarks so far (`"sequences split"`, `"bad records skipped"`), in order of first occurrence.
    pub fn notes(&self) -> Vec<(String, u64)> {
        self.notes.locked().clone()
    }

    /// Returns the counts of components so far, by the id of the component's last stage. Empty without a mix of streams.
    pub(crate) fn components(&self) -> Vec<ComponentCounts> {
        self.components.locked().clone()
    }

    /// Adds the counts of a thread and resets its amounts.
    pub(super) fn add_components(&self, own: &mut [ComponentCounts]) {
        let mut all = self.components.locked();
        let stages = all.len().max(own.len());
        all.resize(stages, ComponentCounts::default());
        all.iter_mut().zip(own).for_each(|(total, own)| own.hand_over(total));
    }

    /// Returns up to `most` of the longest waits so far, the longest first.
    pub(crate) fn longest_waits(&self, most: usize) -> Vec<LongWait> {
        let mut waits = self.waits.longest(most);
        let hosts = self.hosts.locked();
        for wait in &mut waits {
            let host = wait.host_number.and_then(|number| hosts.get(usize::from(number)));
            wait.host = host.map(|(name, _)| name.clone());
        }
        waits
    }

    /// Returns the parts of each stage's work that other machines have done so far.
    pub(crate) fn hosts(&self) -> Vec<(String, Vec<HostCounts>)> {
        self.hosts.locked().clone()
    }

    pub(crate) fn note(&self, what: &str, count: u64) {
        let mut notes = self.notes.locked();
        match notes.iter_mut().find(|(name, _)| name == what) {
            Some((_, total)) => *total += count,
            None => notes.push((what.to_owned(), count)),
        }
    }
}

impl Recorder {
    /// Marks the pass as the run of a command.
    pub(crate) fn set_command(&self, command: Command) {
        let _ = self.command.set(command);
    }

    /// Returns the command that runs the pass, if any.
    pub(crate) fn command(&self) -> Option<Command> {
        self.command.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::cx::History;

    #[test]
    fn a_pass_that_takes_the_place_of_another_is_told_from_its_beginning() {
        let response = |first| {
            let now = Instant::now();
            Response { first, count: 1, ready: None, asked: now, given: now, made: None }
        };
        let (before, after) = (Recorder::new(1), Recorder::new(1));
        let (mut history, mut cursor) = (History::default(), Cursor::default());
        (0..9).for_each(|first| before.responded(&response(first), None));
        history.add(before.updates(&mut cursor, false));
        assert_eq!(history.snapshot().batches.len(), 9);
        (0..4).for_each(|first| after.responded(&response(first), None));
        let update = after.updates(&mut cursor, false);
        assert!(update.anew && update.batches.len() == 4);
        history.add(update);
        assert_eq!(history.snapshot().batches.len(), 4);
        assert!(!after.updates(&mut cursor, false).anew);
    }
}
