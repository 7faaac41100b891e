#[cfg(all(feature = "workers", target_os = "linux"))]
use std::any::{Any, TypeId};
use std::ops::Range;
use std::sync::Arc;

use super::dealt::PartPassOf;
use super::make_batch::MakeBatch;
use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::Remainder;
use crate::dataset::map::MapDataset;
use crate::dataset::memory::{Held, Memory};
use crate::dataset::node::{Describe, Node};
use crate::dataset::plan::Planning;
use crate::dataset::run::evaluate::Gather;
#[cfg(all(feature = "workers", target_os = "linux"))]
use crate::dataset::run::evaluate::StackInto;
use crate::dataset::run::opaque::{debug_name, debug_with_parent};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::edits::BatchSize;
#[cfg(all(feature = "workers", target_os = "linux"))]
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::part::Part;

/// Rules by which elements become batches, shared by all batches of a stream.
pub(in crate::dataset) struct Batching<M> {
    pub(in crate::dataset) size: usize,
    pub(in crate::dataset) remainder: Remainder,
    make: M,
    /// True if the elements come from columns.
    stacks: bool,
    pub(in crate::dataset) stage: StageId,
}

impl<M> Batching<M> {
    pub(super) fn new(parent: &dyn Stage, size: usize, remainder: Remainder, make: M) -> Arc<Self> {
        Arc::new(Self { size, remainder, make, stacks: parent.stacks(), stage: stage_after(&[parent]) })
    }

    /// Returns the rules for `size` rows of each batch; `None` if the rows of a batch depend on each other.
    pub(in crate::dataset) fn of_rows<T>(&self, size: usize) -> Option<Self>
    where
        M: MakeBatch<T>,
    {
        let (make, remainder) = (self.make.of_rows()?, self.remainder);
        Some(Self { size, remainder, make, stacks: self.stacks, stage: self.stage })
    }

    pub(super) fn params<T>(&self) -> String
    where
        M: MakeBatch<T>,
    {
        let how = self.make.params();
        let how = if how.is_empty() { format!("remainder={}", self.remainder.as_str()) } else { how };
        format!("{}, {how}", self.size)
    }

    pub(super) fn check<T>(&self) -> Result<()>
    where
        M: MakeBatch<T>,
    {
        check_size(self.size)?;
        self.make.check()
    }

    /// Starts a pass over the rows of `part` in batches of `parent`. Returns `None` without a plan.
    ///
    /// # Errors
    /// As [`of_plan`](Self::of_plan), and errors of the plan.
    pub(super) fn part_of<D>(
        self: &Arc<Self>,
        parent: &D,
        run: &Runtime,
        part: &Part,
    ) -> Result<Option<PartPassOf<IterBatch<D, M>>>>
    where
        D: IterDataset,
        M: MakeBatch<D::Item>,
    {
        let plan = Planning::plan(parent, &[], run)?;
        plan.map_or(Ok(None), |plan| self.of_plan(plan, run, part))
    }

    /// Returns the memory of a batch and its elements.
    pub(super) fn memory(&self) -> Memory {
        Memory::elements(Held::AtMost(self.size as u64), Held::AtMost(1))
    }

    /// Returns the size of the batches in a pass of `run`.
    pub(in crate::dataset) fn size_in(&self, run: &Runtime) -> BatchSize {
        BatchSize::new(run.edits(), run.id_of(self.stage), self.size)
    }

    /// Makes a batch of one or more `items`, at most `size`. The report counts it for the stage.
    pub(in crate::dataset) fn make<T>(&self, items: Vec<T>, size: usize, cx: &mut Cx) -> Result<M::Batch>
    where
        M: MakeBatch<T>,
    {
        let bytes = self.make.nbytes(&items);
        self.counted(bytes, cx, || self.make.make(items, size))
    }

