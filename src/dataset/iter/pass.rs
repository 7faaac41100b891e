//! A pass over a stream.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cx::Cx;
use crate::element::{Name, Ragged, Stack};
use crate::error::Result;

/// One pass over an [`IterDataset`](super::IterDataset).
///
/// # Laws
/// `restore(state())` on a fresh pass continues with the element that [`next`](Self::next) would have given, whatever the
/// executor; and `state()` after `restore(s)` equals `s`. A state holds positions, never elements: what a stage had in
/// memory is read again.
pub trait DatasetIterator: Send {
    /// Elements of this type.
    type Item;
    /// Position of the pass. Small, and cheap to clone: the executor takes one for every element it hands over.
    type State: Clone + Send + Sync + Serialize + DeserializeOwned + 'static;

    /// The next element, or `None` at the end, again and again.
    ///
    /// # Errors
    /// An error consumes the element that failed: calling again goes on behind it. [`Loader`](crate::Loader) never does.
    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>>;

    /// The next elements, `count` of them or what is left, as the batch that [`Stack::stack`] makes of them: for a pass that
    /// can write them in place, which costs less than stacking them. `None`, with nothing consumed, where it cannot; then
    /// they are to be had one by one. At the end it is `Some(Ok(None))`.
    ///
    /// # Errors
    /// As [`next`](Self::next). Elements in front of the one that failed wait: what comes next is to be this method again,
    /// with the same `count`.
    fn next_stacked(&mut self, count: usize, cx: &mut Cx) -> NextStacked<Self::Item>
    where
        Self::Item: Stack,
    {
        let _ = (count, cx);
        None
    }

    /// The rows that stand for the next elements, at least one, without elements: the arrays of these names, which all of the elements
    /// have, each of one dtype and inner shape in all rows. None of them is consumed: [`pass_ragged`](Self::pass_ragged) says how many are.
    /// `None` where elements are needed: the next is then to be had by [`next`](Self::next).
    fn next_ragged(&mut self, names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        let _ = (names, cx);
        None
    }

    /// Consumes so many elements, of those that [`next_ragged`](Self::next_ragged) gave last.
    fn pass_ragged(&mut self, rows: usize) {
        let _ = rows;
    }

    /// The position after what has been yielded so far.
    fn state(&self) -> Self::State;

    /// Goes to a position. Stages that had elements in memory read them again, through `cx`.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) for a position that this pipeline cannot have been in, and whatever reading reports.
    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()>;
}

/// Answer of [`DatasetIterator::next_stacked`], if the pass has one at all: a batch, an error or the end.
pub type NextStacked<T> = Option<Result<Option<InPlace<<T as Stack>::Batch>>>>;

/// A batch that a pass wrote in place: see [`DatasetIterator::next_stacked`].
#[derive(Clone, Debug)]
pub struct InPlace<B> {
    /// The batch.
    pub batch: B,
    /// Elements in it.
    pub len: usize,
    /// Payload bytes of it, for the report.
    pub bytes: usize,
}

impl<I: DatasetIterator + ?Sized> DatasetIterator for Box<I> {
    type Item = I::Item;
    type State = I::State;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        (**self).next(cx)
    }
    fn next_stacked(&mut self, count: usize, cx: &mut Cx) -> NextStacked<I::Item>
    where
        I::Item: Stack,
    {
        (**self).next_stacked(count, cx)
    }
    fn next_ragged(&mut self, names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        (**self).next_ragged(names, cx)
    }
    fn pass_ragged(&mut self, rows: usize) {
        (**self).pass_ragged(rows);
    }
    fn state(&self) -> I::State {
        (**self).state()
    }
    fn restore(&mut self, state: I::State, cx: &mut Cx) -> Result<()> {
        (**self).restore(state, cx)
    }
}
