//! Batches directly after the elementwise prefix.

mod part;

use std::sync::Arc;

use super::batch::Batching;
use super::dealt::PartPassOf;
use super::make_batch::{BatchFn, MakeBatch, Padding, Stacked, StackedPadded};
use super::stream::Stream;
use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::Remainder;
use crate::dataset::map::MapDataset;
use crate::dataset::node::{Describe, Node};
use crate::dataset::run::chunks::Roots;
use crate::dataset::run::opaque::{debug_name, debug_with_parent};
use crate::dataset::run::prefix::{Prefix, StreamState};
use crate::dataset::run::skipping::BadRecords;
use crate::dataset::stage::{Role, Stage};
use crate::edits::BatchSize;
use crate::element::{Element, Stack};
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::Part;

/// A batch directly after a [`Stream`]: see its [`batch`](Stream::batch).
///
/// If no earlier stage can drop elements, indices alone determine the elements of a batch. The thread or worker that
/// evaluates the elements then also stacks them. Batches and checkpoints do not change.
#[must_use = "datasets are lazy and do nothing until read"]
pub struct StreamBatch<D, M> {
    parent: Stream<D>,
    batching: Arc<Batching<M>>,
}

impl<D> Stream<D>
where
    D: MapDataset<Item: Send + 'static> + 'static,
{
    /// Stacks elements like [`IterDatasetExt::batch`](super::IterDatasetExt::batch), in parallel if there are threads and
    /// no earlier stage drops elements.
    ///
    /// # Errors
    /// As [`IterDatasetExt::batch`](super::IterDatasetExt::batch).
    pub fn batch(self, size: usize) -> StreamBatch<D, Stacked>
    where
        D::Item: Stack<Batch: Send + 'static>,
    {
        StreamBatch::new(self, size, Remainder::Keep, Stacked)
    }

    /// Stacks elements like [`IterDatasetExt::batch_with`](super::IterDatasetExt::batch_with), in parallel like
    /// [`batch`](Self::batch).
    pub fn batch_with(self, size: usize, remainder: Remainder) -> StreamBatch<D, Stacked>
    where
        D::Item: Stack<Batch: Send + 'static>,
    {
        StreamBatch::new(self, size, remainder, Stacked)
    }

    /// Stacks elements like [`IterDatasetExt::batch_padded`](super::IterDatasetExt::batch_padded), in parallel like
    /// [`batch`](Self::batch).
    pub fn batch_padded(self, size: usize) -> StreamBatch<D, StackedPadded>
    where
        D::Item: Stack<Batch: Send + 'static>,
    {
        StreamBatch::new(self, size, Remainder::Keep, StackedPadded)
    }

    /// Stacks elements like [`IterDatasetExt::batch_masked`](super::IterDatasetExt::batch_masked), in parallel like
    /// [`batch`](Self::batch).
    ///
    /// # Errors
    /// As [`IterDatasetExt::batch_masked`](super::IterDatasetExt::batch_masked).
    pub fn batch_masked(self, size: usize) -> StreamBatch<D, Padding>
    where
        D: MapDataset<Item = Element>,
    {
        self.batch_masked_with(size, Padding::default())
    }

    /// Stacks elements like [`IterDatasetExt::batch_masked_with`](super::IterDatasetExt::batch_masked_with), in parallel
    /// like [`batch`](Self::batch).
    ///
    /// # Errors
    /// As [`IterDatasetExt::batch_masked_with`](super::IterDatasetExt::batch_masked_with).
    pub fn batch_masked_with(self, size: usize, padding: Padding) -> StreamBatch<D, Padding>
    where
        D: MapDataset<Item = Element>,
    {
        StreamBatch::new(self, size, Remainder::Keep, padding)
    }

    /// Makes batches like [`IterDatasetExt::batch_with_fn`](super::IterDatasetExt::batch_with_fn), in parallel like
    /// [`batch`](Self::batch).
    pub fn batch_with_fn<B, F>(self, size: usize, remainder: Remainder, f: F) -> StreamBatch<D, BatchFn<F>>
    where
        B: Send + 'static,
        F: Fn(Vec<D::Item>) -> Result<B> + Send + Sync + 'static,
    {
        StreamBatch::new(self, size, remainder, BatchFn(f))
    }
}

impl<D: MapDataset + 'static, M: MakeBatch<D::Item>> StreamBatch<D, M> {
    fn new(parent: Stream<D>, size: usize, remainder: Remainder, make: M) -> Self {
        let batching = Batching::new(&parent, size, remainder, make);
        Self { parent, batching }
    }

    /// Returns true if indices alone determine the elements of a batch.
    fn is_by_index(&self) -> bool {
        self.parent.options.bad == BadRecords::Error && !(&self.parent.dataset as &dyn Stage).may_drop()
    }
}

impl<D: MapDataset + 'static, M: MakeBatch<D::Item>> Stage for StreamBatch<D, M> {
    fn node(&self) -> Node<'_> {
        let memory = self.batching.memory();
        let memory = if self.is_by_index() { memory.per_thread() } else { memory };
        Node { describe: self, memory: Some(memory), ..Node::new("batch", Role::Stateful) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D: MapDataset + 'static, M: MakeBatch<D::Item>> Describe for StreamBatch<D, M> {
    fn params(&self) -> String {
        self.batching.params()
    }
    fn check(&self) -> Result<()> {
        self.batching.check()
    }
}

