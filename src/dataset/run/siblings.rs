//! Passes over several parents, each with the offset of its stage ids.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cx::Cx;
use crate::dataset::iter::DatasetIterator;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Stage;
use crate::error::{Error, Result};

/// Returns the first stage id of each parent, relative to the first stage id of the first parent.
pub(in crate::dataset) fn offsets<D: Stage>(parents: &[D]) -> impl Iterator<Item = usize> {
    parents.iter().scan(0, |next, parent| {
        let offset = *next;
        *next += (parent as &dyn Stage).count();
        Some(offset)
    })
}

/// Passes over several parents, which yield rows: an element of each parent.
#[doc(hidden)]
pub trait Passes: Send {
    /// An element of each parent.
    type Row: Send + 'static;
    /// Position of each parent.
    type States: Clone + Send + Sync + Serialize + DeserializeOwned + 'static;

    /// Reads an element of each parent, through `reads`. Returns `None` if there is no row.
    fn row(&mut self, reads: &mut Reads, cx: &mut Cx) -> Option<Self::Row>;

    /// Returns the position of each parent.
    fn states(&self) -> Self::States;

    /// Moves each parent to its position.
    ///
    /// # Errors
    /// As [`DatasetIterator::restore`].
    fn restore(&mut self, states: Self::States, cx: &mut Cx) -> Result<()>;
}

/// The reads of a row.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Reads {
    /// Whether reading stops at the first parent without an element.
    pub(in crate::dataset) to_shortest: bool,
    /// Number of the last parent that was read, counted from 1.
    pub(in crate::dataset) last: usize,
    /// Number of the first parent with an element.
    pub(in crate::dataset) longer: Option<usize>,
    /// Number of the first parent without an element.
    pub(in crate::dataset) shorter: Option<usize>,
    /// The first error.
    pub(in crate::dataset) failed: Option<Error>,
}

impl Reads {
    /// Reads the next parent, also after an error, so that all parents stay aligned.
    fn element<T>(&mut self, read: impl FnOnce() -> Result<Option<T>>) -> Option<T> {
        if self.to_shortest && self.shorter.is_some() {
            return None;
        }
        self.last += 1;
        match read() {
            Ok(element) => {
                let first = if element.is_some() { &mut self.longer } else { &mut self.shorter };
                first.get_or_insert(self.last);
                element
            }
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }
}

/// Passes over two parents of different types.
#[doc(hidden)]
pub struct Pair<A, B> {
    pub(in crate::dataset) first: A,
    pub(in crate::dataset) second: B,
    /// First stage id of the second parent.
    pub(in crate::dataset) offset: usize,
}

debug_name!(Pair<A, B>);

impl<A: DatasetIterator<Item: Send + 'static>, B: DatasetIterator<Item: Send + 'static>> Passes for Pair<A, B> {
    type Row = (A::Item, B::Item);
    type States = (A::State, B::State);

    fn row(&mut self, reads: &mut Reads, cx: &mut Cx) -> Option<Self::Row> {
        let first = reads.element(|| self.first.next(cx));
        let second = reads.element(|| cx.within(self.offset, |cx| self.second.next(cx)));
        Some((first?, second?))
    }
    fn states(&self) -> Self::States {
        (self.first.state(), self.second.state())
    }
    fn restore(&mut self, (first, second): Self::States, cx: &mut Cx) -> Result<()> {
        self.first.restore(first, cx)?;
        cx.within(self.offset, |cx| self.second.restore(second, cx))
    }
}

/// Passes over several parents of a single type.
#[doc(hidden)]
pub struct Siblings<I>(Vec<(I, usize)>);

debug_name!(Siblings<I>);

impl<I: DatasetIterator<Item: Send + 'static>> Passes for Siblings<I> {
    type Row = Vec<I::Item>;
    type States = Vec<I::State>;

    fn row(&mut self, reads: &mut Reads, cx: &mut Cx) -> Option<Self::Row> {
        let mut row = Vec::with_capacity(self.len());
        (0..self.len()).for_each(|k| row.extend(reads.element(|| self.next(k, cx))));
        (!row.is_empty() && row.len() == self.len()).then_some(row)
    }
    fn states(&self) -> Self::States {
        self.positions()
    }
    fn restore(&mut self, states: Self::States, cx: &mut Cx) -> Result<()> {
        self.restore_first(states, self.len(), cx)
    }
}

impl<I: DatasetIterator> Siblings<I> {
    /// Creates siblings from started passes, each with its first stage id.
    pub(in crate::dataset) fn of(passes: Vec<(I, usize)>) -> Self {
        Self(passes)
    }

    pub(in crate::dataset) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the last stage id of each parent, relative to the first stage id of the first parent. `end` is the id
    /// after the last stage of the last parent.
    pub(in crate::dataset) fn last_stages(&self, end: usize) -> Vec<usize> {
        let ends = self.0.iter().skip(1).map(|(_, offset)| *offset).chain([end]);
        ends.map(|end| end.saturating_sub(1)).collect()
    }

    pub(in crate::dataset) fn next(&mut self, k: usize, cx: &mut Cx) -> Result<Option<I::Item>> {
        let (parent, offset) = &mut self.0[k];
        cx.within(*offset, |cx| parent.next(cx))
    }

    pub(in crate::dataset) fn positions(&self) -> Vec<I::State> {
        self.0.iter().map(|(parent, _)| parent.state()).collect()
    }

    /// Restores the parents for which there are states, the first `least` or more. The others stay at their positions.
    pub(in crate::dataset) fn restore_first(&mut self, states: Vec<I::State>, least: usize, cx: &mut Cx) -> Result<()> {
        if !(least..=self.0.len()).contains(&states.len()) {
            let text = format!("the state has {} datasets, but the pipeline has {}", states.len(), self.0.len());
            return Err(Error::state(text));
        }
        for ((parent, offset), state) in self.0.iter_mut().zip(states) {
            cx.within(*offset, |cx| parent.restore(state, cx))?;
        }
        Ok(())
    }

    /// Restores parent `k`.
    pub(in crate::dataset) fn restore_one(&mut self, k: usize, state: I::State, cx: &mut Cx) -> Result<()> {
        let (parent, offset) = &mut self.0[k];
        cx.within(*offset, |cx| parent.restore(state, cx))
    }
}
