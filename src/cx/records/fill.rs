//! Fill levels of the buffer: counts of requests by number of filled places.

use serde::{Deserialize, Serialize};

/// Number of levels: 0 places, 1, 2, 3 to 4, 5 to 8, and so on. The last level is 129 places and more.
pub(crate) const LEVELS: usize = 10;

/// Counts of requests to a buffer, by number of filled places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Fill([u32; LEVELS]);

impl Fill {
    /// Returns the level of `ready` filled places.
    pub(crate) fn level(ready: u32) -> usize {
        match ready {
            0 => 0,
            1.. => (ready.next_power_of_two().trailing_zeros() as usize + 1).min(LEVELS - 1),
        }
    }

    /// Returns the fewest and the most places of a level.
    pub(crate) fn places(level: usize) -> (u32, u32) {
        match level {
            0 => (0, 0),
            1 => (1, 1),
            level => ((1 << (level - 2)) + 1, 1 << (level - 1)),
        }
    }

    pub(super) fn count(&mut self, ready: u32) {
        let looks = &mut self.0[Self::level(ready)];
        *looks = looks.saturating_add(1);
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(looks, more)| *looks = looks.saturating_add(more));
    }

    /// Returns true if no request was counted.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the share of requests at each level.
    pub(crate) fn shares(&self) -> [f64; LEVELS] {
        let all = self.0.iter().map(|looks| u64::from(*looks)).sum::<u64>().max(1) as f64;
        self.0.map(|looks| f64::from(looks) / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_places_has_one_level() {
        for ready in 0..1000 {
            let level = Fill::level(ready);
            let (least, most) = Fill::places(level);
            assert!(least <= ready && (ready <= most || level == LEVELS - 1), "{ready}: {level}");
        }
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9].map(Fill::level), [0, 1, 2, 3, 3, 4, 4, 5]);
        let mut fill = Fill::default();
        [0, 0, 3, 4].into_iter().for_each(|ready| fill.count(ready));
        assert_eq!(fill.shares()[..4], [0.5, 0.0, 0.0, 0.5]);
    }
}
