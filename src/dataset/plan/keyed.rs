//! Stand-ins for the elements of a prefix, by index.

use std::marker::PhantomData;
use std::sync::Arc;

use super::prefix_keys::PrefixKeys;
use super::stand_in::stand_ins;
use super::{Census, Planning, StandIn};
use crate::cx::{Cx, ElementId};
use crate::dataset::map::{BulkRead, MapDataset};
use crate::dataset::node::Node;
use crate::dataset::stage::{Role, Stage};
use crate::element::{Name, Ragged, RowIds};
use crate::error::Result;
use crate::exec::PlansOnly;
use crate::keys::{Key, KeyBlock};

/// Indices per lookup. Lookups after the first index that has no row are wasted.
const TOGETHER: usize = 256;

/// Stand-ins for the elements of a prefix. An item is a [`StandIn`] if an index yields at most one element, and a list of
/// stand-ins otherwise.
pub(in crate::dataset) struct Keyed<T> {
    keys: Arc<PrefixKeys>,
    len: u64,
    /// The number of the border.
    border: u32,
    names: Arc<[Name]>,
    /// Present if reads are noted: see [`PlansOnly::note_read`].
    plans_only: Option<Arc<PlansOnly>>,
    item: PhantomData<fn() -> T>,
}

impl<T> Keyed<T> {
    pub(in crate::dataset) fn new(keys: Arc<PrefixKeys>, len: u64, planning: &Planning<'_>) -> Self {
        let border = planning.take_border();
        if let Some(census) = Census::of(&planning.run) {
            census.add(border, &keys);
        }
        let plans_only = planning.run.plans_only().filter(|_| !planning.run.has_census()).cloned();
        Self { keys, len, border, names: planning.names.into(), plans_only, item: PhantomData }
    }

    /// Returns a stand-in for each element of an index.
    fn of(&self, index: u64) -> Result<Vec<StandIn>> {
        self.note_read(&[index]);
        self.keys.note_read(index);
        self.keys.stand_ins(self.border, index, &self.names)
    }

    /// Notes that `indices` are read, if reads are noted.
    fn note_read(&self, indices: &[u64]) {
        if let (Some(plans), Some(last)) = (&self.plans_only, indices.iter().max()) {
            plans.note_read(self.border, last.saturating_add(1));
        }
    }

    /// Returns the elements of `indices` up to the first index that is bad or yields several elements.
    fn ids(&self, indices: &[u64], block: &KeyBlock) -> RowIds {
        let id = |&index: &u64| ElementId::new(self.border, index, 0);
        if block.is_one_each() {
            let elements = indices.iter().take(block.len()).map(id).collect();
            return RowIds { elements, ends: (1..=block.len() as u32).collect() };
        }
        let (mut elements, mut ends) = (Vec::new(), Vec::new());
        for ((end, index), (key, _)) in (1..).zip(indices).zip(block.iter()) {
            match key {
                Key::Elements(0) => {}
                Key::Elements(1) => {
                    elements.push(id(index));
                    ends.push(end);
                }
                Key::Elements(_) | Key::Bad => break,
            }
        }
        RowIds { elements, ends }
    }
}

impl<T> Stage for Keyed<T> {
    fn node(&self) -> Node<'_> {
        Node { is_native: true, ..Node::new("keys", Role::Source) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }
}

impl MapDataset for Keyed<StandIn> {
    type Item = StandIn;

    fn len(&self) -> u64 {
        self.len
    }

    fn get(&self, index: u64, _: &mut Cx) -> Result<Option<StandIn>> {
        Ok(self.of(index)?.pop())
    }

    fn bulk(&self) -> Option<&dyn BulkRead<StandIn>> {
        Some(self)
    }
}

impl BulkRead<StandIn> for Keyed<StandIn> {
    /// Returns stand-ins for the elements of `indices` as rows, up to the first index that is bad or yields several
    /// elements. Returns `None` if there is no such row, or if `names` are not the requested arrays.
    fn get_ragged(&self, indices: &[u64], names: &[Name], _: &mut Cx) -> Option<Ragged> {
        if *names != *self.names {
            return None;
        }
        self.note_read(indices);
        let mut block = KeyBlock::new(names.len());
        for some in indices.chunks(TOGETHER) {
            self.keys.read(some, &mut block).ok()?;
            if !block.is_one_each() && block.iter().any(|(key, _)| !matches!(key, Key::Elements(0 | 1))) {
                break;
            }
        }
        let ids = self.ids(indices, &block);
        let rows = ids.elements.len();
        // A bad record has no lengths. The lengths of an index with several elements come after the lengths of the
        // rows.
        let lens = block.lens().get(..rows * names.len())?;
        if rows == 0 { None } else { stand_ins(ids, names.len(), lens).ok() }
    }
}

impl MapDataset for Keyed<Vec<StandIn>> {
    type Item = Vec<StandIn>;

    fn len(&self) -> u64 {
        self.len
    }

    fn get(&self, index: u64, _: &mut Cx) -> Result<Option<Vec<StandIn>>> {
        self.of(index).map(Some)
    }
}
