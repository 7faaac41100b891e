//! A parent iterator whose elements are numbered, and where each of them can be found again.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::cx::Cx;
use crate::dataset::DatasetIterator;
use crate::error::{Error, Result};

/// Elements between two states of the parent that are kept: what a restore reads at most for nothing.
const EVERY: u64 = 16;

/// Reads a parent, and remembers a state of it now and then: taking one for every element would cost more than packing it.
pub(super) struct Tracked<I: DatasetIterator> {
    parent: I,
    /// Number of an element, and the parent's state in front of it. Never empty.
    marks: VecDeque<(u64, I::State)>,
    next: u64,
}

/// In front of an element of the parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentState<S> {
    /// A state of the parent at this element or a little before it.
    pub state: S,
    /// Elements to read from there for nothing.
    pub skip: u64,
    /// How many elements the parent had given in front of this one.
    pub number: u64,
}

impl<I: DatasetIterator> Tracked<I> {
    pub(super) fn new(parent: I) -> Self {
        let marks = VecDeque::from([(0, parent.state())]);
        Self { parent, marks, next: 0 }
    }

    /// The number of the next element.
    pub(super) fn number(&self) -> u64 {
        self.next
    }

    pub(super) fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        if self.next.is_multiple_of(EVERY) && self.marks.back().is_none_or(|(at, _)| *at < self.next) {
            self.marks.push_back((self.next, self.parent.state()));
        }
        let element = self.parent.next(cx)?;
        self.next += u64::from(element.is_some());
        Ok(element)
    }

    /// Where element `number` is; not one that was [forgotten](Self::forget).
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
