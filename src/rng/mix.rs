//! The order in which several datasets are interleaved by weight.

use super::proportions;
use crate::error::{Error, Result};

/// The order of a mix: the component of each position, and the index of the element in the component.
///
/// A mix is even at every scale. Among the first `k` elements, the count of a component differs from its share of `k` by
/// at most the number of components. Elements of a component keep their order, from 0 on without a gap.
/// ```
/// let mix = gristmill::rng::MixOrder::from_weights(&[1.0, 2.0])?;
/// let order: Vec<(usize, u64)> = (0..6).map(|k| mix.at(k)).collect();
/// assert_eq!(order, [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (1, 3)]);
/// # Ok::<_, gristmill::Error>(())
/// ```
/// # Source
/// The selection map of Grain's `MapDataset.mix`. Equal integer proportions give equal orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixOrder {
    proportions: Box<[u64]>,
    /// Remainder of each level at position 0. Empty if all are 0.
    phases: Box<[u64]>,
    exact: bool,
}

/// Fraction of an element that later components are due, `remainder / rest`, below 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    remainder: u64,
    rest: u64,
}

impl Phase {
    pub(super) const ZERO: Self = Self { remainder: 0, rest: 1 };

    /// Returns the remainder of an equal fraction of `rest`, rounded down.
    fn of(self, rest: u64) -> u64 {
        (u128::from(self.remainder) * u128::from(rest) / u128::from(self.rest)) as u64
    }
}

impl MixOrder {
    /// Makes the order that Grain uses for these weights.
    ///
    /// Weights become integers by `trunc(weight * (100 / smallest))`, so shares are off by up to a hundredth of
    /// the smallest: 0.29 and 0.71 become 100 to 244. [`exact`](Self::exact) keeps the shares.
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no weight, if a weight is not a finite number above 0, or
    /// if weights are too far apart: proportions must sum to at most 2^63.
    pub fn from_weights(weights: &[f64]) -> Result<Self> {
        Ok(Self { proportions: proportions::like_grain(weights)?, phases: Box::default(), exact: false })
    }

    /// Makes the order whose shares equal the weights as written: 0.29 and 0.71 are 29 to 71.
    ///
    /// Each weight is converted to the simplest fraction with an equal `f64`. With a common denominator, the proportions must
    /// sum to at most 2^63. If they do not, weights are rounded instead, to a 2^-58th of the largest, or somewhat more with
    /// many components. No weight is rounded to 0.
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no weight, or if a weight is not a finite number above 0.
    pub fn exact(weights: &[f64]) -> Result<Self> {
        Ok(Self { proportions: proportions::exact(weights)?, phases: Box::default(), exact: true })
    }

    /// Makes the order of the components whose weight is above 0. The others have no elements.
    ///
    /// # Errors
    /// As [`exact`](Self::exact) and [`from_weights`](Self::from_weights), if no weight is above 0.
    pub(super) fn of_present(weights: &[f64], exact: bool) -> Result<Self> {
        let present: Vec<f64> = weights.iter().copied().filter(|weight| *weight != 0.0).collect();
        let present = if exact { Self::exact(&present) } else { Self::from_weights(&present) }?;
        if present.proportions.len() == weights.len() {
            return Ok(present);
        }
        // The last component has no others to pass elements on to, so it is present.
        let last = weights.iter().rposition(|weight| *weight != 0.0).map_or(0, |last| last + 1);
        let mut proportions = present.proportions.iter().copied();
        let spread = |weight: &f64| if *weight == 0.0 { 0 } else { proportions.next().unwrap_or(0) };
        Ok(Self { proportions: weights[..last].iter().map(spread).collect(), ..present.clone() })
    }

    /// Continues after another order, so that fractions of elements are not lost if weights change often.
    pub(super) fn after(mut self, phases: &[Phase]) -> Self {
        let phases = self.levels().zip(phases).map(|(level, phase)| phase.of(level.rest));
        self.phases = phases.collect();
        self
    }

    /// Returns the proportions, an integer for each component. Their ratios are the shares.
    pub fn proportions(&self) -> &[u64] {
        &self.proportions
    }

