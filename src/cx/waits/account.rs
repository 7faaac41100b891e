//! Sums of waits: what the causes of all of them come to.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Cause, Shares, StoreUse};

/// Sums of the consumer's waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// Time by cause.
    pub(crate) shares: Shares,
    /// Of the time that single chunks [kept back](Cause::HeadOfLine) what comes behind them, nanoseconds by the stage that took longest in
    /// them, by id, where that was measured.
    pub(crate) held_up: BTreeMap<u32, u64>,
    /// Bytes and requests of stores in chunks that were waited for.
    pub(crate) store: StoreUse,
}

impl Account {
    /// The account of a wait that has one cause.
    pub(super) fn whole(cause: Cause, time: Duration) -> Self {
        Self { shares: Shares::of(cause, time), ..Self::default() }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.shares.add(other.shares);
        other.held_up.iter().for_each(|(stage, ns)| *self.held_up.entry(*stage).or_default() += ns);
        self.store.add(other.store);
    }

    /// Counts a wait for a chunk that kept back what comes behind it, and in which this stage took longest.
    pub(super) fn count_held_up(&mut self, stage: Option<u32>, time: Duration) {
        self.shares.count(Cause::HeadOfLine, time);
        if let Some(stage) = stage {
            *self.held_up.entry(stage).or_default() += time.as_nanos() as u64;
        }
    }

    /// The account of waits that were no longer than `most` together: each part is as much shorter as all of them.
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