    /// Calls `make`, and counts its batch and `bytes` for the stage.
    fn counted<B>(&self, bytes: usize, cx: &mut Cx, make: impl FnOnce() -> Result<B>) -> Result<B> {
        let batch = cx.timed_exactly(self.stage, make);
        let batch = batch.map_err(|error| cx.blame(self.stage, "batch", error))?;
        cx.produced(self.stage, 1, bytes as u64);
        Ok(batch)
    }

    /// Returns true if batches mark the rows that are padding.
    pub(in crate::dataset) fn says_padding<T>(&self) -> bool
    where
        M: MakeBatch<T>,
    {
        self.make.says_padding()
    }

    /// Makes a batch in which missing items are rows of padding. If all are missing, `like` is the sample for padding.
    pub(in crate::dataset) fn make_padded<T>(
        &self,
        items: Vec<Option<T>>,
        like: Option<&T>,
        size: usize,
        cx: &mut Cx,
    ) -> Result<M::Batch>
    where
        M: MakeBatch<T>,
    {
        let bytes: usize = items.iter().flatten().map(|item| self.make.nbytes(std::slice::from_ref(item))).sum();
        self.counted(bytes, cx, || self.make.make_padded(items, like, size))
    }

    /// Returns the next batch, if `parent` writes batches in place. Leaves out an incomplete last batch if the
    /// remainder is dropped.
    fn next_of<I: DatasetIterator>(&self, parent: &mut I, size: usize, cx: &mut Cx) -> Option<Result<Option<M::Batch>>>
    where
        M: MakeBatch<I::Item>,
    {
        let batch = match self.make.next_of(parent, size, cx)? {
            Ok(batch) => batch,
            Err(error) => return Some(Err(error)),
        };
        let batch = batch.filter(|batch| batch.len == size || self.remainder != Remainder::Drop);
        if let Some(batch) = &batch {
            cx.produced(self.stage, 1, batch.bytes as u64);
        }
        Some(Ok(batch.map(|batch| batch.batch)))
    }
}

impl<T: 'static, M: MakeBatch<T>> Gather<T> for Batching<M> {
    type Whole = M::Batch;

    fn size(&self) -> u64 {
        self.size as u64
    }

    fn takes(&self, len: u64) -> bool {
        len == self.size as u64 || self.remainder == Remainder::Keep
    }

    fn gather(&self, items: Vec<T>, cx: &mut Cx) -> Result<M::Batch> {
        self.make(items, self.size, cx)
    }

    fn of_columns<D: MapDataset<Item = T>>(&self, dataset: &D, indices: Range<u64>, cx: &mut Cx) -> Option<M::Batch> {
        if !self.stacks {
            return None;
        }
        let whole = self.make.of_columns(dataset, indices, self.size, cx)?;
        cx.produced(self.stage, 1, whole.bytes as u64);
        Some(whole.batch)
    }

    #[cfg(all(feature = "workers", target_os = "linux"))]
    fn stacks(&self) -> bool {
        TypeId::of::<T>() == TypeId::of::<Element>() && self.make.only_stacks()
    }

    /// Makes the batch by calling `stack`. Returns `None` unless the batch is a plain stack of [`Element`]s.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    fn stack(&self, items: &Vec<T>, cx: &mut Cx, stack: &mut StackInto<'_>) -> Option<Result<bool>> {
        let elements = (items as &dyn Any).downcast_ref::<Vec<Element>>().filter(|_| self.make.only_stacks())?;
        let bytes = self.make.nbytes(items);
        let elements: Vec<&Element> = elements.iter().collect();
        let stacked = cx.timed_exactly(self.stage, || stack(&elements));
        if let Ok(true) = stacked {
            cx.produced(self.stage, 1, bytes as u64);
        }
        Some(stacked.map_err(|error| cx.blame(self.stage, "batch", error)))
    }
}

/// See [`IterDatasetExt::batch`](super::IterDatasetExt::batch).
#[must_use = "datasets are lazy and do nothing until read"]
pub struct IterBatch<D, M> {
    parent: D,
    batching: Arc<Batching<M>>,
}