    /// Returns the component of the element at `position`, and the index of the element in the component.
    ///
    /// # Cost
    /// A division for each component up to the result. A [`cursor`](Self::cursor) needs no division.
    pub fn at(&self, position: u64) -> (usize, u64) {
        if self.phases.is_empty() { at(self.levels(), position) } else { at(self.continued(), position) }
    }

    /// Returns the position of element number `index` of `component`: the inverse of [`at`](Self::at). Returns `None` if
    /// there is no such component, or if the position exceeds 2^64 - 1.
    ///
    /// # Cost
    /// A division for each component up to `component`.
    pub fn index_of(&self, component: usize, index: u64) -> Option<u64> {
        let levels: Vec<Level> = self.continued().take(component + 1).collect();
        let (last, earlier) = levels.split_last().filter(|(_, earlier)| earlier.len() == component)?;
        earlier.iter().rev().try_fold(last.place_of_taken(index)?, |place, level| level.place_of_passed(place))
    }

    /// Returns the number of elements of each component among the first `position`. Trailing components without elements
    /// have no number.
    pub(super) fn counts(&self, position: u64) -> impl Iterator<Item = u64> {
        self.continued().scan(position, |before, level| {
            let (passed, _) = level.split(*before);
            Some(std::mem::replace(before, passed) - passed)
        })
    }

    /// Iterates over the mix in order from `position` on. Each step costs an addition for each component up to the result.
    pub fn cursor(&self, position: u64) -> MixCursor {
        let mut before = position;
        let levels = self.continued().map(|mut level| {
            let (passed, remainder) = level.split(before);
            (level.remainder, level.taken) = (remainder, before - passed);
            before = passed;
            level
        });
        MixCursor { levels: levels.collect(), position }
    }

    /// Returns the length of an epoch of the mix, for components with `lens` elements. No element appears twice in an epoch.
    ///
    /// The length is computed in `f64` for [`from_weights`](Self::from_weights), like Grain, and in integers for
    /// [`exact`](Self::exact). It is at most 2^63 - 1.
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the numbers of lengths and weights differ, or if a length is 0.
    pub fn len(&self, lens: &[u64]) -> Result<u64> {
        let (lengths, weights) = (lens.len(), self.proportions.len());
        if lengths != weights {
            return Err(Error::config(format!("mix has {lengths} components and {weights} weights")));
        }
        if let Some(component) = lens.iter().position(|&len| len == 0) {
            return Err(Self::empty(component));
        }
        let total: u64 = self.proportions.iter().sum();
        let pairs = lens.iter().zip(&self.proportions);
        let len = if self.exact {
            let whole = pairs.map(|(&len, &p)| u128::from(len) * u128::from(total) / u128::from(p));
            whole.min().map_or(0, |len| u64::try_from(len).unwrap_or(u64::MAX))
        } else {
            let float = pairs.map(|(&len, &p)| len as f64 / (p as f64 / total as f64));
            float.fold(f64::INFINITY, f64::min) as u64
        };
        Ok(len.min(i64::MAX as u64))
    }

    /// Returns the error of a component without elements.
    #[cold]
    pub(super) fn empty(component: usize) -> Error {
        Error::config(format!("component {component} of the mix has no elements"))
            .help("leave it out, or fill it: a mix ends with its shortest component")
    }

    /// Returns the levels, each with a remainder of 0.
    #[inline]
    fn levels(&self) -> impl Iterator<Item = Level> {
        let mut rest: u64 = self.proportions.iter().sum();
        self.proportions.iter().map(move |&proportion| {
            let level = Level { others: rest - proportion, rest, remainder: 0, taken: 0 };
            rest = level.others;
            level
        })
    }

    /// Returns the levels with their remainders at position 0.
    fn continued(&self) -> impl Iterator<Item = Level> {
        let phases = self.phases.iter().copied().chain(std::iter::repeat(0));
        self.levels().zip(phases).map(|(level, remainder)| Level { remainder, ..level })
    }
}

/// Returns the component of the element at `position`, and the index of the element in the component.
#[inline]
fn at(levels: impl Iterator<Item = Level>, position: u64) -> (usize, u64) {
    let mut before = position;
    for (component, level) in levels.enumerate() {
        // `passed` of the first `before` elements at this level belong to later components.
        let (passed, remainder) = level.split(before);
        if remainder + level.others < level.rest {
            return (component, before - passed);
        }
        before = passed;
    }
    unreachable!("the last component has no others to pass an element on to")
}

