//! A parent iterator whose elements are numbered, and where each of them can be found again.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::cx::Cx;
use crate::dataset::DatasetIterator;
use crate::element::{Name, Ragged};
use crate::error::{Error, Result};

/// Elements between two states of the parent that are kept: what a restore reads at most for nothing.
const EVERY: u64 = 16;

/// Reads a parent, and remembers a state of it now and then: taking one for every element would cost more than packing it.
pub(super) struct Tracked<I: DatasetIterator> {
    parent: I,
    /// Number of an element, and the parent's state in front of it. Never empty.
    marks: VecDeque<(u64, I::State)>,
    next: u64,
    /// Elements that came as rows; the parent goes on when a state of it is kept, and behind the last of them.
    rows: Option<Open>,
}

/// Rows of which some are taken.
struct Open {
    ragged: Ragged,
    taken: usize,
    /// Of those, the ones that the parent was told of.
    passed: usize,
}

/// The next elements, as rows.
pub(super) struct NextRows<'a> {
    pub(super) ragged: &'a Ragged,
    /// The rows of them that come now, at least one.
    pub(super) rows: Range<usize>,
    /// The number of the first.
    pub(super) number: u64,
}

/// In front of an element of the parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentState<S> {
    /// A state of the parent at this element or a little before it.
    pub state: S,
    /// Elements to read from there for nothing.
    pub skip: u64,
    /// Number of elements that the parent had given in front of this one.
    pub number: u64,
}

impl<I: DatasetIterator> Tracked<I> {
    pub(super) fn new(parent: I) -> Self {
        let marks = VecDeque::from([(0, parent.state())]);
        Self { parent, marks, next: 0, rows: None }
    }

    /// The number of the next element.
    pub(super) fn number(&self) -> u64 {
        self.next
    }

    pub(super) fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        self.pass();
        self.rows = None;
        self.mark();
        let element = self.parent.next(cx)?;
        self.next += u64::from(element.is_some());
        Ok(element)
    }

    /// The next elements as rows of these columns, up to where the next state is kept, if they are to be had so. Those that are
    /// [taken](Self::take) are consumed.
    pub(super) fn next_rows(&mut self, names: &[Name], cx: &mut Cx) -> Option<NextRows<'_>> {
        if self.rows.as_ref().is_none_or(|open| open.taken == open.ragged.len()) {
            self.pass();
            self.rows = None;
            let ragged = self.parent.next_ragged(names, cx).filter(|ragged| !ragged.is_empty())?;
            self.rows = Some(Open { ragged, taken: 0, passed: 0 });
        }
        self.mark();
        let Open { ragged, taken, .. } = self.rows.as_ref()?;
        let until = (EVERY - self.next % EVERY) as usize;
        Some(NextRows { ragged, rows: *taken..ragged.len().min(taken.saturating_add(until)), number: self.next })
    }

    /// Consumes so many of the [rows](Self::next_rows).
    pub(super) fn take(&mut self, rows: usize) {
        if let Some(open) = &mut self.rows {
            open.taken += rows;
            self.next += rows as u64;
        }
    }

    /// Tells the parent how many rows were taken.
    fn pass(&mut self) {
        if let Some(open) = &mut self.rows {
            self.parent.pass_ragged(open.taken - std::mem::replace(&mut open.passed, open.taken));
        }
    }

    /// Keeps a state of the parent, now and then.
    #[inline]
    fn mark(&mut self) {
        if self.next.is_multiple_of(EVERY) && self.marks.back().is_none_or(|(at, _)| *at < self.next) {
            self.pass();
            self.marks.push_back((self.next, self.parent.state()));
        }
    }

    /// Finds element `number`; not one that was [forgotten](Self::forget).
    pub(super) fn position(&self, number: u64) -> ParentState<I::State> {
        let behind = self.marks.partition_point(|(at, _)| *at <= number);
        let (at, state) = &self.marks[behind.saturating_sub(1)];
        ParentState { state: state.clone(), skip: number - at, number }
    }

    /// No position in front of `number` will be asked for.
    pub(super) fn forget(&mut self, number: u64) {
        while self.marks.get(1).is_some_and(|(at, _)| *at <= number) {
            self.marks.pop_front();
        }
    }

    /// Goes back to `position`.
    pub(super) fn restore(&mut self, position: ParentState<I::State>, cx: &mut Cx) -> Result<()> {
        let ParentState { state, skip, number } = position;
        let Some(at) = number.checked_sub(skip).filter(|_| skip <= EVERY) else {
            return Err(Error::state(format!("element {number} cannot be {skip} behind a kept state")));
        };
        self.rows = None;
        self.parent.restore(state.clone(), cx)?;
        self.marks = VecDeque::from([(at, state)]);
        self.next = at;
        while self.next < number {
            if self.next(cx)?.is_none() {
                return Err(Error::state(format!("the data ends at element {}, before element {number}", self.next)));
            }
        }
        Ok(())
    }
}
