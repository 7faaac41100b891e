//! The longest waits of a run.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::LongWait;

/// Number of the longest waits that are kept.
const KEPT: usize = 10_000;

/// The longest waits. The shortest is dropped first.
#[derive(Debug, Default)]
pub(super) struct Longest(BinaryHeap<Reverse<ByWait>>);

/// A wait, ordered by its length.
#[derive(Debug)]
struct ByWait(LongWait);

impl Ord for ByWait {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.wait_s.total_cmp(&other.0.wait_s)
    }
}

impl PartialOrd for ByWait {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByWait {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByWait {}

impl Longest {
    pub(super) fn keep(&mut self, wait: LongWait) {
        self.0.push(Reverse(ByWait(wait)));
        if self.0.len() > KEPT {
            self.0.pop();
        }
    }

    /// Returns up to `most` waits, the longest first.
    pub(super) fn first(&self, most: usize) -> Vec<LongWait> {
        let mut waits: Vec<&ByWait> = self.0.iter().map(|Reverse(wait)| wait).collect();
        if waits.len() > most {
            // The others need no order. The consumer may be waiting for the lock meanwhile.
            waits.select_nth_unstable_by(most, |a, b| b.cmp(a));
            waits.truncate(most);
        }
        waits.sort_unstable_by(|a, b| b.cmp(a));
        waits.into_iter().map(|wait| wait.0.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cause;
    use crate::cx::waits::Caused;
    use std::time::Duration;

    #[test]
    fn the_shortest_go_where_there_are_too_many() {
        let mut longest = Longest::default();
        let wait = |number: usize| {
            let time = Duration::from_secs(((number * 7919) % 20_011) as u64);
            Caused::whole(Cause::Queue, time).into_long(0, Duration::ZERO, time)
        };
        (0..20_011).for_each(|number| longest.keep(wait(number)));
        let kept: Vec<_> = longest.first(usize::MAX).iter().map(|wait| wait.wait_s as usize).collect();
        assert_eq!(kept, (20_011 - KEPT..20_011).rev().collect::<Vec<_>>());
        let some: Vec<_> = longest.first(16).iter().map(|wait| wait.wait_s as usize).collect();
        assert_eq!(some, kept[..16]);
    }
}