/// A component against all later components.
#[derive(Clone, Debug)]
struct Level {
    /// Sum of the proportions of later components.
    others: u64,
    /// Sum of the proportions of this and later components; at most 2^63.
    rest: u64,
    /// The value `elements that reached this level * others`, modulo `rest`, plus the remainder at the start.
    remainder: u64,
    /// Number of elements taken from this component.
    taken: u64,
}

impl Level {
    /// Returns `before * others` plus the remainder at the start, divided by `rest`, and the remainder.
    #[inline]
    fn split(&self, before: u64) -> (u64, u64) {
        let product = before.checked_mul(self.others).and_then(|product| product.checked_add(self.remainder));
        if let Some(product) = product {
            return (product / self.rest, product % self.rest);
        }
        let product = u128::from(before) * u128::from(self.others) + u128::from(self.remainder);
        let rest = u128::from(self.rest);
        ((product / rest) as u64, (product % rest) as u64)
    }

    /// Returns the place, among the elements that reach this level, of element number `index` of this component.
    fn place_of_taken(&self, index: u64) -> Option<u64> {
        let product = u128::from(index) * u128::from(self.rest) + u128::from(self.remainder);
        u64::try_from(product.checked_div(u128::from(self.rest - self.others))?).ok()
    }

    /// Returns the place, among the elements that reach this level, of element number `index` of all later components.
    fn place_of_passed(&self, index: u64) -> Option<u64> {
        let product = (u128::from(index) + 1) * u128::from(self.rest) - u128::from(self.remainder);
        let before = product.checked_add(u128::from(self.others.checked_sub(1)?))? / u128::from(self.others);
        u64::try_from(before - 1).ok()
    }
}

/// An iterator over a mix in order, as (component, index in the component).
///
/// The state is only the position: [`MixOrder::cursor`] recreates the iterator from it.
#[derive(Clone, Debug)]
pub struct MixCursor {
    levels: Box<[Level]>,
    position: u64,
}

impl MixCursor {
    /// Returns the position of the next element.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Stores the fractions of elements that later components are due.
    pub(super) fn store(&self, phases: &mut [Phase]) {
        for (phase, level) in phases.iter_mut().zip(&self.levels) {
            *phase = Phase { remainder: level.remainder, rest: level.rest };
        }
    }
}

impl Iterator for MixCursor {
    type Item = (usize, u64);

