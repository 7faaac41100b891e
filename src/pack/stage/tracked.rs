//! Parent iterator with numbered elements. Kept states allow a restore at any element that was not forgotten.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cx::Cx;
use crate::dataset::DatasetIterator;
use crate::element::{Name, Ragged};
use crate::error::{Error, Result};

/// Number of elements between two kept states of the parent. A restore reads and discards at most this number.
const EVERY: u64 = 16;

/// Reader of a parent iterator. Periodically keeps a state of the parent.
///
/// Taking a state for every element would cost more than packing the element.
pub(super) struct Tracked<I: DatasetIterator> {
    parent: I,
    /// Number of an element, with the state of the parent before it. Never empty.
    marks: VecDeque<(u64, I::State)>,
    next: u64,
    /// Elements read as rows. The parent advances past taken rows before each kept state, and after the last row.
    rows: Option<Open>,
}

/// Rows that are partly taken.
struct Open {
    ragged: Arc<Ragged>,
    taken: usize,
    /// Number of rows whose cells were read into the cache.
    touched: usize,
    /// Number of taken rows that the parent has already advanced past.
    passed: usize,
}

/// Next elements of the parent, as rows.
pub(super) struct NextRows<'a> {
    pub(super) ragged: &'a Arc<Ragged>,
    /// Rows to read now, at least one.
    pub(super) rows: Range<usize>,
    /// Number of the first element in `rows`.
    pub(super) number: u64,
}

/// Position before an element of the parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentState<S> {
    /// State of the parent at this element or up to 16 elements earlier.
    pub state: S,
    /// Number of elements to read and discard after restoring `state`.
    pub skip: u64,
    /// Number of elements that the parent yielded before this element.
    pub number: u64,
}

impl<I: DatasetIterator> Tracked<I> {
    pub(super) fn new(parent: I) -> Self {
        let marks = VecDeque::from([(0, parent.state())]);
        Self { parent, marks, next: 0, rows: None }
    }

    /// Returns the number of the next element.
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

    /// Returns the next elements as rows of the columns `names`, up to the next kept state.
    ///
    /// Returns `None` if the parent cannot yield rows. Only [taken](Self::take) rows are consumed. `keeps` is true if
    /// the rows are not copied at once.
    pub(super) fn next_rows(&mut self, names: &[Name], keeps: bool, cx: &mut Cx) -> Option<NextRows<'_>> {
        if self.rows.as_ref().is_none_or(|open| open.taken == open.ragged.len()) {
            self.pass();
            self.rows = None;
            let ragged = self.parent.next_ragged(names, cx).filter(|ragged| !ragged.is_empty())?;
            self.rows = Some(Open { ragged: Arc::new(ragged), taken: 0, touched: 0, passed: 0 });
        }
        self.mark();
        let Open { ragged, taken, touched, .. } = self.rows.as_mut()?;
        let until = (EVERY - self.next % EVERY) as usize;
        let rows = *taken..ragged.len().min(taken.saturating_add(until));
        // Copied cells are in the cache already.
        if *touched < rows.end && ragged.is_view() {
            ragged.touch(*touched..rows.end, !keeps);
            *touched = rows.end;
        }
        Some(NextRows { ragged, rows, number: self.next })
    }

    /// Consumes `rows` of the [next rows](Self::next_rows).
    pub(super) fn take(&mut self, rows: usize) {
        if let Some(open) = &mut self.rows {
            open.taken += rows;
            self.next += rows as u64;
        }
    }

    /// Advances the parent past the taken rows.
    fn pass(&mut self) {
        if let Some(open) = &mut self.rows {
            self.parent.pass_ragged(open.taken - std::mem::replace(&mut open.passed, open.taken));
        }
    }

    /// Keeps a state of the parent at every multiple of `EVERY` elements.
    #[inline]
    fn mark(&mut self) {
        if self.next.is_multiple_of(EVERY) && self.marks.back().is_none_or(|(at, _)| *at < self.next) {
            self.pass();
            self.marks.push_back((self.next, self.parent.state()));
        }
    }

    /// Returns the position of element `number`, which must not be [forgotten](Self::forget).
    pub(super) fn position(&self, number: u64) -> ParentState<I::State> {
        let behind = self.marks.partition_point(|(at, _)| *at <= number);
        let (at, state) = &self.marks[behind.saturating_sub(1)];
        ParentState { state: state.clone(), skip: number - at, number }
    }

    /// Drops the states that are only needed for positions before `number`.
    pub(super) fn forget(&mut self, number: u64) {
        while self.marks.get(1).is_some_and(|(at, _)| *at <= number) {
            self.marks.pop_front();
        }
    }

    /// Restores `position`.
    ///
    /// # Errors
    /// `State` if `position` is inconsistent or after the end of the data. Also returns errors of the parent.
    pub(super) fn restore(&mut self, position: ParentState<I::State>, cx: &mut Cx) -> Result<()> {
        let ParentState { state, skip, number } = position;
        let Some(at) = number.checked_sub(skip).filter(|_| skip <= EVERY) else {
            return Err(Error::state(format!(
                "element {number}: the state is {skip} elements back, and states are kept every {EVERY} elements"
            )));
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
