//! A pass over a stream.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cx::Cx;
use crate::element::{Name, Ragged, Stack};
use crate::error::Result;

/// One pass over an [`IterDataset`](super::IterDataset).
///
/// # Laws
/// `restore(state())` on a fresh pass continues with the element that [`next`](Self::next) would have returned, with
/// any executor. `state()` after `restore(s)` equals `s`.
///
/// A state contains positions, never elements. Elements that a stage held in memory are read again.
#[expect(unused_variables, reason = "provided methods ignore their arguments")]
pub trait DatasetIterator: Send {
    /// Type of an element.
    type Item;
    /// Position of the pass. Small and cheap to clone: the executor takes a state for every element that it delivers.
    type State: Clone + Send + Sync + Serialize + DeserializeOwned + 'static;

    /// Returns the next element, or `None` at the end and on every call after it.
    ///
    /// # Errors
    /// An error consumes the failed element; the next call continues after it. [`Loader`](crate::Loader) does not.
    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>>;

    /// Returns the next `count` elements, or fewer at the end, as the batch that [`Stack::stack`] would make.
    ///
    /// For a pass that can write the batch in place, which costs less than stacking. Other passes return `None` and
    /// consume nothing; [`next`](Self::next) then yields the elements. Returns `Some(Ok(None))` at the end.
    ///
    /// # Errors
    /// As [`next`](Self::next). The pass keeps the elements before the failed element. The next call must be to this
    /// method, with the same `count`.
    fn next_stacked(&mut self, count: usize, cx: &mut Cx) -> NextStacked<Self::Item>
    where
        Self::Item: Stack,
    {
        None
    }

    /// Returns rows that stand for the next elements, at least one row, without making the elements.
    ///
    /// The rows have the arrays `names`, which all of the elements have. An array has the same dtype and inner shape in
    /// all rows. The call consumes no element; [`pass_ragged`](Self::pass_ragged) does.
    /// Returns `None` if the pass can only make elements; [`next`](Self::next) then yields the next element.
    fn next_ragged(&mut self, names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        None
    }

    /// Consumes `rows` elements of the last result of [`next_ragged`](Self::next_ragged).
    fn pass_ragged(&mut self, rows: usize) {}

    /// Returns the position after the last yielded element.
    fn state(&self) -> Self::State;

    /// Moves to a position. Stages that held elements in memory read them again, through `cx`.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) for a position that is impossible in this pipeline, and any error
    /// of reading.
    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()>;
}

/// Result of [`DatasetIterator::next_stacked`]: a batch, an error or the end. `None` if the pass cannot write in place.
pub type NextStacked<T> = Option<Result<Option<InPlace<<T as Stack>::Batch>>>>;

/// A batch that a pass wrote in place: see [`DatasetIterator::next_stacked`].
#[derive(Clone, Debug)]
pub struct InPlace<B> {
    /// The batch.
    pub batch: B,
    /// Number of elements in the batch.
    pub len: usize,
    /// Payload bytes of the batch, for the report.
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
