//! The order of a mix whose weights change.

use super::mix::{MixOrder, Phase};
use super::schedule::{Row, Schedule};
use crate::error::{Error, Result};

/// The order of a mix with a [`Schedule`]: between two changes of the weights it is a [`MixOrder`].
///
/// Fractions of elements that components are due carry over a change, so changes do not favour the first components. With
/// constant weights, a component differs from its share by at most as many elements as there are components. Each change of
/// the weights can add one element. Components with weight 0 have no elements. Elements of a component keep their order,
/// without a gap.
/// ```
/// use gristmill::rng::{PiecewiseOrder, Schedule};
/// let order = PiecewiseOrder::new(&Schedule::new([1.0, 0.0]).then(2, [1.0, 1.0]), 2)?;
/// let places: Vec<(usize, u64)> = (0..6).map(|k| order.at(k)).collect();
/// assert_eq!(places, [(0, 0), (0, 1), (0, 2), (1, 0), (0, 3), (1, 1)]);
/// # Ok::<_, gristmill::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PiecewiseOrder {
    segments: Box<[Segment]>,
}

/// A range of positions with constant weights.
#[derive(Clone, Debug)]
struct Segment {
    from: u64,
    order: MixOrder,
    /// Number of elements of each component before the segment.
    taken: Box<[u64]>,
}

impl PiecewiseOrder {
    /// Makes the order of a mix of `components`.
    ///
    /// # Errors
    /// Errors of [`Schedule::check`].
    pub fn new(schedule: &Schedule, components: usize) -> Result<Self> {
        let rows = schedule.rows(components)?;
        let mut taken: Box<[u64]> = vec![0; components].into();
        let mut phases = vec![Phase::ZERO; components];
        let mut segments: Vec<Segment> = Vec::with_capacity(rows.len());
        for Row { from, weights } in rows {
            if let Some(Segment { from: before, order, .. }) = segments.last() {
                let len = from - before;
                taken.iter_mut().zip(order.counts(len)).for_each(|(taken, count)| *taken += count);
                order.cursor(len).store(&mut phases);
            }
            let order = MixOrder::of_present(&weights, true)?.after(&phases);
            segments.push(Segment { from, order, taken: taken.clone() });
        }
        Ok(Self { segments: segments.into() })
    }

    /// Returns the component of the element at `position`, and the index of the element in the component.
    ///
    /// # Cost
    /// `O(log changes)`, and a division for each component up to the result.
    pub fn at(&self, position: u64) -> (usize, u64) {
        // The first segment begins at 0.
        let next = self.segments.partition_point(|segment| segment.from <= position);
        let segment = &self.segments[next.saturating_sub(1)];
        let (component, index) = segment.order.at(position - segment.from);
        (component, segment.taken[component] + index)
    }

    /// Returns the position of element number `index` of `component`: the inverse of [`at`](Self::at). Returns `None` if
    /// the component has no such element.
    pub fn index_of(&self, component: usize, index: u64) -> Option<u64> {
        let taken = |segment: &Segment| segment.taken.get(component).copied().unwrap_or(u64::MAX);
        let next = self.segments.partition_point(|segment| taken(segment) <= index);
        let segment = &self.segments[next.checked_sub(1)?];
        segment.order.index_of(component, index - taken(segment))?.checked_add(segment.from)
    }

    /// Returns the first position whose component has too few elements, for components with `lens` elements. It is at
    /// most 2^63 - 1.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the number of lengths differs from the number of components, or
    /// if a component with a weight has no elements.
    pub fn len(&self, lens: &[u64]) -> Result<u64> {
        let components = self.segments.first().map_or(0, |segment| segment.taken.len());
        if lens.len() != components {
            return Err(Error::config(format!("mix has {} components and weights for {components}", lens.len())));
        }
        for (number, segment) in self.segments.iter().enumerate() {
            let end = self.segments.get(number + 1).map_or(u64::MAX, |next| next.from);
            let counts = segment.order.counts(end - segment.from);
            let left = lens.iter().zip(&segment.taken).map(|(len, taken)| len.saturating_sub(*taken));
            let short = counts.zip(left).enumerate().filter(|(_, (count, left))| count > left);
            let first = short.map(|(component, (_, left))| (segment.first_without(component, left), component)).min();
            match first {
                Some((_, component)) if lens[component] == 0 => return Err(MixOrder::empty(component)),
                Some((first, _)) => return Ok((segment.from + first).min(i64::MAX as u64)),
                None => {}
            }
        }
        Ok(i64::MAX as u64)
    }
}

