//! A ring of the last values.

use std::collections::VecDeque;

/// The last `N` of the values that were pushed. It takes memory for those that there were.
#[derive(Debug)]
pub(super) struct Ring<T, const N: usize>(VecDeque<T>);

impl<T, const N: usize> Default for Ring<T, N> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T, const N: usize> Ring<T, N> {
    /// Keeps a value, in place of the oldest where there are enough.
    pub(super) fn push(&mut self, value: T) {
        if self.0.len() == N {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    /// The values, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}
