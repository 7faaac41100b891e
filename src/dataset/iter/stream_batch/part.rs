//! A part's rows of the batches directly after the prefix. No element of another part is evaluated.

use std::ops::Range;
use std::sync::Arc;

use super::{StreamBatch, StreamBatchIter};
use crate::cx::Cx;
use crate::dataset::BoxMap;
use crate::dataset::iter::dealt::{BatchPlan, Dealt, PartPassOf, left_out};
use crate::dataset::iter::make_batch::MakeBatch;
use crate::dataset::iter::{DatasetIterator, IterDataset};
use crate::dataset::map::{MapDataset, Order, Ordered};
use crate::dataset::run::chunks::Roots;
use crate::dataset::run::prefix::{Prefix, StreamState};
use crate::edits::BatchSize;
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::{Part, RowNumbers};

/// Indices of the rows `own` in every whole batch of `batch` elements, batch after batch.
#[derive(Clone, Debug)]
struct OwnRows {
    batch: u64,
    own: Range<u64>,
}

impl OwnRows {
    fn each(&self) -> u64 {
        self.own.end - self.own.start
    }
}

impl Order for OwnRows {
    const IS_NATIVE: bool = true;
    const IS_WORK: bool = false;

    fn name(&self) -> &'static str {
        "part"
    }

    fn len(&self, parent: u64) -> u64 {
        parent / self.batch * self.each()
    }

    fn place(&self, index: u64) -> Result<Option<u64>> {
        let (batch, row) = (index / self.each(), index % self.each());
        Ok(Some(batch * self.batch + self.own.start + row))
    }

    fn is_apart(&self) -> bool {
        2 * self.each() <= self.batch
    }

    fn inverse(&self, place: u64) -> Result<Option<u64>> {
        let (batch, row) = (place / self.batch, place % self.batch);
        Ok(self.own.contains(&row).then(|| batch * self.each() + row - self.own.start))
    }
}

/// A pass over the rows of a part. Has the states of [`StreamBatchIter`].
struct PartPass<D: MapDataset<Item: 'static>, M: MakeBatch<D::Item>> {
    /// The part's rows of all whole batches, as smaller batches. The dataset is boxed, so its type does not depend
    /// on the prefix.
    own: StreamBatchIter<BoxMap<D::Item>, M>,
    order: OwnRows,
    rows: RowNumbers,
    /// All rows: for an incomplete last batch, and after a restore to a position inside a batch.
    all: StreamBatchIter<D, M>,
    reads_all: bool,
    /// Number of elements in all whole batches.
    whole: u64,
}

impl<D, M> DatasetIterator for PartPass<D, M>
where
    D: MapDataset<Item: Send + 'static> + 'static,
    M: MakeBatch<D::Item>,
{
    type Item = Dealt<M::Batch>;
    type State = StreamState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        if !self.reads_all {
            let next = self.own.next(cx).map_err(|error| {
                // Converts the index to an index of the pipeline, from which the record is found.
                error.map_index(|index| self.order.place(index).ok().flatten().unwrap_or(index))
            })?;
            if let Some(batch) = next {
                if !self.own.state().next_index.is_multiple_of(self.order.each()) {
                    return Err(cx.blame(self.own.border, "to_iter", left_out()));
                }
                return Ok(Some(Dealt::Own(batch, self.rows.clone(), BatchPlan::default())));
            }
            self.all.restore(StreamState { next_index: self.whole, ..StreamState::default() }, cx)?;
            self.reads_all = true;
        }
        Ok(self.all.next(cx)?.map(Dealt::whole))
    }

    fn state(&self) -> StreamState {
        if self.reads_all {
            return self.all.state();
        }
        let state = self.own.state();
        StreamState { next_index: state.next_index / self.order.each() * self.order.batch, ..state }
    }

    fn restore(&mut self, state: StreamState, cx: &mut Cx) -> Result<()> {
        let between = state.next_index.is_multiple_of(self.order.batch) && state.next_index <= self.whole;
        self.reads_all = !between || StreamState { next_index: 0, ..state } != StreamState::default();
        if self.reads_all {
            return self.all.restore(state, cx);
        }
        let next_index = state.next_index / self.order.batch * self.order.each();
        self.own.restore(StreamState { next_index, ..state }, cx)
    }
}

impl<D, M> StreamBatch<D, M>
where
    D: MapDataset<Item: Send + 'static> + 'static,
    M: MakeBatch<D::Item>,
{
    /// Starts a pass that evaluates only the rows of `part`, if indices alone determine them and they are consecutive.
    pub(super) fn pass_over(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>> {
        let rows = part.rows(self.batching.size)?;
        let own = rows.as_range().filter(|own| self.is_by_index() && !own.is_empty());
        let Some(own) = own else { return Ok(None) };
        let Some(run_of_part) = run.for_part(part.as_share()) else { return Ok(None) };
        let Some(batching) = self.batching.of_rows(own.len()).map(Arc::new) else { return Ok(None) };
        let order = OwnRows { batch: rows.batch() as u64, own: own.start as u64..own.end as u64 };
        let parent = &self.parent;
        let dataset = Arc::new(BoxMap::new(Ordered::new(parent.dataset.clone(), |_| order.clone())));
        let prefix = Prefix::new(Roots::new(dataset, Some(&batching), &run_of_part, parent.stage)?, parent.options);
        let (start, size) = (prefix.state(), batching.size);
        // No edit changes the sizes of these batches: a plan makes such batches.
        let sizes = BatchSize::new(&Arc::default(), 0, size);
        let own = StreamBatchIter { start, prefix, batching, sizes, size, items: Vec::new(), border: parent.stage };
        let whole = parent.dataset.len() / order.batch * order.batch;
        Ok(Some(Box::new(PartPass { own, order, rows, all: self.iter(run)?, reads_all: false, whole })))
    }
}
