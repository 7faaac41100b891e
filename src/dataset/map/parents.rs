//! Several datasets under one stage.

use super::MapDataset;
use crate::cx::{Cx, StageId};
use crate::dataset::INFINITE;
use crate::dataset::stage::{Stage, stage_after};
use crate::error::Result;

/// The datasets, and where the stage ids of each begin.
#[derive(Clone, Debug)]
pub(super) struct Parents<D> {
    datasets: Vec<D>,
    offsets: Vec<usize>,
    /// The id of the stage on top of them.
    pub(super) stage: StageId,
}

impl<D: MapDataset> Parents<D> {
    pub(super) fn new(datasets: Vec<D>) -> Self {
        let mut offsets = Vec::with_capacity(datasets.len());
        let mut next = 0;
        for dataset in &datasets {
            offsets.push(next);
            next += (dataset as &dyn Stage).count();
        }
        let stage = stage_after(&as_stages(&datasets));
        Self { datasets, offsets, stage }
    }

    pub(super) fn count(&self) -> usize {
        self.datasets.len()
    }

    pub(super) fn lens(&self) -> impl Iterator<Item = u64> + Clone {
        self.datasets.iter().map(MapDataset::len)
    }

    pub(super) fn stages(&self) -> Vec<&dyn Stage> {
        as_stages(&self.datasets)
    }

    /// The first dataset that never ends.
    pub(super) fn first_infinite(&self) -> Option<usize> {
        self.lens().position(|len| len >= INFINITE)
    }

    /// Element `index` of dataset `which`, which exists.
    #[inline]
    pub(super) fn get(&self, which: usize, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        cx.within(self.offsets[which], |cx| self.datasets[which].get(index, cx))
    }

    /// The same, counted as an element of the stage on top.
    #[inline]
    pub(super) fn pass(&self, which: usize, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let element = self.get(which, index, cx)?;
        if element.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }
}

fn as_stages<D: MapDataset>(datasets: &[D]) -> Vec<&dyn Stage> {
    datasets.iter().map(|d| d as &dyn Stage).collect()
}
