//! Choice of the measured elements.

use std::sync::OnceLock;
use std::time::Instant;

use super::clock;

/// Returns the nanoseconds that the clock adds to a measured time: the minimum of many empty measurements.
pub(super) fn clock_ns() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| {
        let empty = || Instant::now().elapsed().as_nanos() as u64;
        (0..256).map(|_| empty()).min().unwrap_or(0)
    })
}

/// Inverse share of the time that is spent on measuring elements.
pub(super) const SHARE: u64 = 400;
/// Maximum distance between measured elements, however cheap the elements are.
const MAX_STRIDE: u64 = 1024;

/// Choice of the measured elements or chunks, with the number of elements that each represents.
#[derive(Debug)]
pub(super) struct Sample {
    /// True if the present element or chunk is measured.
    pub(super) on: bool,
    /// True if its time on a core is also observed.
    pub(super) looks: bool,
    /// Number of elements or chunks to begin before the next measurement.
    countdown: u32,
    /// Number of elements that each element of the last measured piece represents.
    pub(super) weight: f64,
    /// Time of the present element or chunk so far, and the number of its clock readings.
    pub(super) measured_ns: u64,
    pub(super) measurements: u64,
    /// Elements begun since the last measured element.
    pending: u64,
    /// Elements begun, and elements that the sample represents, since the last handover of counts.
    begun: u64,
    stood_for: u64,
    dither: u32,
    /// Cost of reading the clock.
    clock_ns: u64,
}

impl Sample {
    pub(super) fn new() -> Self {
        Self::with_clock(clock_ns())
    }

    fn with_clock(clock_ns: u64) -> Self {
        let dither = 0x9e37_79b9;
        Self {
            on: false,
            looks: false,
            countdown: 1,
            weight: 1.0,
            measured_ns: 0,
            measurements: 0,
            pending: 0,
            begun: 0,
            stood_for: 0,
            dither,
            clock_ns,
        }
    }

    /// Starts the next element, or chunk of `elements` elements.
    #[inline]
    pub(super) fn begin(&mut self, elements: u64) {
        if self.on {
            self.choose_next();
        }
        self.begun += elements;
        self.pending += elements;
        self.countdown -= 1;
        self.on = self.countdown == 0;
        self.looks = self.on && clock::is_due();
        if self.on {
            self.weight = self.pending as f64 / elements as f64;
            self.stood_for += std::mem::take(&mut self.pending);
        }
    }

    /// Reverts the start of the present chunk of `elements` elements. The chunk is begun again.
    pub(super) fn retract(&mut self, elements: u64) {
        self.begun = self.begun.saturating_sub(elements);
        self.countdown += 1;
        if std::mem::take(&mut self.on) {
            let stood_for = (self.weight * elements as f64).round() as u64;
            self.stood_for = self.stood_for.saturating_sub(stood_for);
            self.pending += stood_for;
        }
        self.pending = self.pending.saturating_sub(elements);
    }

    /// Chooses the distance to the next measured element. Measuring then costs one part in [`SHARE`] of the time that the
    /// present element took. The distance is dithered, so that periodic data can neither escape nor dominate the sample.
    fn choose_next(&mut self) {
        let (measurements, ns) = (std::mem::take(&mut self.measurements), std::mem::take(&mut self.measured_ns));
        let cost = measurements * (2 * self.clock_ns + 20);
        let stride = if cost == 0 { MAX_STRIDE } else { (cost * SHARE / ns.max(1)).clamp(1, MAX_STRIDE) } as u32;
        self.countdown = 1 + self.draw(2 * stride - 1);
    }

    /// Ends the present stretch of elements. Returns the factor that scales the sample to all its elements.
    pub(super) fn close(&mut self) -> f64 {
        if self.stood_for == 0 {
            // Nothing was measured, so there is nothing to scale. These elements count for the next stretch.
            return 1.0;
        }
        // The scale covers the elements after the last measured one. The next measured element covers later elements.
        self.pending = 0;
        std::mem::take(&mut self.begun) as f64 / std::mem::take(&mut self.stood_for) as f64
    }