impl<D: IterDataset, M: MakeBatch<D::Item>> IterBatch<D, M> {
    pub(super) fn new(parent: D, size: usize, remainder: Remainder, make: M) -> Self {
        let batching = Batching::new(&parent, size, remainder, make);
        Self { parent, batching }
    }
}

impl<D: IterDataset, M: MakeBatch<D::Item>> Stage for IterBatch<D, M> {
    fn node(&self) -> Node<'_> {
        Node { describe: self, memory: Some(self.batching.memory()), ..Node::new("batch", Role::Stateful) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D: IterDataset, M: MakeBatch<D::Item>> Describe for IterBatch<D, M> {
    fn params(&self) -> String {
        self.batching.params()
    }
    fn check(&self) -> Result<()> {
        self.batching.check()
    }
}

pub(super) fn check_size(size: usize) -> Result<()> {
    if size == 0 { Err(Error::config("the batch size is 0, and must be 1 or more")) } else { Ok(()) }
}

impl<D: IterDataset, M: MakeBatch<D::Item>> IterDataset for IterBatch<D, M> {
    type Item = M::Batch;
    type Iter = IterBatchIter<D::Iter, M>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let parent = self.parent.iter(run)?;
        Ok(IterBatchIter {
            start: parent.state(),
            parent,
            size: self.batching.size_in(run),
            batching: self.batching.clone(),
            items: Vec::new(),
            interrupted: false,
        })
    }

    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>> {
        self.batching.part_of(&self.parent, run, part)
    }
}

/// A pass over [`IterBatch`]. Its state is its parent's: between batches there is nothing else to store.
#[doc(hidden)]
pub struct IterBatchIter<I: DatasetIterator, M> {
    parent: I,
    batching: Arc<Batching<M>>,
    size: BatchSize,
    /// Elements of the unfinished batch. They stay here after an error of the parent.
    items: Vec<I::Item>,
    /// True if the parent failed while it wrote a batch in place. The parent then holds the batch.
    interrupted: bool,
    /// The parent's state before the first element of the current batch.
    start: I::State,
}

impl<I: DatasetIterator, M: MakeBatch<I::Item>> IterBatchIter<I, M> {
    fn close(&mut self, size: usize, cx: &mut Cx) -> Result<Option<M::Batch>> {
        let room = Vec::with_capacity(self.items.len());
        let items = std::mem::replace(&mut self.items, room);
        self.batching.make(items, size, cx).map(Some)
    }
}

impl<I: DatasetIterator<Item: Send>, M: MakeBatch<I::Item>> DatasetIterator for IterBatchIter<I, M> {
    type Item = M::Batch;
    type State = I::State;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<M::Batch>> {
        let size = self.size.now(cx);
        if self.items.is_empty() {
            if !self.interrupted {
                self.start = self.parent.state();
            }
            if let Some(batch) = self.batching.next_of(&mut self.parent, size, cx) {
                self.interrupted = batch.is_err();
                return batch;
            }
        }
        while let Some(element) = self.parent.next(cx)? {
            self.items.push(element);
            if self.items.len() >= size {
                return self.close(size, cx);
            }
        }
        if self.batching.remainder == Remainder::Drop {
            self.items.clear();
        }
        if self.items.is_empty() { Ok(None) } else { self.close(size, cx) }
    }

    fn state(&self) -> I::State {
        if self.items.is_empty() && !self.interrupted { self.parent.state() } else { self.start.clone() }
    }

