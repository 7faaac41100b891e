//! Levels of the buffer: looks at it by the places that were filled.

use serde::{Deserialize, Serialize};

/// Levels that are told apart: no place, 1, 2, 3 to 4, 5 to 8, and so on; 129 and more are one.
pub(crate) const LEVELS: usize = 10;

/// Looks at a buffer by how many of its places were filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Fill([u32; LEVELS]);

impl Fill {
    /// The level of so many places.
    pub(crate) fn level(ready: u32) -> usize {
        match ready {
            0 => 0,
            1.. => (ready.next_power_of_two().trailing_zeros() as usize + 1).min(LEVELS - 1),
        }
    }

    /// The places of a level, the fewest and the most.
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

    /// Whether nobody has looked.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The share of the looks at each level that are of it.
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
