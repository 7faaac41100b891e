//! The order in which samples of several data sets alternate.

use std::sync::OnceLock;

/// Number of samples whose data sets are chosen together.
const SEGMENT: u64 = 1 << 14;

/// A blend of data sets: chooses the data set for each sample whose number of samples is furthest below its weight.
///
/// # Source
/// `build_blending_indices` and `build_exhaustive_blending_indices` in `helpers.cpp` of Megatron-Core 0.16.1, as
/// compiled without fused multiplication and addition.
#[derive(Debug)]
pub(super) struct Blend {
    /// Weights, which sum to 1.
    weights: Box<[f64]>,
    /// Number of samples that each data set has, if all of them are chosen.
    limits: Option<Box<[u64]>>,
    pub(super) len: u64,
    segments: Box<[OnceLock<Segment>]>,
}

#[derive(Debug)]
struct Segment {
    /// Data set and sample in it.
    chosen: Box<[(u16, u32)]>,
    /// Number of samples of each data set up to the end of the segment.
    counts: Box<[u64]>,
}

impl Blend {
    /// Creates a blend of `len` samples.
    pub(super) fn weighted(weights: &[f64], len: u64) -> Self {
        Self::new(normalised(weights), None, len)
    }

    /// Creates a blend of all samples of data sets with these numbers of samples.
    pub(super) fn exhaustive(counts: &[u64]) -> Self {
        let len = counts.iter().sum();
        Self::new(counts.iter().map(|&count| count as f64 / len as f64).collect(), Some(counts.into()), len)
    }

    fn new(weights: Box<[f64]>, limits: Option<Box<[u64]>>, len: u64) -> Self {
        Self { weights, limits, len, segments: (0..len.div_ceil(SEGMENT)).map(|_| OnceLock::new()).collect() }
    }

    /// Returns the data set of sample `index`, and the number of the sample in it.
    ///
    /// # Cost
    /// The first call after a jump chooses the data sets of all samples in between: 1 ns for each sample and data set.
    pub(super) fn find(&self, index: u64) -> Option<(usize, u64)> {
        let segment = self.segment(usize::try_from(index / SEGMENT).ok()?)?;
        let &(data_set, sample) = segment.chosen.get((index % SEGMENT) as usize)?;
        Some((data_set.into(), sample.into()))
    }

    fn segment(&self, number: usize) -> Option<&Segment> {
        let known = self.segments.get(..=number)?.iter().rposition(|segment| segment.get().is_some());
        for at in known.map_or(0, |known| known + 1)..=number {
            let before = at.checked_sub(1).and_then(|before| self.segments[before].get());
            self.segments[at].get_or_init(|| self.choose(at as u64 * SEGMENT, before));
        }
        self.segments[number].get()
    }

    /// Chooses the data sets of the samples from `start` on.
    fn choose(&self, start: u64, before: Option<&Segment>) -> Segment {
        let mut counts = before.map_or_else(|| vec![0; self.weights.len()].into(), |before| before.counts.clone());
        let choose = |number: u64| {
            let due = (number as f64).max(1.0);
            let (mut chosen, mut most) = (0, f64::MIN);
            for (at, (weight, count)) in self.weights.iter().zip(&counts).enumerate() {
                let is_spent = self.limits.as_ref().is_some_and(|limits| limits[at] <= *count);
                let error = weight * due - *count as f64;
                if error > most && !is_spent {
                    (chosen, most) = (at, error);
                }
            }
            let sample = counts[chosen];
            counts[chosen] += 1;
            (chosen as u16, sample as u32)
        };
        let chosen = (start..self.len.min(start + SEGMENT)).map(choose).collect();
        Segment { chosen, counts }
    }
}

/// Divides the weights by their sum.
pub(super) fn normalised(weights: &[f64]) -> Box<[f64]> {
    let sum = sum(weights);
    weights.iter().map(|weight| weight / sum).collect()
}

/// Sums numbers in the order of numpy's `sum`.
pub(super) fn sum(numbers: &[f64]) -> f64 {
    if numbers.len() > 128 {
        let half = numbers.len() / 2;
        let (first, second) = numbers.split_at(half - half % 8);
        return sum(first) + sum(second);
    }
    let (eights, rest) = numbers.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    eights.iter().for_each(|eight| lanes.iter_mut().zip(eight).for_each(|(lane, number)| *lane += number));
    let [a, b, c, d, e, f, g, h] = lanes;
    let total = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(total, |sum, number| sum + number)
}
