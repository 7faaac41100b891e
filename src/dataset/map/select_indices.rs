use std::fmt::Write as _;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::epochs;
use super::order::{Order, Ordered};
use crate::dataset::INFINITE;
use crate::dataset::entry::prelude::*;
use crate::dataset::memory::Memory;
use crate::error::{Error, Result};

/// See [`MapDatasetExt::select_indices`](super::MapDatasetExt::select_indices).
pub type SelectIndices<D> = Ordered<D, IndicesOrder>;

/// The order of [`SelectIndices`]: a list of indices.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct IndicesOrder {
    pub(super) indices: Arc<[u64]>,
    pub(super) parent_len: u64,
}

impl Order for IndicesOrder {
    const IS_NATIVE: bool = true;
    const IS_WORK: bool = false;

    facts! { name: "select_indices" }

    /// Returns up to 8 indices, else their number and a hash.
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
    fn len(&self, _: u64) -> u64 {
        self.indices.len() as u64
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<u64>> {
        let Some((epoch, k)) = epochs::split(index, self.indices.len() as u64) else { return Ok(None) };
        epochs::join(epoch, self.parent_len, self.indices[k as usize]).map(Some)
    }
    /// Searches the whole list.
    fn inverse(&self, place: u64) -> Result<Option<u64>> {
        let Some((epoch, at)) = epochs::split(place, self.parent_len) else { return Ok(None) };
        let found = self.indices.iter().position(|&index| index == at);
        found.map(|k| epochs::join(epoch, self.indices.len() as u64, k as u64)).transpose()
    }
    fn comes_again(&self) -> bool {
        true
    }
    fn memory(&self) -> Option<Memory> {
        Some(Memory::bytes(size_of_val(&*self.indices) as u64))
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

arguments! {
    struct SelectIndicesArgs(indices) {
        /// Indices of elements, from 0. An index may occur several times.
        indices: Vec<u64>,
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::map(
    "select_indices",
    "Takes the elements at the given indices, in the given order.\n\n\
     ConfigError: An index is past the end.",
    &Behind(|ds: BoxMap<Element>, args: SelectIndicesArgs, _| Ok(ds.select_indices(args.indices).boxed())),
);

#[cfg(test)]
mod tests {
    use crate::cx::Cx;
    use crate::dataset::Stage;
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range};

    #[test]
    fn reads_the_listed_elements_of_each_epoch() {
        let ds = Range::new(0, 10).map_with_index(|i, _| i.global).select_indices([7, 0, 7]);
        let mut cx = Cx::default();
        let seen: Vec<u64> = (0..7).map(|i| ds.get(i, &mut cx).unwrap().unwrap()).collect();
        assert_eq!(seen, [7, 0, 7, 17, 10, 17, 27]);
        assert_eq!(ds.node().describe.params(), "7 0 7");
    }

    #[test]
    fn another_list_is_another_dataset() {
        let line = |v: Vec<u64>| Range::new(0, 100).select_indices(v).node().describe.params();
        let a = line((0..50).collect());
        assert!(a.starts_with("50 indices, xxh3="), "{a}");
        assert_ne!(a, line((1..51).collect()));
    }

    #[test]
    fn an_index_past_the_end_is_refused() {
        let error = Range::new(0, 10).select_indices([3, 10]).node().describe.check().unwrap_err();
        assert_eq!(error.message(), "index 10, number 1 of the list, is past the end of a dataset of 10 elements");
        let empty = Range::new(0, 10).select_indices([]);
        assert!(empty.node().describe.check().is_ok() && empty.collect().unwrap().is_empty());
    }
}
