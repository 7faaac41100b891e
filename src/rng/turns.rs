//! The turns of components in a stream, which may end.

use std::sync::Arc;

use super::mix::{MixCursor, MixOrder, Phase};
use super::schedule::Row;
use crate::error::Result;

/// Chooses the component of each element of a stream in the order of [`PiecewiseOrder`](super::PiecewiseOrder).
///
/// If a component ends, the order begins anew with the other components.
pub(crate) struct Turns {
    rows: Arc<[Row]>,
    /// Number of rows at the start whose weights are rounded as in Grain.
    rounded: usize,
    has_ended: Box<[bool]>,
    /// Position of the last end of a component.
    origin: u64,
    /// Number of the next row.
    next_row: usize,
    /// Start of the current row, or the origin in it.
    start: u64,
    /// Place after the start at which the next row begins.
    until: u64,
    /// Fractions of elements at the start that components are due.
    phases: Box<[Phase]>,
    /// `None` if no component with a weight is left.
    cursor: Option<MixCursor>,
}

impl Turns {
    /// Starts at position 0. The first of the `rows` must begin there. The weights of the first `rounded` rows are rounded
    /// as in Grain.
    ///
    /// # Errors
    /// Errors of the weights.
    pub(crate) fn new(rows: Arc<[Row]>, rounded: usize) -> Result<Self> {
        let components = rows.first().map_or(0, |row| row.weights.len());
        let has_ended = vec![false; components].into();
        let phases = vec![Phase::ZERO; components].into();
        let mut turns =
            Self { rows, rounded, has_ended, origin: 0, next_row: 0, start: 0, until: 0, phases, cursor: None };
        turns.move_to(0)?;
        Ok(turns)
    }

    /// Moves to a position, after the last end of a component at `origin`.
    ///
    /// # Errors
    /// Errors of the weights.
    ///
    /// # Cost
    /// In proportion to the changes of weights between both.
    pub(crate) fn restore(&mut self, position: u64, origin: u64, has_ended: Box<[bool]>) -> Result<()> {
        (self.origin, self.has_ended) = (origin, has_ended);
        self.move_to(position)
    }

    /// Returns the position of the next turn.
    pub(crate) fn position(&self) -> u64 {
        self.start + self.cursor.as_ref().map_or(0, MixCursor::position)
    }

    /// Returns the position of the last end of a component.
    pub(crate) fn origin(&self) -> u64 {
        self.origin
    }

    /// Returns the component of the next element and advances. Returns `None` if no component with a weight is left.
    ///
    /// # Errors
    /// Errors of the weights.
    pub(crate) fn next(&mut self) -> Result<Option<usize>> {
        if self.cursor.as_ref().is_some_and(|cursor| cursor.position() >= self.until) {
            self.enter(self.position(), 0)?;
        }
        Ok(self.cursor.as_mut().and_then(Iterator::next).map(|(component, _)| component))
    }

    /// Gives the last turn back, because its component has ended. Its share goes to the others.
    ///
    /// # Errors
    /// Errors of the weights.
    pub(crate) fn end(&mut self, component: usize) -> Result<()> {
        self.origin = self.position().saturating_sub(1);
        self.has_ended[component] = true;
        self.move_to(self.origin)
    }

    /// Moves from the origin to a position.
    fn move_to(&mut self, position: u64) -> Result<()> {
        self.phases.fill(Phase::ZERO);
        self.cursor = None;
        self.next_row = self.rows.partition_point(|row| row.from <= self.origin).saturating_sub(1);
        let mut start = self.origin;
        while let Some(end) = self.rows.get(self.next_row + 1).map(|row| row.from).filter(|end| *end <= position) {
            self.enter(start, end - start)?;
            start = end;
        }
        self.enter(start, position - start)
    }

    /// Enters the next row, which begins at `start`, and skips `turns`.
    fn enter(&mut self, start: u64, turns: u64) -> Result<()> {
        if let Some(cursor) = &self.cursor {
            cursor.store(&mut self.phases);
        }
        let Some(row) = self.rows.get(self.next_row) else { return Ok(()) };
        let is_exact = self.next_row >= self.rounded;
        self.next_row += 1;
        self.until = self.rows.get(self.next_row).map_or(u64::MAX, |next| next.from - start);
        let weights = left(&row.weights, &self.has_ended);
        (self.start, self.cursor) = match weights.iter().any(|weight| *weight > 0.0) {
            true => (start, Some(MixOrder::of_present(&weights, is_exact)?.after(&self.phases).cursor(turns))),
            false => (start + turns, None),
        };
        Ok(())
    }
}

/// The weights of a row, 0 for components that have ended.
pub(super) fn left(weights: &[f64], has_ended: &[bool]) -> Vec<f64> {
    weights.iter().zip(has_ended).map(|(weight, has_ended)| if *has_ended { 0.0 } else { *weight }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::piecewise::tests::schedule;
    use super::super::{PiecewiseOrder, Schedule};
    use super::*;

    proptest! {
        #[test]
        fn turns_are_the_order_of_the_schedule(schedule in schedule(3), from in 0u64..300) {
            let order = PiecewiseOrder::new(&schedule, 3).unwrap();
            let rows: Arc<[Row]> = schedule.rows(3).unwrap().into();
            let mut turns = Turns::new(rows, 0).unwrap();
            for restored in [false, true] {
                if restored {
                    turns.restore(from, 0, [false; 3].into()).unwrap();
                }
                for position in if restored { from } else { 0 }..400 {
                    prop_assert_eq!(turns.position(), position);
                    prop_assert_eq!(turns.next().unwrap(), Some(order.at(position).0));
                }
            }
        }
    }

    #[test]
    fn the_share_of_an_ended_component_goes_to_the_others() {
        let rows: Arc<[Row]> = Schedule::new([2.0, 1.0, 1.0]).then(8, [0.0, 1.0, 0.0]).rows(3).unwrap().into();
        let mut turns = Turns::new(rows, 0).unwrap();
        let take = |turns: &mut Turns, count| (0..count).map(|_| turns.next().unwrap()).collect::<Vec<_>>();
        assert_eq!(take(&mut turns, 5), [0, 1, 0, 2, 0].map(Some));
        turns.end(0).unwrap();
        assert_eq!((turns.position(), turns.origin()), (4, 4));
        assert_eq!(take(&mut turns, 6), [1, 2, 1, 2, 1, 1].map(Some));
        turns.end(1).unwrap();
        assert_eq!((turns.next().unwrap(), turns.position()), (None, 9));
    }
}