impl Segment {
    /// Returns the place in the segment of element number `index` of a component, which has more elements there.
    fn first_without(&self, component: usize, index: u64) -> u64 {
        let (mut low, mut high) = (0, u64::MAX - self.from);
        while low < high {
            let middle = low + (high - low) / 2;
            let count = self.order.counts(middle).nth(component).unwrap_or(0);
            if count > index { high = middle } else { low = middle + 1 }
        }
        low.saturating_sub(1)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Random schedules of `components`, with absent components and transitions.
    pub(crate) fn schedule(components: usize) -> impl Strategy<Value = Schedule> {
        let weight = prop_oneof![3 => 0.05..5.0f64, 1 => Just(0.0), 1 => Just(1.0)];
        let weights = prop::collection::vec(weight, components).prop_map(|mut weights| {
            if weights.iter().all(|weight| *weight == 0.0) {
                weights[0] = 1.0;
            }
            weights
        });
        let entry = (weights.clone(), 1u64..60, prop_oneof![2 => Just(0u64), 1 => 1u64..40]);
        (weights, prop::collection::vec(entry, 0..4)).prop_map(|(first, entries)| {
            let (mut schedule, mut at) = (Schedule::new(first), 0);
            for (weights, gap, over) in entries {
                at += gap;
                schedule = schedule.then(at, weights).over(over);
                at += over;
            }
            schedule
        })
    }

    /// The order, element by element: each component passes fractions of elements on to those after it.
    fn naive(schedule: &Schedule, components: usize, count: usize) -> Vec<(usize, u64)> {
        let rows = schedule.rows(components).unwrap();
        let (mut taken, mut out) = (vec![0; components], Vec::new());
        let mut due = vec![(0u128, 1u128); components];
        for (number, row) in rows.iter().enumerate() {
            let end = rows.get(number + 1).map_or(u64::MAX, |next| next.from);
            let present: Vec<f64> = row.weights.iter().copied().filter(|weight| *weight > 0.0).collect();
            let mut proportions = MixOrder::exact(&present).unwrap().proportions().to_vec().into_iter();
            let all: Vec<u128> =
                row.weights.iter().map(|w| if *w > 0.0 { proportions.next().unwrap() } else { 0 }.into()).collect();
            let rests: Vec<u128> = (0..components).map(|component| all[component..].iter().sum()).collect();
            let open = |component: &usize| rests[*component] > 0;
            for component in (0..components).filter(open) {
                let (part, whole) = due[component];
                due[component] = (part * rests[component] / whole, rests[component]);
            }
            for _ in 0..(end - row.from).min((count - out.len()) as u64) {
                let passes = |component: &usize| {
                    let (part, rest) = &mut due[*component];
                    *part += *rest - all[*component];
                    let passes = *part >= *rest;
                    *part -= if passes { *rest } else { 0 };
                    !passes
                };
                let component = (0..components).filter(open).find(passes).unwrap();
                out.push((component, taken[component]));
                taken[component] += 1;
            }
        }
        out
    }

    proptest! {
        #[test]
        fn the_order_is_the_naive_order(
            (schedule, lens) in (1usize..5).prop_flat_map(|n| (schedule(n), prop::collection::vec(1u64..120, n))),
        ) {
            let components = lens.len();
            let order = PiecewiseOrder::new(&schedule, components).unwrap();
            let expected = naive(&schedule, components, 800);
            let places: Vec<_> = (0..800).map(|position| order.at(position)).collect();
            prop_assert_eq!(&places, &expected);
            for (position, (component, index)) in (0..).zip(places) {
                prop_assert_eq!(order.index_of(component, index), Some(position));
            }
            let len = expected.iter().position(|&(component, index)| index >= lens[component]);
            prop_assert_eq!(order.len(&lens).unwrap(), len.map_or(u64::MAX, |len| len as u64));
        }

        #[test]
        fn every_prefix_is_near_its_shares(schedule in schedule(4)) {
            let (rows, order) = (schedule.rows(4).unwrap(), PiecewiseOrder::new(&schedule, 4).unwrap());
            let mut targets = [0.0; 4];
            for position in 0..500 {
                let row = rows.iter().rev().find(|row| row.from <= position).unwrap();
                let sum: f64 = row.weights.iter().sum();
                targets.iter_mut().zip(&row.weights).for_each(|(target, weight)| *target += weight / sum);
                targets[order.at(position).0] -= 1.0;
                // A change can add an element.
                let most = 4.0 + rows.iter().take_while(|row| row.from <= position).count() as f64;
                prop_assert!(targets.iter().all(|target| target.abs() < most), "{position}: {targets:?}");
            }
        }

        #[test]
        fn an_added_entry_changes_nothing_before_it(schedule in schedule(3), at in 250u64..400) {
            let longer = schedule.clone().then(at, [1.0, 5.0, 0.0]).over(30);
            let orders = [&schedule, &longer].map(|schedule| PiecewiseOrder::new(schedule, 3).unwrap());
            for position in 0..at {
                prop_assert_eq!(orders[0].at(position), orders[1].at(position));
            }
        }
    }

    #[test]
    fn lengths_are_exact_far_away() {
        let order = PiecewiseOrder::new(&Schedule::new([1.0, 1.0]).then(10, [0.0, 1.0]), 2).unwrap();
        assert_eq!(order.len(&[5, u64::MAX]).unwrap(), i64::MAX as u64);
        assert_eq!(order.len(&[5, 1_000_000_000_000]).unwrap(), 1_000_000_000_005);
        assert_eq!(order.len(&[4, 1]).unwrap(), 3);
        assert_eq!(order.len(&[0, 1]).unwrap_err().message(), "component 0 of the mix has no elements");
        assert_eq!(order.len(&[1]).unwrap_err().message(), "mix has 1 components and weights for 2");
        assert_eq!(order.at(u64::MAX), (1, u64::MAX - 5));
        assert_eq!([order.index_of(1, u64::MAX - 5), order.index_of(0, 4)], [Some(u64::MAX), Some(8)]);
        assert_eq!([order.index_of(0, 5), order.index_of(1, u64::MAX - 4), order.index_of(2, 0)], [None; 3]);
        // A component that never has a weight may be empty.
        assert_eq!(PiecewiseOrder::new(&Schedule::new([1.0, 0.0]), 2).unwrap().len(&[7, 0]).unwrap(), 7);
    }
}
