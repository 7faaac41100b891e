//! The streams of an interleave or of lanes: a list, or streams that are made when their turn comes.

use super::{DatasetIterator, IterDataset, IterDatasetExt};
use crate::cx::{Cx, StageId};
use crate::dataset::map::MapDataset;
use crate::dataset::memory::Memory;
use crate::dataset::run::siblings::offsets;
use crate::dataset::stage::Stage;
use crate::error::Result;
use crate::exec::Runtime;

/// Provides the streams of an [`interleave`](super::interleave()) or of [`lanes`](super::lanes()).
pub trait OpenLane: Send + Sync + 'static {
    /// Type of a pass over a stream.
    type Iter: DatasetIterator<Item: Send + 'static> + 'static;

    /// Returns the number of streams.
    fn count(&self) -> u64;

    /// Returns the stages directly before the interleave or the lanes in the pipeline.
    fn nodes(&self) -> Vec<&dyn Stage>;

    /// Starts a pass over stream `k`. Returns `None` if there is no stream at `k`.
    ///
    /// # Errors
    /// The stream cannot be opened.
    fn open(&self, k: u64, run: &Runtime, cx: &mut Cx) -> Result<Option<Self::Iter>>;

    /// Starts, in a worker, a pass over every stream that is a node of the pipeline.
    ///
    /// A worker reads nothing in order, so no stream's turn ever comes. The parent process requests elements before the
    /// borders of these streams.
    ///
    /// # Errors
    /// A stream cannot be opened.
    fn open_all(&self, _run: &Runtime) -> Result<()> {
        Ok(())
    }

    /// Returns the memory of open streams that no stage in the pipeline declares; `None` if unknown.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Calls `work` on stream `k`, with the context that counts the stream's work.
    fn enter<R>(&self, k: u64, stage: StageId, cx: &mut Cx, work: impl FnOnce(&mut Cx) -> R) -> R;
}

/// A list of streams.
#[derive(Clone, Debug)]
pub struct Lanes<D> {
    datasets: Vec<D>,
    offsets: Vec<usize>,
}

impl<D: Stage> Lanes<D> {
    pub(super) fn new(datasets: Vec<D>) -> Self {
        let offsets = offsets(&datasets).collect();
        Self { datasets, offsets }
    }
}

impl<D: IterDataset + 'static> OpenLane for Lanes<D> {
    type Iter = D::Iter;

    fn count(&self) -> u64 {
        self.datasets.len() as u64
    }

    fn nodes(&self) -> Vec<&dyn Stage> {
        self.datasets.iter().map(|d| d as &dyn Stage).collect()
    }

    fn memory(&self) -> Option<Memory> {
        Some(Memory::NOTHING)
    }

    fn open_all(&self, run: &Runtime) -> Result<()> {
        self.datasets.iter().zip(&self.offsets).try_for_each(|(d, offset)| d.iter(&run.offset(*offset)).map(drop))
    }

    fn open(&self, k: u64, run: &Runtime, _: &mut Cx) -> Result<Option<D::Iter>> {
        let k = k as usize;
        self.datasets[k].iter(&run.offset(self.offsets[k])).map(Some)
    }

    fn enter<R>(&self, k: u64, _: StageId, cx: &mut Cx, work: impl FnOnce(&mut Cx) -> R) -> R {
        cx.within(self.offsets[k as usize], work)
    }
}

/// Streams made by a [`MapDataset`].
#[derive(Clone, Debug)]
pub struct MadeLanes<M>(pub(super) M);

impl<M: MapDataset<Item: IterDataset + 'static> + 'static> OpenLane for MadeLanes<M> {
    type Iter = <M::Item as IterDataset>::Iter;

    fn count(&self) -> u64 {
        self.0.len()
    }

    fn nodes(&self) -> Vec<&dyn Stage> {
        vec![&self.0]
    }

    fn open(&self, k: u64, run: &Runtime, cx: &mut Cx) -> Result<Option<Self::Iter>> {
        cx.begin_element();
        let Some(dataset) = self.0.get(k, cx).map_err(|e| e.index(k))? else { return Ok(None) };
        dataset.check_all()?;
        dataset.iter(&run.unrecorded()).map(Some)
    }

    /// Calls `work` with a separate context: the stream's stages have no ids in this pipeline, so their counts are
    /// discarded. The time counts for `stage`.
    fn enter<R>(&self, _: u64, stage: StageId, cx: &mut Cx, work: impl FnOnce(&mut Cx) -> R) -> R {
        cx.begin_element();
        cx.consumed(stage, || work(&mut Cx::default()))
    }
}