    /// Returns a pseudo-random number below `n`.
    pub(super) fn draw(&mut self, n: u32) -> u32 {
        self.dither ^= self.dither << 13;
        self.dither ^= self.dither >> 17;
        self.dither ^= self.dither << 5;
        self.dither % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clock cost in tests. A slower clock measures fewer elements, so tests fix the cost.
    const CLOCK_NS: u64 = 25;

    /// Returns the number of measured elements of `count` elements that cost `ns` nanoseconds each, with one clock reading per element.
    fn measured(sample: &mut Sample, count: u32, ns: u64) -> u32 {
        let mut measured = 0;
        for _ in 0..count {
            sample.begin(1);
            if sample.on {
                (sample.measured_ns, sample.measurements) = (ns, 1);
                measured += 1;
            }
        }
        measured
    }

    #[test]
    fn cheap_elements_are_sampled_and_dear_ones_are_not() {
        let mut sample = Sample::with_clock(CLOCK_NS);
        // A measurement costs 70 ns and is allowed one part in 400. All elements of 28 µs are measured, one in a hundred of 280 ns.
        assert!((500..800).contains(&measured(&mut sample, 64_000, 280)));
        let dear = measured(&mut sample, 2200, 28_000);
        assert!(dear >= 2200 - 2047, "the next sample starts at most 2047 elements later: {dear}");
        assert_eq!(measured(&mut sample, 1000, 28_000), 1000);
        // However cheap elements are, about one in a thousand is measured.
        assert!((50..80).contains(&measured(&mut sample, 64_000, 0)));
    }

    /// Checks that the estimate matches the true time: in phases, with rare expensive elements, in stretches of any length.
    #[test]
    fn the_sample_stands_for_all_elements() {
        let phases = |i: u64| if i < 40_000 { 1000 } else { 5000 };
        let dear_tail = |i: u64| if i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57 == 0 { 50_000 } else { 500 };
        for cost in [phases, dear_tail] {
            for stretch in [7, 100, 4000, 80_000] {
                let (mut sample, mut estimate, mut open, mut true_ns, mut measured) =
                    (Sample::with_clock(CLOCK_NS), 0.0, 0, 0, 0);
                for i in 0..80_000 {
                    sample.begin(1);
                    if sample.on {
                        open += cost(i) * sample.weight as u64;
                        (sample.measured_ns, sample.measurements) = (cost(i), 1);
                        measured += 1;
                    }
                    true_ns += cost(i);
                    if i % stretch == stretch - 1 || i == 79_999 {
                        estimate += std::mem::take(&mut open) as f64 * sample.close();
                    }
                }
                let share = estimate / true_ns as f64;
                assert!((0.75..1.25).contains(&share), "stretch {stretch}: {share}");
                assert!(measured < 20_000, "{measured}");
            }
        }
    }

    /// Checks that a chunk represents others by number of elements, for mixed sizes and any cost per element.
    #[test]
    fn a_chunk_stands_for_elements_and_not_for_chunks() {
        let size = |i: u64| 1 + (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54);
        let growing = |i: u64| 1 << i.min(10);
        for (sizes, chunks) in [(&size as &dyn Fn(u64) -> u64, 20_000), (&growing, 20_000)] {
            for stretch in [3, 100, 20_000] {
                let (mut sample, mut estimate, mut open, mut true_ns, mut measured) =
                    (Sample::with_clock(CLOCK_NS), 0.0, 0.0, 0, 0);
                for i in 0..chunks {
                    let (elements, each) = (sizes(i), if i % 1000 < 700 { 3 } else { 11 });
                    sample.begin(elements);
                    if sample.on {
                        open += (each * elements) as f64 * sample.weight;
                        (sample.measured_ns, sample.measurements) = (each * elements, 3);
                        measured += 1;
                    }
                    true_ns += each * elements;
                    if i % stretch == stretch - 1 || i == chunks - 1 {
                        estimate += std::mem::take(&mut open) * sample.close();
                    }
                }
                let share = estimate / true_ns as f64;
                assert!((0.7..1.3).contains(&share), "stretch {stretch}: {share}");
                assert!(measured < chunks / 2, "{measured}");
            }
        }
    }
}
