//! What stages that change only the order do with many indices.

use super::{GetStacked, Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::element::{Name, Ragged, Stack};

/// The elements of `parent` at `places`, counted as those of `stage`.
pub(super) fn passed<D: MapDataset>(parent: &D, places: &[u64], stage: StageId, cx: &mut Cx) -> Many<D::Item> {
    let many = parent.get_many(places, cx);
    cx.produced(stage, many.items().len() as u64, 0);
    many
}

/// The batch of the elements of `parent` at `places`, if it is to be had, counted as those of `stage`.
pub(super) fn stacked<D>(parent: &D, places: &[u64], stage: StageId, cx: &mut Cx) -> GetStacked<D::Item>
where
    D: MapDataset<Item: Stack>,
{
    let batch = parent.get_stacked(places, cx)?;
    cx.produced(stage, batch.len as u64, 0);
    Some(batch)
}

/// The rows of `parent` at `places`, if they are to be had without elements, counted as those of `stage`.
pub(super) fn ragged<D>(parent: &D, places: &[u64], names: &[Name], stage: StageId, cx: &mut Cx) -> Option<Ragged>
where
    D: MapDataset,
{
    let rows = parent.get_ragged(places, names, cx)?;
    cx.produced(stage, rows.len() as u64, 0);
    Some(rows)
}

/// Where `place` says that each index is found; `None` if it has no answer for one of them, so that none is left out
/// by mistake: the stage then looks at them one by one.
#[inline]
pub(super) fn places(indices: &[u64], place: impl Fn(u64) -> Option<u64>) -> Option<Vec<u64>> {
    let mut places = Vec::with_capacity(indices.len());
    for &index in indices {
        places.push(place(index)?);
    }
    Some(places)
}
