//! Many indices of stages that change only the order.

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

/// The methods of [`MapDataset`] for many indices, of a stage with a `parent`, a `stage` and `places(indices)`; `timed` where finding
/// places is work that the report counts.
macro_rules! through_places {
    (timed) => {
        through_places!(@methods |this: &Self, indices: &[u64], cx: &mut Cx| {
            cx.consumed_many(this.stage, indices.len(), || this.places(indices))
        });
    };
    (untimed) => {
        through_places!(@methods |this: &Self, indices: &[u64], _: &mut Cx| this.places(indices));
    };
    (@methods $places:expr) => {
        fn get_many(&self, indices: &[u64], cx: &mut $crate::cx::Cx) -> $crate::element::Many<Self::Item> {
            match ($places)(self, indices, cx) {
                Some(places) => $crate::dataset::map::order::passed(&self.parent, &places, self.stage, cx),
                None => $crate::element::Many::one_by_one(indices, |index| self.get(index, cx)),
            }
        }

        fn get_stacked(
            &self,
            indices: &[u64],
            cx: &mut $crate::cx::Cx,
        ) -> $crate::dataset::map::GetStacked<Self::Item>
        where
            Self::Item: $crate::element::Stack,
        {
            let places = ($places)(self, indices, cx)?;
            $crate::dataset::map::order::stacked(&self.parent, &places, self.stage, cx)
        }

        fn get_ragged(
            &self,
            indices: &[u64],
            names: &[$crate::element::Name],
            cx: &mut $crate::cx::Cx,
        ) -> Option<$crate::element::Ragged> {
            let places = ($places)(self, indices, cx)?;
            $crate::dataset::map::order::ragged(&self.parent, &places, names, self.stage, cx)
        }
    };
}
pub(super) use through_places;
