//! Counts of one thread.

use super::clock::Spent;
use super::recorder::{Counts, StageTally};

/// Counts of one stage on one thread since it last handed them over.
#[derive(Debug, Default)]
pub(super) struct Local {
    pub(super) counts: Counts,
    pub(super) sampled: [Sampled; UNITS],
    pub(super) times: Vec<(u64, u64)>,
    pub(super) rare: Rare,
}

/// Of the sampled elements, or chunks: their time and bytes, each times what it stands for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    pub(super) ns: f64,
    pub(super) bytes: f64,
}

/// Units that a sample is taken of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    /// Elements that are evaluated, or looked at, one by one.
    Element,
    /// Elements that are evaluated together.
    Chunk,
}

/// Each of the units has a sample of the elements that are evaluated, and one of those that stand for others in a plan: an element that stands
/// for another costs nothing of what that would cost.
pub(super) const UNITS: usize = 4;

impl Unit {
    /// The number of its sample.
    pub(super) fn sample(self, plans: bool) -> usize {
        self as usize + if plans { UNITS / 2 } else { 0 }
    }
}

/// Pieces of work that belong to no single element.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// Units until the next one that is measured.
    pub(super) skip: u32,
    pub(super) skipped: u32,
    pub(super) last_ns: u64,
}

impl Local {
    /// Counts where the time of a piece of work went that stands for so many.
    pub(super) fn looked(&mut self, spent: &Spent, stands_for: f64) {
        let part = |ns: u64| (ns as f64 * stands_for) as u64;
        let counts = &mut self.counts;
        counts.looked_ns += part(spent.wall);
        counts.cpu_ns += part(spent.cpu);
        counts.blocked_ns += part(spent.blocked);
        counts.lock_ns += part(spent.lock);
        counts.interpreted_ns += if spent.interpreted { part(spent.wall) } else { 0 };
    }

    /// `scales` correct the samples for what is behind the last of each.
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
            // The histogram grows on demand, so no value is out of its range.
            let _ = total.latency.record_n(ns.max(1), stands_for);
        }
    }
}
