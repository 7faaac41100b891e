//! Spans of time with a cause, in which no chunk could be assigned or the consumer could not take ready elements.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Cause;

/// Number of spans that are kept for the next wait.
const KEPT: usize = 4096;

/// Cause for which workers are idle although there is work, and the share of idle workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hold {
    pub(crate) cause: Cause,
    /// Share of idle workers, from 0 to 1.
    pub(crate) idle: f64,
}

impl Hold {
    /// Returns a hold for which all workers are idle.
    pub(crate) fn of_all(cause: Cause) -> Self {
        Self { cause, idle: 1.0 }
    }
}

/// Spans of time in order, each with one cause. The last may be open.
#[derive(Debug, Default)]
pub(super) struct Spans {
    over: VecDeque<(Instant, Instant, Hold)>,
    present: Option<(Instant, Hold)>,
}

impl Spans {
    /// Sets the present cause from `now` on. `None` ends the span.
    pub(super) fn turn(&mut self, hold: Option<Hold>, now: Instant) {
        if self.present.map(|(_, present)| present) == hold {
            return;
        }
        if let Some((from, before)) = std::mem::replace(&mut self.present, hold.map(|hold| (now, hold))) {
            self.note(before, from, now);
        }
    }

    /// Appends a span.
    pub(super) fn note(&mut self, hold: Hold, from: Instant, to: Instant) {
        if self.over.len() == KEPT {
            self.over.pop_front();
        }
        self.over.push_back((from, to, hold));
    }

    /// Drops spans that ended at or before `before`.
    pub(super) fn forget(&mut self, before: Instant) {
        while self.over.front().is_some_and(|(_, to, _)| *to <= before) {
            self.over.pop_front();
        }
    }

    /// Calls `see` with each cause between two times, and its duration. Returns the time without a cause.
    pub(super) fn between(&self, from: Instant, to: Instant, mut see: impl FnMut(Hold, Duration)) -> Duration {
        let present = self.present.map(|(begin, hold)| (begin, to, hold));
        let mut at = from;
        let mut left = Duration::ZERO;
        for (begin, end, hold) in self.over.iter().copied().chain(present) {
            let (begin, end) = (begin.clamp(at, to.max(at)), end.clamp(at, to.max(at)));
            if begin < end {
                left += begin - at;
                see(hold, end - begin);
                at = end;
            }
        }
        left + to.saturating_duration_since(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_laid_over_spans_is_split_exactly() {
        let (start, mut spans) = (Instant::now(), Spans::default());
        let at = |ms| start + Duration::from_millis(ms);
        for (cause, ms) in [
            (Some(Cause::Memory), 10),
            (Some(Cause::Memory), 15),
            (Some(Cause::Leases), 20),
            (None, 30),
            (Some(Cause::Death), 50),
        ] {
            spans.turn(cause.map(Hold::of_all), at(ms));
        }
        let split = |from, to| {
            let mut parts = Vec::new();
            let left = spans.between(at(from), at(to), |hold, time| parts.push((hold.cause, time.as_millis())));
            (parts, left.as_millis())
        };
        assert_eq!(split(0, 60), (vec![(Cause::Memory, 10), (Cause::Leases, 10), (Cause::Death, 10)], 30));
        assert_eq!(split(12, 22), (vec![(Cause::Memory, 8), (Cause::Leases, 2)], 0));
        assert_eq!(split(32, 48), (vec![], 16));
        assert_eq!(split(5, 5), (vec![], 0));
        spans.forget(at(20));
        assert_eq!(spans.over.len(), 1);
    }
}
