//! Packing counts for the report.

use crate::cx::Cx;
use crate::pack::stats::PackStats;

/// Number of rows between two updates of the report.
pub(super) const TELL_EVERY: u64 = 64;

/// Counts that were already added to the report.
#[derive(Debug, Default)]
pub(super) struct Notes {
    told: PackStats,
}

impl Notes {
    /// Adds the changes since the last update to the report.
    pub(super) fn tell(&mut self, now: PackStats, cx: &mut Cx) {
        let told = std::mem::replace(&mut self.told, now);
        let counts = [
            ("real tokens", now.tokens, told.tokens),
            ("padding cells", now.padding, told.padding),
            ("sequences split", now.splits, told.splits),
            ("over-long sequences dropped", now.dropped, told.dropped),
            ("tokens dropped", now.dropped_tokens, told.dropped_tokens),
            ("rows closed early", now.closed_early, told.closed_early),
        ];
        for (what, now, told) in counts {
            if now > told {
                cx.note(what, now - told);
            }
        }
    }
}
