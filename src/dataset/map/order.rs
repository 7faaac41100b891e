//! Stages that change only the order. [`Ordered`] makes a stage of an [`Order`].

use std::borrow::Cow;
use std::ops::Range;

use super::{BulkRead, GetStacked, Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::blocks::Blocks;
use crate::dataset::memory::Memory;
use crate::dataset::node::{Comes, Describe, Indices, Moves, Node, Period};
use crate::dataset::run::upcoming::{Record, Upcoming, bring};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::element::{Name, Ragged, Stack};
use crate::error::{Error, Result};

/// A change of order: maps each index to an index of the parent. [`Ordered`] makes a stage of it.
///
/// Indices of the stage and of the parent continue over epochs: indices past their lengths belong to later epochs.
///
/// ```
/// use gristmill::{Result, dataset::map::{Order, Ordered, Range}, prelude::*};
///
/// /// Neighbours change places.
/// struct Swap;
///
/// impl Order for Swap {
///     fn name(&self) -> &'static str {
///         "swap"
///     }
///     fn place(&self, index: u64) -> Result<Option<u64>> {
///         Ok(Some(index ^ 1))
///     }
///     fn inverse(&self, place: u64) -> Result<Option<u64>> {
///         Ok(Some(place ^ 1))
///     }
/// }
///
/// let ds = Range::new(0, 4).pipe(|parent| Ordered::new(parent, |_| Swap));
/// assert_eq!(ds.collect()?, [1, 0, 3, 2]);
/// # Ok::<(), gristmill::Error>(())
/// ```
#[expect(unused_variables, reason = "provided methods ignore their arguments")]
pub trait Order: Send + Sync {
    /// Whether the order is the crate's own code: see [`Node::is_native`].
    const IS_NATIVE: bool = false;
    /// Whether the time to compute places is counted in the report.
    const IS_WORK: bool = true;

    /// Returns the name of the stage: see [`Node::name`].
    fn name(&self) -> &'static str;

    /// Returns the arguments that shape the order: see [`Describe::params`].
    fn params(&self) -> String {
        String::new()
    }

    /// Returns the number of elements in one epoch, for a parent of length `parent`.
    fn len(&self, parent: u64) -> u64 {
        parent
    }

    /// Returns the parent's index for `index`; `None` if an epoch has no elements. A pure function.
    ///
    /// # Errors
    /// Arguments that [`check`](Self::check) refuses, and a place past the last index.
    fn place(&self, index: u64) -> Result<Option<u64>>;

    /// Returns [`place`](Self::place) of all `indices`; `None` if any index has no place. The caller then calls `place`
    /// for each index. Override this method if many indices at once are faster.
    fn places<'a>(&self, indices: &'a [u64]) -> Option<Cow<'a, [u64]>> {
        let mut places = Vec::with_capacity(indices.len());
        for &index in indices {
            places.push(self.place(index).ok()??);
        }
        Some(places.into())
    }

    /// Returns the index at which the parent's element at `place` comes; the first if there are several, `None` if
    /// there is none.
    ///
    /// # Errors
    /// Fails like [`place`](Self::place).
    fn inverse(&self, place: u64) -> Result<Option<u64>>;

    /// Returns true if an element may come several times in an epoch.
    #[doc(hidden)]
    fn comes_again(&self) -> bool {
        !Self::IS_NATIVE
    }

    /// Returns an index at or before all elements of the parent from `place` on: see [`Moves::lower`]. An order that changes
    /// the order of elements in an epoch returns the start of the epoch.
    #[doc(hidden)]
    fn lower(&self, place: u64) -> Option<u64> {
        self.inverse(place).ok()?
    }

    /// Returns the lengths of the first epochs, if each epoch has the elements of the first: see [`Moves::period`].
    #[doc(hidden)]
    fn period(&self) -> Option<Period> {
        None
    }

    /// Returns the places of `indices`, if only this process has the list of places. They are then sent to other
    /// processes.
    #[doc(hidden)]
    fn listed(&self, indices: Range<u64>) -> Option<Vec<u64>> {
        None
    }

    /// Returns true if the order reads only few of the parent's elements, so that readahead would be wasted: see
    /// [`RandomAccess::bring`](super::RandomAccess::bring).
    #[doc(hidden)]
    fn is_apart(&self) -> bool {
        false
    }

    /// Returns the memory held by the order: see [`Node::memory`].
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Returns the blocks of `parent` that stay together: see [`Moves::blocks`].
    fn blocks(&self, parent: &dyn Stage) -> Option<Blocks> {
        None
    }

    /// Returns true if the order reads all elements of a few blocks of the source before other blocks: see
    /// [`Upcoming::in_blocks`].
    fn keeps_blocks(&self) -> bool {
        false
    }

    /// Describes the quality of the order: see [`Describe::mixing`].
    fn mixing(&self) -> Option<String> {
        None
    }

    /// Returns a remark for the user about this stage after `parent`: see [`Describe::remark`].
    fn remark(&self, parent: &dyn Stage) -> Option<String> {
        None
    }

    /// Returns the seed that this stage sets for later stages: see [`Node::seed_root`].
    fn seed_root(&self) -> Option<u32> {
        None
    }

    /// Checks the arguments: see [`Describe::check`].
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the value and the limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The elements of `D` in the order `O`: `shuffle`, `slice`, `repeat` and all other orders of one parent.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Ordered<D, O> {
    pub(in crate::dataset) parent: D,
    pub(super) order: O,
    stage: StageId,
}

