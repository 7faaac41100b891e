//! Stand-ins for the elements of a prefix, by its indices.

use std::sync::Arc;

use super::Planning;
use super::keys::PrefixKeys;
use super::stand_in::{place, stand_ins};
use crate::cx::Cx;
use crate::dataset::map::MapDataset;
use crate::dataset::stage::{Role, Stage};
use crate::element::{Element, Name, Ragged, StandsFor};
use crate::error::Result;
use crate::keys::{Key, KeyBlock};

/// Indices that are looked up together: those behind one that does not come as a row have been looked up for nothing.
const TOGETHER: usize = 256;

/// What stands for the elements of a prefix that yields one at most for each index.
pub(in crate::dataset) struct Keyed(Keys);

/// What stands for the elements of a prefix that yields any number for each index.
pub(in crate::dataset) struct KeyedPieces(Keys);

struct Keys {
    keys: Arc<PrefixKeys>,
    len: u64,
    leaf: u32,
    names: Vec<Name>,
}

impl Keys {
    fn new(keys: Arc<PrefixKeys>, len: u64, planning: &Planning<'_>) -> Self {
        Self { keys, len, leaf: planning.take_leaf(), names: planning.names.to_vec() }
    }

    /// Stands for the elements of `indices`, up to the first that is bad or yields several, as rows; `None` where none can come so.
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
        let elements = self.elements(indices, &block);
        let rows = elements.tags.len();
        // Bad ones have no lengths, and several follow those that are taken.
        let lens = block.lens().get(..rows * names.len())?;
        if rows == 0 { None } else { stand_ins(elements, names.len(), lens).ok() }
    }

    /// The elements of `indices` up to the first that is bad or several.
    fn elements(&self, indices: &[u64], block: &KeyBlock) -> StandsFor {
        let place = place(self.leaf, 0);
        if block.is_one_each() {
            let tags = indices.iter().take(block.len()).map(|&index| [index, place]).collect();
            return StandsFor { tags, ends: (1..=block.len() as u32).collect() };
        }
        let (mut tags, mut ends) = (Vec::new(), Vec::new());
        for ((end, index), (key, _)) in (1..).zip(indices).zip(block.iter()) {
            match key {
                Key::Elements(0) => {}
                Key::Elements(1) => {
                    tags.push([*index, place]);
                    ends.push(end);
                }
                Key::Elements(_) | Key::Bad => break,
            }
        }
        StandsFor { tags, ends }
    }

    /// Stands for each element of an index.
    fn of(&self, slot: u64) -> Result<Vec<Element>> {
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

/// Says of a dataset of stand-ins what a stage says of itself.
macro_rules! stage_of_keys {
    ($name:ident) => {
        impl Stage for $name {
            fn name(&self) -> &'static str {
                "keys"
            }
            fn role(&self) -> Role {
                Role::Source
            }
            fn is_native(&self) -> bool {
                true
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
    type Item = Element;

    fn len(&self) -> u64 {
        self.0.len
    }

    fn get(&self, index: u64, _: &mut Cx) -> Result<Option<Element>> {
        Ok(self.0.of(index)?.pop())
    }

    fn get_ragged(&self, indices: &[u64], names: &[Name], _: &mut Cx) -> Option<Ragged> {
        self.0.rows(indices, names)
    }
}

impl MapDataset for KeyedPieces {
    type Item = Vec<Element>;

    fn len(&self) -> u64 {
        self.0.len
    }

    fn get(&self, index: u64, _: &mut Cx) -> Result<Option<Vec<Element>>> {
        self.0.of(index).map(Some)
    }
}
