//! Several datasets as parents of one stage.

use super::{Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::run::pace::get_chunk;
use crate::dataset::run::siblings::offsets;
use crate::dataset::run::upcoming::Upcoming;
use crate::dataset::stage::{Stage, stage_after};
use crate::element::{Name, Ragged};
use crate::error::Result;

/// The datasets, and the first stage id of each dataset.
#[derive(Clone, Debug)]
pub(super) struct Parents<D> {
    datasets: Vec<D>,
    offsets: Vec<usize>,
    /// Id of the stage that reads the datasets.
    pub(super) stage: StageId,
}

impl<D: MapDataset> Parents<D> {
    pub(super) fn new(datasets: Vec<D>) -> Self {
        let (offsets, stage) = (offsets(&datasets).collect(), stage_after(&as_stages(&datasets)));
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

    /// Runs `run` on dataset `which`, which must exist.
    pub(super) fn in_part<R>(&self, which: usize, cx: &mut Cx, run: impl FnOnce(&D, &mut Cx) -> R) -> R {
        cx.within(self.offsets[which], |cx| run(&self.datasets[which], cx))
    }

    /// Returns element `index` of dataset `which`, which must exist.
    #[inline]
    pub(super) fn get(&self, which: usize, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        cx.within(self.offsets[which], |cx| self.datasets[which].get(index, cx))
    }

    /// Returns an element like [`get`](Self::get), and counts it for the stage.
    #[inline]
    pub(super) fn pass(&self, which: usize, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let element = self.get(which, index, cx)?;
        if element.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }

    /// Returns the elements made of `records` of the source at this address, from the dataset that contains the source.
    pub(super) fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<D::Item>> {
        (0..self.count())
            .find_map(|which| self.in_part(which, cx, |part, cx| part.bulk()?.get_records(source, records, cx)))
    }

    /// Returns rows that represent `records` of the source, if that dataset only orders them.
    pub(super) fn get_ragged_records(
        &self,
        source: usize,
        records: &[u64],
        names: &[Name],
        cx: &mut Cx,
    ) -> Option<Ragged> {
        let rows = |part: &D, cx: &mut Cx| part.bulk()?.get_ragged_records(source, records, names, cx);
        (0..self.count()).find_map(|which| self.in_part(which, cx, rows))
    }

    /// Announces the upcoming elements at `places` to the datasets.
    pub(super) fn will_read(&self, places: &[(usize, u64)], next: Upcoming<'_>) {
        let mut numbers = vec![Vec::new(); if next.is_followed() { self.count() } else { 0 }];
        if next.is_followed() {
            for (number, (which, _)) in (0..).zip(places) {
                numbers.get_mut(*which).into_iter().for_each(|numbers: &mut Vec<u32>| numbers.push(number));
            }
        }
        for (which, (indices, dataset)) in self.indices(places).iter().zip(&self.datasets).enumerate() {
            match numbers.get(which) {
                Some(numbers) => next.some(numbers, indices, |next| (dataset as &dyn Stage).will_read(next)),
                None => (dataset as &dyn Stage).will_read(next.at(indices)),
            }
        }
    }

    /// Returns the indices in `places` for each dataset. Skips places of datasets that do not exist.
    fn indices(&self, places: &[(usize, u64)]) -> Vec<Vec<u64>> {
        let mut indices = vec![Vec::new(); self.count()];
        for &(which, index) in places {
            indices.get_mut(which).into_iter().for_each(|indices| indices.push(index));
        }
        indices
    }

    /// Returns the elements at `places` (a dataset that must exist, and an index in it), and counts them for the stage.
    pub(super) fn pass_many(&self, places: &[(usize, u64)], cx: &mut Cx) -> Many<D::Item> {
        let mut parts = Vec::with_capacity(self.count());
        for (which, indices) in self.indices(places).iter().enumerate() {
            parts.push(self.in_part(which, cx, |part, cx| get_chunk(part, indices, cx)).into_iter());
        }
        // Each part has one result per requested index.
        let many: Many<D::Item> = places.iter().map(|&(which, _)| parts[which].next().unwrap_or(Ok(None))).collect();
        cx.produced(self.stage, many.items().len() as u64, 0);
        many
    }
}

fn as_stages<D: MapDataset>(datasets: &[D]) -> Vec<&dyn Stage> {
    datasets.iter().map(|d| d as &dyn Stage).collect()
}
