//! A ring of the last values.

use std::collections::VecDeque;

/// The last `N` pushed values. Memory is allocated as values are pushed.
#[derive(Debug)]
pub(super) struct Ring<T, const N: usize> {
    last: VecDeque<T>,
    pushed: u64,
}

impl<T, const N: usize> Default for Ring<T, N> {
    fn default() -> Self {
        Self { last: VecDeque::new(), pushed: 0 }
    }
}

impl<T, const N: usize> Ring<T, N> {
    /// Adds a value. Drops the oldest value if the ring is full.
    pub(super) fn push(&mut self, value: T) {
        if self.last.len() == N {
            self.last.pop_front();
        }
        self.last.push_back(value);
        self.pushed += 1;
    }

    /// Returns the values, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.last.iter()
    }

    /// Returns the kept values that were pushed since `cursor`, and the number of such values that are no longer kept. Advances
    /// `cursor`.
    pub(super) fn since(&self, cursor: &mut u64) -> (impl Iterator<Item = &T> + use<'_, T, N>, u64) {
        let gone = self.pushed - self.last.len() as u64;
        let missed = gone.saturating_sub(*cursor);
        let skip = cursor.saturating_sub(gone) as usize;
        *cursor = self.pushed;
        (self.last.iter().skip(skip), missed)
    }

    /// Removes all values.
    pub(super) fn clear(&mut self) {
        self.last.clear();
    }
}
