//! Waits outside the loader, kept until they are recorded with the next batch.

use super::waits::Shares;

/// Waits of the training loop outside the loader.
#[derive(Debug, Default)]
pub(super) struct OutsideWaits {
    /// Sums at the last note.
    noted: Shares,
    /// Waits since the last recorded batch.
    pending: Shares,
}

impl OutsideWaits {
    /// Adds the increase of each sum since the last note. A sum that was corrected downward adds nothing until it exceeds its old maximum.
    pub(super) fn note(&mut self, so_far: Shares) {
        self.pending.add(so_far.since(self.noted));
        self.noted = self.noted.larger(so_far);
    }

    /// Returns the pending waits and resets them.
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
        let mut beside = OutsideWaits::default();
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
