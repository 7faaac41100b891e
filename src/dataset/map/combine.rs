//! Stages that combine several datasets of one type. [`Combined`] makes a stage of a [`Combine`].

use super::parents::Parents;
use super::{BulkRead, Many, MapDataset};
use crate::cx::Cx;
use crate::dataset::blocks::Blocks;
use crate::dataset::node::{Comes, Describe, Indices, Moves, Node};
use crate::dataset::run::upcoming::{Record, Upcoming};
use crate::dataset::stage::{Role, Stage};
use crate::element::{Name, Ragged};
use crate::error::Result;

/// A choice among several datasets: maps each index to a dataset and an index in that dataset. [`Combined`] makes a
/// stage of it.
///
/// Indices past a length belong to later epochs.
#[expect(clippy::len_without_is_empty, reason = "the length is that of a dataset")]
#[expect(unused_variables, reason = "provided methods ignore their arguments")]
pub trait Combine: Send + Sync {
    /// Whether the choice is the crate's own code: see [`Node::is_native`].
    const IS_NATIVE: bool = false;

    /// Returns the name of the stage: see [`Node::name`].
    fn name(&self) -> &'static str;

    /// Returns the arguments that shape the order of `count` datasets: see [`Describe::params`].
    fn params(&self, count: usize) -> String;

    /// Returns the names of `count` datasets, if the report counts their elements.
    #[doc(hidden)]
    fn components(&self, count: usize) -> Vec<String> {
        Vec::new()
    }

    /// Returns the number of elements in one epoch.
    fn len(&self) -> u64;

    /// Returns the dataset and the index in the dataset for `index`; `None` if an epoch has no elements. A pure
    /// function.
    ///
    /// # Errors
    /// Arguments that [`check`](Self::check) refuses, and a place past the last index.
    fn place(&self, index: u64) -> Result<Option<(usize, u64)>>;

    /// Returns the index at which element `place` of dataset `which` comes, if it is known.
    fn inverse(&self, which: usize, place: u64) -> Option<u64> {
        None
    }

    /// Returns the blocks of `parents` that stay together: see [`Moves::blocks`].
    fn blocks(&self, parents: &[&dyn Stage]) -> Option<Blocks> {
        None
    }

    /// Checks the arguments for datasets of the lengths `lens`: see [`Describe::check`].
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the value and the limit.
    fn check(&self, lens: &[u64]) -> Result<()>;
}

/// The elements of several datasets `D`, chosen by `C`: `mix`, `concatenate` and `select`.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Combined<D, C> {
    pub(super) parents: Parents<D>,
    pub(super) combine: C,
}

impl<D: MapDataset, C: Combine> Combined<D, C> {
    /// Returns the places of all `indices`; `None` if any index has no place.
    fn places(&self, indices: &[u64]) -> Option<Vec<(usize, u64)>> {
        let mut places = Vec::with_capacity(indices.len());
        for &index in indices {
            places.push(self.combine.place(index).ok()??);
        }
        Some(places)
    }
}

impl<D: MapDataset, C: Combine> Stage for Combined<D, C> {
    fn node(&self) -> Node<'_> {
        Node {
            describe: self,
            is_native: C::IS_NATIVE,
            indices: Indices::Moved(self),
            ..Node::new(self.combine.name(), Role::Order)
        }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.parents.stages()
    }
}

impl<D: MapDataset, C: Combine> Describe for Combined<D, C> {
    fn params(&self) -> String {
        self.combine.params(self.parents.count())
    }
    fn components(&self) -> Vec<String> {
        self.combine.components(self.parents.count())
    }
    fn check(&self) -> Result<()> {
        self.combine.check(&self.parents.lens().collect::<Vec<_>>())
    }
}

impl<D: MapDataset, C: Combine> Moves for Combined<D, C> {
    fn will_read(&self, next: Upcoming<'_>) {
        if let Some(places) = self.places(next.indices()) {
            self.parents.will_read(&places, next);
        }
    }
    fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        let parents = self.parents.stages().into_iter().enumerate();
        parents.into_iter().find_map(|(which, parent)| self.combine.inverse(which, parent.comes_at(record, epoch)?))
    }
    fn comes_to(&self, parent: usize, index: u64) -> Comes {
        if C::IS_NATIVE { self.combine.inverse(parent, index).into() } else { Comes::Unknown }
    }
    fn blocks(&self) -> Option<Blocks> {
        self.combine.blocks(&self.parents.stages())
    }
}

impl<D: MapDataset, C: Combine> MapDataset for Combined<D, C> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.combine.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        match cx.consumed(self.parents.stage, || self.combine.place(index)) {
            Ok(Some((which, at))) => self.parents.pass(which, at, cx),
            Ok(None) => Ok(None),
            Err(error) => Err(cx.blame(self.parents.stage, self.combine.name(), error)),
        }
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
        match cx.consumed_many(self.parents.stage, indices.len(), || self.places(indices)) {
            Some(places) => self.parents.pass_many(&places, cx),
            None => Many::one_by_one(indices, |index| self.get(index, cx)),
        }
    }

    reads_in_bulk!();
}

impl<D: MapDataset, C: Combine> BulkRead<D::Item> for Combined<D, C> {
    fn get_ragged_records(&self, source: usize, records: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        self.parents.get_ragged_records(source, records, names, cx)
    }

    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<D::Item>> {
        self.parents.get_records(source, records, cx)
    }
}