    /// Returns the next element. Ends only after position 2^64 - 2.
    fn next(&mut self) -> Option<(usize, u64)> {
        self.position = self.position.checked_add(1)?;
        for (component, level) in self.levels.iter_mut().enumerate() {
            level.remainder += level.others;
            if level.remainder < level.rest {
                level.taken += 1;
                return Some((component, level.taken - 1));
            }
            level.remainder -= level.rest;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes Grain's formula, tracking both positions.
    fn naive(proportions: &[u64], position: u64) -> (usize, u64) {
        let mut rest: u128 = proportions.iter().map(|&p| u128::from(p)).sum();
        let (mut a, mut b) = (u128::from(position), u128::from(position) + 1);
        for (component, &p) in proportions.iter().enumerate() {
            let others = rest - u128::from(p);
            let (next_a, next_b) = (a * others / rest, b * others / rest);
            if a - next_a != b - next_b {
                return (component, (b - next_b - 1) as u64);
            }
            (rest, a, b) = (others, next_a, next_b);
        }
        panic!("no component took position {position}");
    }

    /// Proportions, the elements at the first eight positions, and the elements at three far positions.
    type Row = (&'static [u64], [(usize, u64); 8], [(usize, u64); 3]);

    // Computed by `_dataset_and_key_of_next_element` of grain 0.2.18.
    #[test]
    fn positions_are_those_of_grain() {
        let cases: [Row; 3] = [
            (
                &[100, 244],
                [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (1, 3), (0, 2), (1, 4)],
                [(1, 709302), (0, 319625473193), (0, 2681212801411272037)],
            ),
            (
                &[149, 100, 133],
                [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (2, 1), (0, 3)],
                [(1, 261780), (1, 287830269053), (1, 2414495297605962253)],
            ),
            (
                &[7, 1, 900, 33, 2],
                [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4), (2, 5)],
                [(2, 954400), (2, 1049374830334), (2, 8802794096680061745)],
            ),
        ];
        for (proportions, first, far) in cases {
            let mix = MixOrder { proportions: proportions.into(), phases: Box::default(), exact: false };
            assert_eq!(std::array::from_fn(|position| mix.at(position as u64)), first);
            assert_eq!([1_000_000, (1 << 40) + 7, i64::MAX as u64].map(|position| mix.at(position)), far);
        }
    }

    proptest! {
        #[test]
        fn at_and_cursor_are_the_formula(
            weights in prop::collection::vec(1e-3..1e3f64, 1..9), far in any::<u64>(), exact in any::<bool>(),
        ) {
            let mix = if exact { MixOrder::exact(&weights) } else { MixOrder::from_weights(&weights) }.unwrap();
            for start in [0, far >> 40, far >> 20, far >> 1] {
                let mut cursor = mix.cursor(start);
                for position in start..start + 50 {
                    let expected = naive(mix.proportions(), position);
                    prop_assert_eq!(mix.at(position), expected);
                    prop_assert_eq!(mix.index_of(expected.0, expected.1), Some(position));
                    prop_assert_eq!(cursor.position(), position);
                    prop_assert_eq!(cursor.next(), Some(expected));
                }
            }
        }

        #[test]
        fn one_epoch_uses_no_element_twice(
            parts in prop::collection::vec((1u64..200, 0.1..5.0f64), 1..6),
        ) {
            let (lens, weights): (Vec<u64>, Vec<f64>) = parts.into_iter().unzip();
            let mix = MixOrder::exact(&weights).unwrap();
            let mut seen = vec![0; lens.len()];
            for (component, index) in mix.cursor(0).take(mix.len(&lens).unwrap() as usize) {
                prop_assert_eq!(index, seen[component]);
                prop_assert!(index < lens[component]);
                seen[component] += 1;
            }
        }
    }

    #[test]
    fn an_element_past_the_last_position_has_none() {
        let mix = MixOrder::from_weights(&[1.0, 1.0]).unwrap();
        assert_eq!(mix.index_of(1, u64::MAX / 2), Some(u64::MAX));
        assert_eq!([mix.index_of(0, u64::MAX), mix.index_of(1, u64::MAX), mix.index_of(2, 0)], [None; 3]);
    }

    // Computed by `SelectionWithProportionsMap` of grain 0.2.18.
    #[test]
    fn length_is_that_of_grain() {
        let max = i64::MAX as u64;
        let cases: [(&[u64], &[f64], u64); 6] = [
            (&[133, 128, 121], &[0.839, 1.391, 1.563], 293),
            (&[3, 3, 3], &[1.0, 1.0, 1.0], 9),
            (&[1_000_000_000_000_000, 1_000_000_000_000_001], &[0.29, 0.71], 1_409_836_065_573_771),
            (&[max, 5], &[0.5, 2.5], 6),
            (&[max, max], &[1.0, 3.0], max),
            (&[5, 7, 9], &[0.1, 0.2, 0.7], 12),
        ];
        for (lens, weights, expected) in cases {
            assert_eq!(MixOrder::from_weights(weights).unwrap().len(lens).unwrap(), expected, "{lens:?} {weights:?}");
        }
        assert_eq!(MixOrder::exact(&[0.29, 0.71]).unwrap().len(&[29, 71]).unwrap(), 100);
    }

    #[test]
    fn components_without_elements_are_refused() {
        let mix = MixOrder::from_weights(&[1.0, 2.0]).unwrap();
        assert_eq!(mix.len(&[5, 0]).unwrap_err().message(), "component 1 of the mix has no elements");
        assert_eq!(mix.len(&[5]).unwrap_err().message(), "mix has 1 components and 2 weights");
    }

    #[test]
    fn a_mix_goes_on_to_the_end_of_the_positions() {
        let mix = MixOrder::from_weights(&[1.0, 3.0]).unwrap();
        assert_eq!(mix.at(u64::MAX), naive(mix.proportions(), u64::MAX));
        let mut cursor = mix.cursor(u64::MAX - 1);
        assert_eq!((cursor.next(), cursor.next()), (Some(mix.at(u64::MAX - 1)), None));
    }
}
