//! Stand-ins for the elements of a prefix, by index.

use std::sync::Arc;

use super::keys::PrefixKeys;
use super::stand_in::stand_ins;
use super::{Planning, StandIn};
use crate::cx::{Cx, ElementId};
use crate::dataset::map::{BulkRead, MapDataset};
use crate::dataset::node::Node;
use crate::dataset::stage::{Role, Stage};
use crate::element::{Name, Ragged, RowIds};
use crate::error::Result;
use crate::keys::{Key, KeyBlock};

/// Indices per lookup. Lookups after the first index that has no row are wasted.
const TOGETHER: usize = 256;

/// Stand-ins for the elements of a prefix that yields at most one element per index.
pub(in crate::dataset) struct Keyed(Keys);

/// Stand-ins for the elements of a prefix that yields several elements per index.
pub(in crate::dataset) struct KeyedPieces(Keys);

struct Keys {
    keys: Arc<PrefixKeys>,
    len: u64,
    leaf: u32,
    names: Arc<[Name]>,
}

impl Keys {
    fn new(keys: Arc<PrefixKeys>, len: u64, planning: &Planning<'_>) -> Self {
        Self { keys, len, leaf: planning.take_leaf(), names: planning.names.into() }
    }

    /// Returns stand-ins for the elements of `indices` as rows, up to the first index that is bad or yields several
    /// elements. Returns `None` if there is no such row, or if `names` are not the requested arrays.
    fn rows(&self, indices: &[u64], names: &[Name]) -> Option<Ragged> {
        if *names != *self.names {
            return None;
        }
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

    /// Returns the elements of `indices` up to the first index that is bad or yields several elements.
    fn ids(&self, indices: &[u64], block: &KeyBlock) -> RowIds {
        let id = |&index: &u64| ElementId::new(self.leaf, index, 0);
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

    /// Returns a stand-in for each element of an index.
    fn of(&self, slot: u64) -> Result<Vec<StandIn>> {
        self.keys.stand_ins(self.leaf, slot, &self.names)
    }
}

impl Keyed {
    pub(in crate::dataset) fn new(keys: Arc<PrefixKeys>, len: u64, planning: &Planning<'_>) -> Self {
        Self(Keys::new(keys, len, planning))
    }
}

impl KeyedPieces {
    pub(in crate::dataset) fn new(keys: Arc<PrefixKeys>, len: u64, planning: &Planning<'_>) -> Self {
        Self(Keys::new(keys, len, planning))
    }
}

/// Implements [`Stage`] for a dataset of stand-ins.
macro_rules! stage_of_keys {
    ($name:ident) => {
        impl Stage for $name {
            fn node(&self) -> Node<'_> {
                Node { is_native: true, ..Node::new("keys", Role::Source) }
            }
            fn parents(&self) -> Vec<&dyn Stage> {
                Vec::new()
            }
        }
    };
}
stage_of_keys!(Keyed);
stage_of_keys!(KeyedPieces);

impl MapDataset for Keyed {
    type Item = StandIn;

    fn len(&self) -> u64 {
        self.0.len
    }

    fn get(&self, index: u64, _: &mut Cx) -> Result<Option<StandIn>> {
        Ok(self.0.of(index)?.pop())
    }

    fn bulk(&self) -> Option<&dyn BulkRead<StandIn>> {
        Some(self)
    }
}

impl BulkRead<StandIn> for Keyed {
    fn get_ragged(&self, indices: &[u64], names: &[Name], _: &mut Cx) -> Option<Ragged> {
        self.0.rows(indices, names)
    }
}

impl MapDataset for KeyedPieces {
    type Item = Vec<StandIn>;

    fn len(&self) -> u64 {
        self.0.len
    }

    fn get(&self, index: u64, _: &mut Cx) -> Result<Option<Vec<StandIn>>> {
        self.0.of(index).map(Some)
    }
}
