//! Elements of native stages, as items of the package.

use super::interpreter::released;
use super::item::Item;
use crate::cx::{Cx, StageId};
use crate::dataset::iter::InPlace;
use crate::dataset::map::{BulkRead, GetStacked, Many};
use crate::dataset::{BoxMap, MapDataset, Stage, same_stage};
use crate::element::Element;
use crate::error::Result;
use crate::exec::Runtime;

/// Converts elements to items, with the name of the stage that made them. A batch of columns counts as an element.
pub(super) struct Native(pub(super) BoxMap<Element>);

impl Stage for Native {
    same_stage!(.0);
}

impl MapDataset for Native {
    type Item = Item;

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Item>> {
        Ok(released(|| self.0.get(index, cx))?.map(Item::Element))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Item> {
        released(|| self.0.get_many(indices, cx)).map(|_, element| Item::Element(element))
    }

    reads_in_bulk!();

    fn for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<Self>> {
        Some(self.0.for_pass(run, border)?.map(Self))
    }
}

impl BulkRead<Item> for Native {
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<Item>> {
        let many = released(|| self.0.bulk()?.get_records(source, records, cx))?;
        Some(many.map(|_, element| Item::Element(element)))
    }

    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<Item> {
        let InPlace { batch, len, bytes } = released(|| self.0.bulk()?.get_stacked(indices, cx))?;
        Some(InPlace { batch: Item::Element(batch), len, bytes })
    }
}

debug_as!(Native, |self, f| f.write_str("Native"));
