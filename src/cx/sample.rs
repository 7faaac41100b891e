//! Choice of the elements that are measured.

use std::sync::OnceLock;
use std::time::Instant;

use super::clock;

/// Nanoseconds that the clock itself adds to a measured time: the least of many empty measurements.
pub(super) fn clock_ns() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| {
        let empty = || Instant::now().elapsed().as_nanos() as u64;
        (0..256).map(|_| empty()).min().unwrap_or(0)
    })
}

/// One part in this many of the time goes into measuring elements.
pub(super) const SHARE: u64 = 400;
/// However cheap elements are, one in this many is measured.
const MAX_STRIDE: u64 = 1024;

/// A choice of the elements, or chunks of them, that are measured, and how many each of them stands for.
#[derive(Debug)]
pub(super) struct Sample {
    /// Whether the present one is measured.
    pub(super) on: bool,
    /// Whether it is looked at how much of that is time on a core.
    pub(super) looks: bool,
    /// Pieces of work that begin until one that is measured does.
    countdown: u32,
    /// For each of its elements, how many the one measured last stands for.
    pub(super) weight: f64,
    /// Time of the present one so far, and how often the clock was read for it.
    pub(super) measured_ns: u64,
    pub(super) measurements: u64,
    /// Elements begun since the one measured last.
    pending: u64,
    /// Elements begun, and those that the sample stands for, since the counts were handed over.
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

    /// Begins one of so many elements.
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

    /// Takes back that the present one of so many elements was begun: it is begun again.
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

    /// The distance to the next that is measured: so far that measuring costs one part in [`SHARE`] of the time that the
    /// present one took. It is dithered, so that a period in the data cannot hide from the sample or dominate it.
    fn choose_next(&mut self) {
        let (measurements, ns) = (std::mem::take(&mut self.measurements), std::mem::take(&mut self.measured_ns));
        let cost = measurements * (2 * self.clock_ns + 20);
        let stride = if cost == 0 { MAX_STRIDE } else { (cost * SHARE / ns.max(1)).clamp(1, MAX_STRIDE) } as u32;
        self.countdown = 1 + self.draw(2 * stride - 1);
    }

    /// Ends the present stretch of elements: what the sample has to be multiplied by to stand for all of them.
    pub(super) fn close(&mut self) -> f64 {
        if self.stood_for == 0 {
            // Nothing was measured, so there is nothing to scale; these elements go to the next stretch.
            return 1.0;
        }
        // Elements behind the last measured one are in the scale; the next one stands for those after it.
        self.pending = 0;
        std::mem::take(&mut self.begun) as f64 / std::mem::take(&mut self.stood_for) as f64
    }

    /// A number below `n`.
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

    /// The slower the clock, the fewer the elements that are measured: tests have one whose cost is known.
    const CLOCK_NS: u64 = 25;

    /// Elements that are measured of `count` that cost so many nanoseconds each, in one reading of the clock.
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
        // A measurement costs 70 ns, and may cost one part in 400: of 28 µs all are measured, of 280 ns one in a hundred.
        assert!((500..800).contains(&measured(&mut sample, 64_000, 280)));
        let dear = measured(&mut sample, 2200, 28_000);
        assert!(dear >= 2200 - 2047, "the next sample starts at most 2047 elements later: {dear}");
        assert_eq!(measured(&mut sample, 1000, 28_000), 1000);
        // However cheap elements are, one in about a thousand is measured.
        assert!((50..80).contains(&measured(&mut sample, 64_000, 0)));
    }

    /// What is estimated is what was there: in phases, with rare dear elements, in stretches of any length.
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

    /// A chunk stands for others by their elements: however sizes are mixed, and whatever an element costs.
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
