//! Counts of one thread.

use super::clock::Spent;
use super::recorder::{Counts, StageTally};

/// Counts of one stage on one thread since the last handover.
#[derive(Debug, Default)]
pub(super) struct Local {
    pub(super) counts: Counts,
    pub(super) sampled: [Sampled; UNITS],
    pub(super) times: Vec<(u64, u64)>,
    pub(super) rare: Rare,
}

/// Time and bytes of the sampled elements or chunks, each multiplied by its weight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    pub(super) ns: f64,
    pub(super) bytes: f64,
}

/// Units of sampling.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Elements that are evaluated or inspected one by one.
    Element,
    /// Elements that are evaluated together.
    Chunk,
}

/// Number of samples. Each unit has two samples: evaluated elements, and elements that represent others in a plan. They are
/// separate because a representative has none of the cost of the element that it represents.
pub(super) const UNITS: usize = 4;

impl Unit {
    /// Returns the index of the unit's sample.
    pub(super) fn sample(self, plans: bool) -> usize {
        self as usize + if plans { UNITS / 2 } else { 0 }
    }
}

/// Counters of work that belongs to no single element.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// Pieces of work before the next measured piece.
    pub(super) skip: u32,
    pub(super) skipped: u32,
    pub(super) last_ns: u64,
}

impl Local {
    /// Counts the times of an observed piece of work that represents `stands_for` pieces.
    pub(super) fn looked(&mut self, spent: &Spent, stands_for: f64) {
        let part = |ns: u64| (ns as f64 * stands_for) as u64;
        let counts = &mut self.counts;
        counts.looked_ns += part(spent.wall);
        counts.cpu_ns += part(spent.cpu);
        counts.blocked_ns += part(spent.blocked);
        counts.lock_ns += part(spent.lock);
        counts.interpreted_ns += if spent.interpreted { part(spent.wall) } else { 0 };
    }

    /// Adds the counts to `total` and resets them. `scales` correct each sample for the elements after its last measurement.
    pub(super) fn hand_over(&mut self, scales: [f64; UNITS], ahead: bool, total: &mut StageTally) {
        let mut counts = std::mem::take(&mut self.counts);
        for (sampled, scale) in std::mem::take(&mut self.sampled).iter().zip(scales) {
            counts.self_ns += (sampled.ns * scale) as u64;
            counts.bytes += (sampled.bytes * scale) as u64;
        }
        counts.self_ns += u64::from(std::mem::take(&mut self.rare.skipped)) * self.rare.last_ns;
        counts.ahead_ns = if ahead { counts.self_ns } else { 0 };
        total.counts.add(&counts);
        for (ns, stands_for) in self.times.drain(..) {
            // The histogram grows on demand, so every value is in range.
            let _ = total.latency.record_n(ns.max(1), stands_for);
        }
    }
}
