//! Consecutive measurements at a fixed setting.

use super::measurement::Measurement;

/// Maximum number of measurements that are kept.
const MOST: usize = 16;
/// Largest ratio of the best rate to the better half's rate at which the machine counts as undisturbed.
const STEADY: f64 = 1.25;

/// The last measurements at a fixed setting.
///
/// Other programs sometimes take the machine for a second, but never add speed. So the better half of the measurements
/// represents the setting.
#[derive(Clone, Debug, Default)]
pub(super) struct Seconds {
    all: Vec<Measurement>,
    pub(super) wall_s: f64,
}

impl Seconds {
    pub(super) fn add(&mut self, m: &Measurement) {
        if self.all.len() == MOST {
            self.all.remove(0);
        }
        self.all.push(*m);
        self.wall_s += m.wall_s;
    }

    /// Returns the number of measurements.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns true if the measurements represent the setting.
    ///
    /// If not, other programs had the machine for most of the time, and a judgement needs more time.
    pub(super) fn is_steady(&self) -> bool {
        let best = self.all.iter().map(Measurement::rate).fold(0.0, f64::max);
        best <= STEADY * self.better_half().rate()
    }

    /// Returns the sum of the measurements with the highest rates: half of them, rounded up.
    pub(super) fn better_half(&self) -> Measurement {
        let mut all = self.all.clone();
        all.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
        all.truncate(all.len().div_ceil(2));
        let sum = |of: fn(&Measurement) -> f64| all.iter().map(of).sum();
        Measurement {
            wall_s: sum(|m| m.wall_s),
            wait_s: sum(|m| m.wait_s),
            elements: sum(|m| m.elements),
            busy_s: sum(|m| m.busy_s),
            locked_s: sum(|m| m.locked_s),
            cpu_s: sum(|m| m.cpu_s),
            taken_s: sum(|m| m.taken_s),
            short_s: sum(|m| m.short_s),
            window_full: 2 * all.iter().filter(|m| m.window_full).count() > all.len(),
            disturbed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_take_is_not_counted() {
        let mut seconds = Seconds::default();
        for elements in [100.0, 50.0, 104.0, 50.0, 96.0] {
            seconds.add(&Measurement { wall_s: 1.0, elements, ..Measurement::default() });
        }
        assert_eq!((seconds.better_half().rate(), seconds.len(), seconds.wall_s), (100.0, 5, 5.0));
        assert!(seconds.is_steady());
        (0..4).for_each(|_| seconds.add(&Measurement { wall_s: 1.0, elements: 20.0, ..Measurement::default() }));
        assert!(!seconds.is_steady());
        (0..100).for_each(|_| seconds.add(&Measurement { wall_s: 1.0, ..Measurement::default() }));
        assert_eq!((seconds.len(), seconds.wall_s), (MOST, 109.0));
    }
}
