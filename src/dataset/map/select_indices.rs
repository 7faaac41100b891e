use std::fmt::Write as _;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::order::{self, through_places};
use super::{MapDataset, epochs};
use crate::cx::{Cx, StageId};
use crate::dataset::INFINITE;
use crate::dataset::memory::Memory;
use crate::dataset::run::upcoming::Upcoming;
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::{Error, Result};

/// See [`MapDataset::select_indices`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct SelectIndices<D> {
    parent: D,
    indices: Arc<[u64]>,
    parent_len: u64,
    stage: StageId,
}

impl<D: MapDataset> SelectIndices<D> {
    pub(super) fn new(parent: D, indices: Arc<[u64]>) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent_len: parent.len(), parent, indices, stage }
    }

    /// Where `indices` are found, if all are.
    fn places(&self, indices: &[u64]) -> Option<Vec<u64>> {
        order::places(indices, |index| {
            let (epoch, k) = epochs::split(index, self.len())?;
            epochs::join(epoch, self.parent_len, self.indices[k as usize]).ok()
        })
    }
}

impl<D: MapDataset> Stage for SelectIndices<D> {
    fn name(&self) -> &'static str {
        "select_indices"
    }
    /// The indices where they are few, else how many and a hash.
    fn params(&self) -> String {
        if self.indices.len() <= 8 {
            return self.indices.iter().fold(String::new(), |mut list, i| {
                let _ = write!(list, "{}{i}", if list.is_empty() { "" } else { " " });
                list
            });
        }
        let mut hasher = Xxh3::new();
        self.indices.iter().for_each(|i| hasher.update(&i.to_le_bytes()));
        format!("{} indices, xxh3={:016x}", self.indices.len(), hasher.digest())
    }
    fn role(&self) -> Role {
        Role::Order
    }
    fn is_native(&self) -> bool {
        true
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
    fn memory(&self) -> Option<Memory> {
        Some(Memory::bytes(size_of_val(&*self.indices) as u64))
    }
    fn will_read(&self, next: Upcoming<'_>) {
        if let Some(places) = self.places(next.indices()) {
            self.parent.will_read(next.at(&places));
        }
    }
    fn check(&self) -> Result<()> {
        let outside = |&(_, &index): &(usize, &u64)| index >= self.parent_len && self.parent_len < INFINITE;
        match self.indices.iter().enumerate().find(outside) {
            None => Ok(()),
            Some((at, index)) => Err(Error::config(format!(
                "index {index}, number {at} of the list, is past the end of a dataset of {} elements",
                self.parent_len
            ))),
        }
    }
}

impl<D: MapDataset> MapDataset for SelectIndices<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.indices.len() as u64
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let Some((epoch, k)) = epochs::split(index, self.len()) else { return Ok(None) };
        let at = epochs::join(epoch, self.parent_len, self.indices[k as usize])?;
        let element = self.parent.get(at, cx)?;
        if element.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }

    through_places!(untimed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;

    #[test]
    fn reads_the_listed_elements_of_each_epoch() {
        let ds = Range::new(0, 10).map_with_index(|i, _| i.global).select_indices([7, 0, 7]);
        let mut cx = Cx::default();
        let seen: Vec<u64> = (0..7).map(|i| ds.get(i, &mut cx).unwrap().unwrap()).collect();
        assert_eq!(seen, [7, 0, 7, 17, 10, 17, 27]);
        assert_eq!(ds.params(), "7 0 7");
    }

    #[test]
    fn another_list_is_another_dataset() {
        let line = |v: Vec<u64>| Range::new(0, 100).select_indices(v).params();
        let a = line((0..50).collect());
        assert!(a.starts_with("50 indices, xxh3="), "{a}");
        assert_ne!(a, line((1..51).collect()));
    }

    #[test]
    fn an_index_past_the_end_is_refused() {
        let error = Range::new(0, 10).select_indices([3, 10]).check().unwrap_err();
        assert_eq!(error.message(), "index 10, number 1 of the list, is past the end of a dataset of 10 elements");
        let empty = Range::new(0, 10).select_indices([]);
        assert!(empty.check().is_ok() && empty.collect().unwrap().is_empty());
    }
}
