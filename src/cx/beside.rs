//! Waits around the loader, until they are recorded with the batch that comes next.

use super::waits::Shares;

/// Waits of a loop around the loader.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Sums as they were noted last.
    #[cfg(any(test, feature = "python", feature = "pjrt"))]
    noted: Shares,
    /// Waits that have come since a batch was recorded.
    pending: Shares,
}

impl Beside {
    /// Notes sums of all waits so far. A part that was more before has been corrected, and counts for nothing until it is more again.
    #[cfg(any(test, feature = "python", feature = "pjrt"))]
    pub(super) fn note(&mut self, so_far: Shares) {
        self.pending.add(so_far.since(self.noted));
        self.noted = self.noted.larger(so_far);
    }

    /// Takes out what is to be recorded.
    pub(super) fn take(&mut self) -> Shares {
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cx::Cause;

    #[test]
    fn nothing_is_recorded_twice() {
        let mut beside = Beside::default();
        let ms = |lock: u64, transfer: u64| {
            let mut shares = Shares::of(Cause::Lock, Duration::from_millis(lock));
            shares.count(Cause::Transfer, Duration::from_millis(transfer));
            shares
        };
        beside.note(ms(5, 0));
        beside.note(ms(5, 7));
        assert_eq!(beside.take(), ms(5, 7));
        beside.note(ms(4, 9));
        assert_eq!(beside.take(), ms(0, 2));
        beside.note(ms(6, 9));
        assert_eq!((beside.take(), beside.take()), (ms(1, 0), Shares::default()));
    }
}
