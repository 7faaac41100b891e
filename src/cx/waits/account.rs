//! Sums of waits by cause.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Cause, Shares, StoreUse};

/// Sums of the consumer's waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Time by cause.
    pub(crate) shares: Shares,
    /// Nanoseconds of [head-of-line](Cause::HeadOfLine) waits by id of the stage that took longest in the chunk. Contains a
    /// wait only if that stage was measured.
    pub(crate) held_up: BTreeMap<u32, u64>,
    /// Bytes and requests of stores in chunks that the consumer waited for.
    pub(crate) store: StoreUse,
}

impl Account {
    /// Returns the account of a wait with a single cause.
    pub(super) fn whole(cause: Cause, time: Duration) -> Self {
        Self { shares: Shares::of(cause, time), ..Self::default() }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.shares.add(other.shares);
        other.held_up.iter().for_each(|(stage, ns)| *self.held_up.entry(*stage).or_default() += ns);
        self.store.add(other.store);
    }

    /// Counts a wait for a chunk that held up later chunks. `stage` is the slowest stage in the chunk.
    pub(super) fn count_held_up(&mut self, stage: Option<u32>, time: Duration) {
        self.shares.count(Cause::HeadOfLine, time);
        if let Some(stage) = stage {
            *self.held_up.entry(stage).or_default() += time.as_nanos() as u64;
        }
    }

    /// Scales the waits down to at most `most` in total. Each part is shortened in proportion.
    pub(crate) fn within(&self, most: Duration) -> Self {
        let all = self.shares.total();
        if all <= most {
            return self.clone();
        }
        let part = most.as_secs_f64() / all.as_secs_f64();
        let held_up = self.held_up.iter().map(|(stage, ns)| (*stage, (*ns as f64 * part) as u64)).collect();
        Self { shares: self.shares.part(part), held_up, store: self.store }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_much_shorter_as_all() {
        let mut account = Account::whole(Cause::Queue, Duration::from_secs(6));
        account.count_held_up(Some(2), Duration::from_secs(3));
        account.count_held_up(None, Duration::from_secs(1));
        let less = account.within(Duration::from_secs(5));
        let told: Vec<_> = less.shares.iter().filter(|(_, time)| !time.is_zero()).collect();
        assert_eq!(told, [(Cause::Queue, Duration::from_secs(3)), (Cause::HeadOfLine, Duration::from_secs(2))]);
        assert_eq!(less.held_up, BTreeMap::from([(2, 1_500_000_000)]));
        assert_eq!(account.within(Duration::from_secs(11)).shares, account.shares);
    }
}
