use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunks::Roots;
use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::map::{Filter, Map, MapDataset, TryMap};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::Result;
use crate::exec::Runtime;

/// One epoch of a [`MapDataset`] in index order: see [`MapDataset::to_iter`].
///
/// Its own `map` and `filter` stay in front of the border: they are evaluated wherever the executor likes, chunk by
/// chunk, and the order is put back.
#[must_use = "datasets are lazy and do nothing until read"]
pub struct Stream<D> {
    dataset: Arc<D>,
    stage: StageId,
}

impl<D: MapDataset + 'static> Stream<D> {
    pub(in crate::dataset) fn new(dataset: Arc<D>) -> Self {
        let stage = stage_after(&[&dataset]);
        Self { dataset, stage }
    }

    /// What it reads, to put more elementwise stages on top.
    #[cfg(feature = "text")]
    pub(crate) fn into_dataset(self) -> Arc<D> {
        self.dataset
    }

    /// Applies `f` to every element, in parallel where the executor has threads.
    pub fn map<U, F>(self, f: F) -> Stream<Map<Arc<D>, F>>
    where
        U: Send + 'static,
        F: Fn(D::Item) -> U + Send + Sync + 'static,
    {
        self.dataset.map(f).to_iter()
    }

    /// Applies `f`, which may fail, to every element, in parallel where the executor has threads.
    pub fn try_map<U, F>(self, f: F) -> Stream<TryMap<Arc<D>, F>>
    where
        U: Send + 'static,
        F: Fn(D::Item) -> Result<U> + Send + Sync + 'static,
    {
        self.dataset.try_map(f).to_iter()
    }

    /// Keeps the elements for which `predicate` holds.
    pub fn filter<P>(self, predicate: P) -> Stream<Filter<Arc<D>, P>>
    where
        P: Fn(&D::Item) -> bool + Send + Sync + 'static,
    {
        self.dataset.filter(predicate).to_iter()
    }
}

impl<D: Stage> Stage for Stream<D> {
    fn name(&self) -> &'static str {
        "to_iter"
    }
    fn role(&self) -> Role {
        Role::Order
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.dataset]
    }
    fn is_border(&self) -> bool {
        true
    }
}

impl<D> IterDataset for Stream<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    type Item = D::Item;
    type Iter = StreamIter<D>;

    fn iter(&self, run: &Runtime) -> Result<StreamIter<D>> {
        Ok(StreamIter { roots: Roots::new(self.dataset.clone(), run, self.stage), stage: self.stage })
    }
}

/// A pass over a [`Stream`].
pub struct StreamIter<D: MapDataset> {
    roots: Roots<D>,
    stage: StageId,
}

/// Where a [`StreamIter`] is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamState {
    /// The index of the dataset that is read next; empty slots count.
    pub next_index: u64,
}

impl<D> DatasetIterator for StreamIter<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    type Item = D::Item;
    type State = StreamState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<D::Item>> {
        while let Some(slot) = self.roots.next(cx) {
            if let Some(element) = slot? {
                cx.produced(self.stage, 1, 0);
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    fn state(&self) -> StreamState {
        StreamState { next_index: self.roots.position() }
    }

    fn restore(&mut self, state: StreamState, _: &mut Cx) -> Result<()> {
        self.roots.seek(state.next_index)
    }
}

impl<D> fmt::Debug for Stream<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl<D: MapDataset> fmt::Debug for StreamIter<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamIter").finish_non_exhaustive()
    }
}