    fn restore(&mut self, state: I::State, cx: &mut Cx) -> Result<()> {
        self.items.clear();
        self.interrupted = false;
        self.parent.restore(state, cx)
    }
}

debug_with_parent!(IterBatch<D, M>);
debug_name!(IterBatchIter<I: DatasetIterator, M>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::element::{Array, Element};
    use crate::{IterDatasetExt, MapDatasetExt};

    #[test]
    fn the_remainder_is_kept_or_dropped() {
        let ds = || Range::new(0, 7).to_iter();
        assert_eq!(laws::check(&ds().batch(3)), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
        assert_eq!(laws::check(&ds().batch_with(3, Remainder::Drop)), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(laws::check(&Range::new(0, 6).to_iter().batch(3)), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!((&ds().batch_with(3, Remainder::Drop) as &dyn Stage).lines()[2], "batch(3, remainder=drop)");
    }

    #[test]
    fn a_function_may_make_the_batch() {
        let ds = Range::new(0, 7).to_iter().batch_with_fn(3, Remainder::Keep, |v| Ok(v.iter().sum::<i64>()));
        assert_eq!(laws::check(&ds), [3, 12, 6]);
    }

    #[test]
    fn a_typed_batch_is_padded_and_says_how_far_it_is_real() {
        let all = laws::check(&Range::new(1, 6).to_iter().batch_padded(3));
        assert_eq!(all.iter().map(|p| p.batch.clone()).collect::<Vec<_>>(), [[1, 2, 3], [4, 5, 0]]);
        assert_eq!(all[1].mask(), [true, true, false]);
        assert_eq!((all[0].real, all[1].real), (3, 2));
    }

    fn element(x: i64) -> Element {
        Element::new().with("x", Array::from_vec(vec![x as i32; 2])).with("t", "text")
    }

    #[test]
    fn an_element_batch_is_padded_and_masked_to_one_spec() {
        use crate::ElementSpec;
        use crate::dataset::iter::Padding;
        let padding = Padding { value: -1.0, ..Padding::default() };
        let ds = Range::new(1, 6).map(element).to_iter().batch_masked_with(4, padding);
        let all = laws::check(&ds);
        assert_eq!(ElementSpec::of(&all[0]), ElementSpec::of(&all[1]));
        assert_eq!(all[0].array("batch_mask").unwrap().bytes(), [1, 1, 1, 1]);
        assert_eq!(all[1].array("batch_mask").unwrap().bytes(), [1, 0, 0, 0]);
        assert_eq!(all[1].array("x").unwrap().as_slice::<i32>().unwrap(), [5, 5, -1, -1, -1, -1, -1, -1]);
    }

    #[test]
    fn a_parents_error_costs_no_other_element() {
        let bad = Range::new(0, 6).try_map(|x| if x == 1 { Err(Error::data("bad")) } else { Ok(x) });
        let ds = bad.to_iter().batch(3);
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        let before = iter.state();
        assert!(iter.next(&mut cx).is_err());
        assert_eq!(iter.state(), before);
        assert_eq!(iter.next(&mut cx).unwrap(), Some(vec![0, 2, 3]));
        assert_eq!(iter.next(&mut cx).unwrap(), Some(vec![4, 5]));
    }

    #[test]
    fn what_cannot_be_stacked_or_padded_is_an_error_with_its_stage() {
        let ragged = Range::new(0, 4).map(|x| Element::new().with("x", Array::from_vec(vec![0i32; x as usize])));
        let error = ragged.to_iter().batch(2).collect().unwrap_err();
        assert_eq!(error.stage_name(), Some("3 batch"));
        let unsigned = Range::new(0, 3).map(|x| Element::new().with("x", Array::scalar(x as u16)));
        let padding = crate::dataset::iter::Padding { value: -1.0, ..Default::default() };
        let error = unsigned.to_iter().batch_masked_with(2, padding).collect().unwrap_err();
        assert!(error.message().contains("the pad value -1 does not fit uint16"), "{error}");
        let masked = Range::new(0, 3).map(|x| Element::new().with("batch_mask", Array::scalar(x)));
        assert!(masked.to_iter().batch_masked(2).collect().unwrap_err().message().contains("batch_mask"));
        assert_eq!(Range::new(0, 3).to_iter().batch(0).collect().unwrap_err().stage_name(), Some("2 batch"));
    }
}
