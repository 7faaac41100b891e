//! Counts of other processes.

use serde::{Deserialize, Serialize};

use super::recorder::{Counts, HostCounts, Recorder, StageTally};
use super::records::WorkerMemory;
use crate::sync::Locked;

impl Recorder {
    /// Records the present memory use of workers.
    pub(crate) fn workers_use(&self, memory: WorkerMemory) {
        if let Some(records) = &self.records {
            records.workers_use(memory);
        }
    }

    /// Removes and returns the counts since the last call, for the recorder of another process.
    pub(crate) fn drain(&self) -> Tally {
        let mut stages = self.stages();
        let taken = stages.iter_mut().enumerate().filter(|(_, tally)| tally.counts != Counts::default());
        let stages = taken.map(|(stage, tally)| StageCounts::take(stage as u32, tally)).collect();
        let notes = std::mem::take(&mut *self.notes.locked());
        Tally { stages, notes }
    }

    /// Adds the counts of another process. `host` names its machine, or is empty for this machine. Unknown stages are ignored.
    pub(crate) fn add(&self, tally: Tally, host: &str) {
        if !host.is_empty() {
            self.add_of_host(&tally, host);
        }
        let mut stages = self.stages();
        for own in tally.stages {
            let Some(total) = stages.get_mut(own.stage as usize) else { continue };
            total.counts.add(&own.counts);
            for (ns, count) in own.latency {
                let _ = total.latency.record_n(ns, count);
            }
        }
        drop(stages);
        tally.notes.iter().for_each(|(what, count)| self.note(what, *count));
    }

    fn add_of_host(&self, tally: &Tally, host: &str) {
        let count = self.stages().len();
        let mut hosts = self.hosts.locked();
        let at = place_of(&mut hosts, host);
        hosts[at].1.resize(count, HostCounts::default());
        for own in &tally.stages {
            if let Some(total) = hosts[at].1.get_mut(own.stage as usize) {
                total.elements += own.counts.elements;
                total.self_ns += own.counts.self_ns;
            }
        }
    }

    /// Returns the number of another machine in records, or `None` for this machine.
    pub(crate) fn number_of_host(&self, host: &str) -> Option<u16> {
        if host.is_empty() { None } else { u16::try_from(place_of(&mut self.hosts.locked(), host)).ok() }
    }
}

/// Returns the index of a machine in the list. Adds the machine if it is new.
fn place_of(hosts: &mut Vec<(String, Vec<HostCounts>)>, host: &str) -> usize {
    hosts.iter().position(|(name, _)| name == host).unwrap_or_else(|| {
        hosts.push((host.to_owned(), Vec::new()));
        hosts.len() - 1
    })
}

/// Counts recorded in another process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    stages: Vec<StageCounts>,
    notes: Vec<(String, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StageCounts {
    stage: u32,
    counts: Counts,
    /// Nanoseconds and their counts.
    latency: Vec<(u64, u64)>,
}

impl StageCounts {
    fn take(stage: u32, tally: &mut StageTally) -> Self {
        let latency = tally.latency.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
        tally.latency.reset();
        Self { stage, counts: std::mem::take(&mut tally.counts), latency }
    }
}
