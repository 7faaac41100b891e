//! The numbers of a range as items.

use super::item::Item;
use crate::cx::Cx;
use crate::dataset::map::{BulkRead, Many, Range};
use crate::dataset::{MapDataset, Stage, same_stage};
use crate::error::Result;

/// A range whose numbers are items. A conversion that may fail would hold each of them back for longer than it takes to make
/// one.
#[derive(Debug)]
pub(crate) struct Numbers(pub(crate) Range);

impl Stage for Numbers {
    same_stage!(.0);
}

impl MapDataset for Numbers {
    type Item = Item;

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Item>> {
        Ok(self.0.get(index, cx)?.map(Item::Int))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Item> {
        self.0.get_many(indices, cx).map(|_, number| Item::Int(number))
    }

    reads_in_bulk!();
}

impl BulkRead<Item> for Numbers {
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<Item>> {
        Some(self.0.bulk()?.get_records(source, records, cx)?.map(|_, number| Item::Int(number)))
    }
}