impl<D, M> IterDataset for StreamBatch<D, M>
where
    D: MapDataset<Item: Send + 'static> + 'static,
    M: MakeBatch<D::Item>,
{
    type Item = M::Batch;
    type Iter = StreamBatchIter<D, M>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let Stream { dataset, options, stage } = &self.parent;
        let gather = Some(&self.batching).filter(|_| self.is_by_index());
        let prefix = Prefix::new(Roots::new(dataset.clone(), gather, run, *stage)?, *options).recording(run, *stage);
        let prefix = prefix.excluding(dataset, run, *stage);
        let (batching, sizes) = (self.batching.clone(), self.batching.size_in(run));
        let (start, size) = (prefix.state(), batching.size);
        Ok(StreamBatchIter { start, prefix, batching, sizes, size, items: Vec::new(), border: *stage })
    }

    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>> {
        if self.is_by_index() && !run.has_census() {
            let (edits, stage) = (run.edits(), run.id_of(self.batching.stage));
            let is_edited = edits.sizes_of(stage) || edits.excludes_at(run.id_of(self.parent.stage));
            if run.plans_only().is_some() || is_edited {
                return self.batching.of_plan(self.parent.plan_indices(run)?, run, part);
            }
            return match (run.deal().balance(), run.failed().pads() && !run.is_serving()) {
                (Some(_), _) => Ok(None),
                (None, true) => self.batching.of_plan(self.parent.plan_indices(run)?, run, part),
                (None, false) => self.pass_over(run, part),
            };
        }
        self.batching.part_of(&self.parent, run, part)
    }
}

/// A pass over [`StreamBatch`]. Its state is the stream's: between batches there is nothing else to store.
#[doc(hidden)]
pub struct StreamBatchIter<D: MapDataset<Item: 'static>, M: MakeBatch<D::Item>> {
    prefix: Prefix<D, Batching<M>>,
    batching: Arc<Batching<M>>,
    sizes: BatchSize,
    /// Size of the present batch.
    size: usize,
    /// Elements of the unfinished batch. They stay here after an error.
    items: Vec<D::Item>,
    /// The stream's position before the first element of the current batch.
    start: StreamState,
    border: StageId,
}

impl<D, M> StreamBatchIter<D, M>
where
    D: MapDataset<Item: Send + 'static> + 'static,
    M: MakeBatch<D::Item>,
{
    /// Returns the next element, for a batch that is stacked here. An index without an element shifts later batches.
    fn next_item(&mut self, cx: &mut Cx) -> Result<Option<D::Item>> {
        let expected = self.prefix.position().saturating_add(1);
        let next = self.prefix.next(cx, |_| false);
        let held = self.items.len() + usize::from(matches!(next, Ok(Some(_))));
        if next.is_err() || self.prefix.position() != expected {
            let held = if held >= self.size { 0 } else { held };
            self.regroup(held);
        }
        let next = next?;
        if next.is_some() {
            cx.produced(self.border, 1, 0);
        }
        Ok(next)
    }

    /// Sets the start of the groups that other threads stack. After an edit of the batch size there are none.
    fn regroup(&mut self, held: usize) {
        match self.size == self.batching.size {
            true => self.prefix.regroup(self.size.max(1) as u64, held as u64),
            false => self.prefix.ungroup(),
        }
    }

    fn close(&mut self, cx: &mut Cx) -> Result<Option<M::Batch>> {
        let room = Vec::with_capacity(self.items.len());
        let items = std::mem::replace(&mut self.items, room);
        self.batching.make(items, self.size, cx).map(Some)
    }
}

impl<D, M> DatasetIterator for StreamBatchIter<D, M>
where
    D: MapDataset<Item: Send + 'static> + 'static,
    M: MakeBatch<D::Item>,
{
    type Item = M::Batch;
    type State = StreamState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<M::Batch>> {
        let size = self.sizes.now(cx);
        if size != self.size {
            self.size = size;
            self.regroup(self.items.len());
        }
        if self.items.is_empty() {
            if let Some((batch, elements)) = self.prefix.next_group(cx) {
                cx.produced(self.border, elements, 0);
                return batch.map(Some);
            }
            self.start = self.prefix.state();
        }
        loop {
            let missing = self.size.saturating_sub(self.items.len());
            let run = self.prefix.next_run(missing, &mut self.items, cx);
            cx.produced(self.border, run as u64, 0);
            if run == 0 {
                let Some(element) = self.next_item(cx)? else { break };
                self.items.push(element);
            }
            if self.items.len() >= self.size {
                return self.close(cx);
            }
        }
        if self.batching.remainder == Remainder::Drop {
            self.items.clear();
        }
        if self.items.is_empty() { Ok(None) } else { self.close(cx) }
    }

    fn state(&self) -> StreamState {
        if self.items.is_empty() { self.prefix.state() } else { self.start }
    }

    fn restore(&mut self, state: StreamState, cx: &mut Cx) -> Result<()> {
        self.items.clear();
        self.prefix.restore(state, cx).map_err(|e| cx.blame(self.border, "to_iter", e))?;
        self.regroup(0);
        Ok(())
    }
}

debug_with_parent!(StreamBatch<D, M>);
debug_name!(StreamBatchIter<D: MapDataset<Item: 'static>, M: MakeBatch<D::Item> >);

#[cfg(test)]
mod tests;
