//! The streams of an interleave or of lanes: a list, or made when their turn comes.

use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::map::MapDataset;
use crate::dataset::memory::Memory;
use crate::dataset::run::siblings::offsets;
use crate::dataset::stage::Stage;
use crate::error::Result;
use crate::exec::Runtime;

/// Origin of the streams of an [`interleave`](super::interleave()), or of [`lanes`](super::lanes()).
pub trait OpenLane: Send + Sync + 'static {
    /// A pass over one.
    type Iter: DatasetIterator<Item: Send + 'static> + 'static;

    /// Number of streams.
    fn count(&self) -> u64;

    /// Stages that stand before the streams in the pipeline.
    fn nodes(&self) -> Vec<&dyn Stage>;

    /// Starts a pass over stream `k`, or `None` where there is nothing in its place.
    ///
    /// # Errors
    /// The stream cannot be opened.
    fn open(&self, k: u64, run: &Runtime, cx: &mut Cx) -> Result<Option<Self::Iter>>;

    /// In a worker, which reads nothing in order, so that no stream's turn ever comes: starts a pass over each that has its
    /// place in the pipeline, because the parent asks for the elements in front of their borders.
    ///
    /// # Errors
    /// A stream cannot be opened.
    fn open_all(&self, _run: &Runtime) -> Result<()> {
        Ok(())
    }

    /// Memory of open streams that no stage in the pipeline tells of; `None` if that is not known.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Calls `work` on stream `k` with the context it counts in.
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
pub struct MadeLanes<M>(M);

impl<M> MadeLanes<M> {
    pub(super) fn new(datasets: M) -> Self {
        Self(datasets)
    }
}

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

    /// Their stages have no ids in this pipeline: they count nowhere, and their time is that of the stage.
    fn enter<R>(&self, _: u64, stage: StageId, cx: &mut Cx, work: impl FnOnce(&mut Cx) -> R) -> R {
        cx.begin_element();
        cx.consumed(stage, || work(&mut Cx::default()))
    }
}