impl<D: Stage, O: Order> Ordered<D, O> {
    /// Makes a stage that reads `parent` in the order returned by `order(&parent)`.
    pub fn new(parent: D, order: impl FnOnce(&D) -> O) -> Self {
        Self { stage: stage_after(&[&parent]), order: order(&parent), parent }
    }

    /// Returns a place, as work of the stage.
    #[inline]
    fn place(&self, index: u64, cx: &mut Cx) -> Result<Option<u64>> {
        let find = || self.order.place(index);
        let place = if O::IS_WORK { cx.consumed(self.stage, find) } else { find() };
        place.map_err(|error| self.blamed(error, cx))
    }

    #[cold]
    fn blamed(&self, error: Error, cx: &Cx) -> Error {
        cx.blame(self.stage, self.order.name(), error)
    }

    /// Loads the records that are read now, without their neighbours, if the order reads only few records.
    #[inline]
    fn bring(&self, places: &[u64]) {
        if self.order.is_apart() {
            bring(&self.parent, places);
        }
    }

    /// Returns the places of all `indices`, as work of the stage; `None` if any index has no place.
    fn places<'a>(&self, indices: &'a [u64], cx: &mut Cx) -> Option<Cow<'a, [u64]>> {
        let find = || self.order.places(indices);
        if O::IS_WORK { cx.consumed_many(self.stage, indices.len(), find) } else { find() }
    }
}

impl<D: Stage, O: Order> Stage for Ordered<D, O> {
    fn node(&self) -> Node<'_> {
        Node {
            describe: self,
            seed_root: self.order.seed_root(),
            is_native: O::IS_NATIVE,
            indices: Indices::Moved(self),
            memory: self.order.memory(),
            ..Node::new(self.order.name(), Role::Order)
        }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D: Stage, O: Order> Describe for Ordered<D, O> {
    fn params(&self) -> String {
        self.order.params()
    }
    fn mixing(&self) -> Option<String> {
        self.order.mixing()
    }
    fn remark(&self) -> Option<String> {
        self.order.remark(&self.parent)
    }
    fn check(&self) -> Result<()> {
        self.order.check()
    }
}

impl<D: Stage, O: Order> Moves for Ordered<D, O> {
    fn will_read(&self, next: Upcoming<'_>) {
        if let Some(places) = self.order.places(next.indices()) {
            let next = if self.order.keeps_blocks() { next.in_blocks() } else { next };
            (&self.parent as &dyn Stage).will_read(next.at(&places));
        }
    }
    fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        self.order.inverse((&self.parent as &dyn Stage).comes_at(record, epoch)?).ok()?
    }
    fn comes_to(&self, _: usize, index: u64) -> Comes {
        match self.order.inverse(index) {
            Ok(index) if !self.order.comes_again() => index.into(),
            _ => Comes::Unknown,
        }
    }
    fn lower(&self, _: usize, index: u64) -> Option<u64> {
        self.order.lower(index)
    }
    fn period(&self) -> Option<Period> {
        self.order.period()
    }
    fn blocks(&self) -> Option<Blocks> {
        self.order.blocks(&self.parent)
    }
    fn listed(&self, indices: Range<u64>) -> Option<Vec<u64>> {
        self.order.listed(indices)
    }
}

impl<D: MapDataset, O: Order> MapDataset for Ordered<D, O> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.order.len(self.parent.len())
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let Some(place) = self.place(index, cx)? else { return Ok(None) };
        self.bring(&[place]);
        let element = self.parent.get(place, cx)?;
        if element.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
        let Some(places) = self.places(indices, cx) else {
            return Many::one_by_one(indices, |index| self.get(index, cx));
        };
        self.bring(&places);
        let many = self.parent.get_many(&places, cx);
        cx.produced(self.stage, many.items().len() as u64, 0);
        many
    }

    reads_in_bulk!();
}

impl<D: MapDataset, O: Order> BulkRead<D::Item> for Ordered<D, O> {
    fn get_ragged(&self, indices: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        let rows = self.parent.bulk()?.get_ragged(&self.places(indices, cx)?, names, cx)?;
        cx.produced(self.stage, rows.len() as u64, 0);
        Some(rows)
    }

    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<D::Item>
    where
        D::Item: Stack,
    {
        let places = self.places(indices, cx)?;
        self.bring(&places);
        let batch = self.parent.bulk()?.get_stacked(&places, cx)?;
        cx.produced(self.stage, batch.len as u64, 0);
        Some(batch)
    }

    fn get_ragged_records(&self, source: usize, records: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        self.parent.bulk()?.get_ragged_records(source, records, names, cx)
    }

    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<D::Item>> {
        self.parent.bulk()?.get_records(source, records, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::dataset::map::Range as Numbers;

    #[test]
    fn an_index_past_the_last_is_blamed_on_its_stage() {
        let ds = || Numbers::new(0, 100);
        let (last, list) = (u64::MAX - 99..=u64::MAX, [7, 0, 7]);
        let stages = [
            ds().slice(..10).boxed(),
            ds().shard(1, 3).boxed(),
            ds().select_indices(list).boxed(),
            ds().window_shuffle(50, 1).boxed(),
            ds().block_shuffle(2, 1).block_size(9).boxed(),
        ];
        for ds in stages {
            let indices: Vec<u64> = last.clone().collect();
            let failed = |slot: Result<Option<i64>>| slot.err().and_then(|error| Some(error.stage_name()?.to_owned()));
            let alone: Vec<_> = indices.iter().map(|&index| failed(ds.get(index, &mut Cx::default()))).collect();
            let together: Vec<_> = ds.get_many(&indices, &mut Cx::default()).into_iter().map(failed).collect();
            assert_eq!(alone, together);
            let stage = format!("1 {}", ds.node().name);
            assert!(alone.iter().flatten().any(|name| *name == stage), "{stage}");
            let failures = indices.iter().filter(|&&index| ds.get(index, &mut Cx::default()).is_err()).count();
            assert_eq!(failures, alone.iter().flatten().count(), "{stage}");
        }
    }

    #[test]
    fn what_passes_a_seed_is_counted() {
        let recorder = crate::cx::Recorder::new(3);
        let mut cx = Cx::new(&recorder);
        let ds = Numbers::new(0, 9).seed(3).shuffle(None);
        ds.get(0, &mut cx).unwrap();
        ds.get_many(&[1, 2, 3], &mut cx);
        cx.flush();
        let counts: Vec<u64> = recorder.totals().iter().map(|tally| tally.counts.elements).collect();
        assert_eq!(counts, [4, 4, 4]);
    }
}
