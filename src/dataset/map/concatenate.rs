use super::epochs;
use super::parents::Parents;
use super::{BulkRead, Many, MapDataset};
use crate::cx::Cx;
use crate::dataset::INFINITE;
use crate::dataset::blocks::Blocks;
use crate::dataset::node::{Describe, Indices, Moves, Node};
use crate::dataset::run::upcoming::{Record, Upcoming};
use crate::dataset::stage::{Role, Stage};
use crate::element::{Name, Ragged};
use crate::error::{Error, Result};

/// Several datasets in sequence. Epoch `e` contains epoch `e` of each dataset.
///
/// Use [`boxed`](super::MapDatasetExt::boxed) to concatenate datasets of different types.
///
/// ```
/// use gristmill::{dataset::map::{Concatenate, Range}, prelude::*};
/// let parts = vec![Range::new(0, 2).boxed(), Range::new(10, 12).map(|x| x + 1).boxed()];
/// assert_eq!(Concatenate::new(parts).collect()?, [0, 1, 11, 12]);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// [`check`](Describe::check) returns an [`ErrorKind::Config`](crate::ErrorKind::Config) error for an infinite dataset,
/// an empty list, and a total length of `i64::MAX` or more.
///
/// # Cost
/// Searches the lengths: `O(log n)` per element for `n` datasets.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Concatenate<D> {
    parents: Parents<D>,
    /// Index after the last element of each dataset.
    ends: Vec<u64>,
}

impl<D: MapDataset> Concatenate<D> {
    /// Concatenates `datasets`.
    pub fn new(datasets: Vec<D>) -> Self {
        let parents = Parents::new(datasets);
        let mut end = 0u64;
        let ends = parents.lens().map(|len| {
            end = end.saturating_add(len).min(INFINITE);
            end
        });
        Self { ends: ends.collect(), parents }
    }
}

impl<D: MapDataset> Concatenate<D> {
    /// Returns the dataset that contains element `k` of `epoch`, and the element's index in that dataset.
    #[inline]
    fn place(&self, epoch: u64, k: u64) -> Result<(usize, u64)> {
        let which = self.ends.partition_point(|&end| end <= k);
        let start = which.checked_sub(1).map_or(0, |before| self.ends[before]);
        Ok((which, epochs::join(epoch, self.ends[which] - start, k - start)?))
    }

    /// Returns the places of `indices`; `None` if any index has no place.
    fn places(&self, indices: &[u64]) -> Option<Vec<(usize, u64)>> {
        let place = |&index: &u64| {
            let (epoch, k) = epochs::split(index, self.len())?;
            self.place(epoch, k).ok()
        };
        indices.iter().map(place).collect()
    }
}

impl<D: MapDataset> Stage for Concatenate<D> {
    fn node(&self) -> Node<'_> {
        Node { describe: self, is_native: true, indices: Indices::Moved(self), ..Node::new("concatenate", Role::Order) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.parents.stages()
    }
}

impl<D: MapDataset> Describe for Concatenate<D> {
    fn params(&self) -> String {
        self.parents.count().to_string()
    }
    fn check(&self) -> Result<()> {
        if self.parents.count() == 0 {
            return Err(Error::config("the number of datasets to concatenate is 0, and must be 1 or more"));
        }
        if let Some(at) = self.parents.first_infinite() {
            return Err(Error::config(format!("dataset {at} of the concatenation never ends"))
                .help("concatenate first, then `repeat`"));
        }
        if self.len() >= INFINITE {
            return Err(Error::config(format!("the concatenated length is beyond {} elements", INFINITE - 1)));
        }
        Ok(())
    }
}

impl<D: MapDataset> Moves for Concatenate<D> {
    fn will_read(&self, next: Upcoming<'_>) {
        if let Some(places) = self.places(next.indices()) {
            self.parents.will_read(&places, next);
        }
    }
    fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).zip(self.parents.stages()).find_map(|((start, end), part)| {
            let (epoch, k) = epochs::split(part.comes_at(record, epoch)?, end - start)?;
            epochs::join(epoch, self.len(), start + k).ok()
        })
    }
    fn blocks(&self) -> Option<Blocks> {
        Blocks::chained(self.parents.stages().into_iter().map(|parent| parent.blocks()))
    }
}

impl<D: MapDataset> MapDataset for Concatenate<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let Some((epoch, k)) = epochs::split(index, self.len()) else { return Ok(None) };
        let (which, at) = self.place(epoch, k)?;
        self.parents.pass(which, at, cx)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
        match self.places(indices) {
            Some(places) => self.parents.pass_many(&places, cx),
            None => Many::one_by_one(indices, |index| self.get(index, cx)),
        }
    }

    fn bulk(&self) -> Option<&dyn BulkRead<Self::Item>> {
        Some(self)
    }
}

impl<D: MapDataset> BulkRead<D::Item> for Concatenate<D> {
    fn get_ragged_records(&self, source: usize, records: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        self.parents.get_ragged_records(source, records, names, cx)
    }

    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<D::Item>> {
        self.parents.get_records(source, records, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::dataset::map::Range;

    #[test]
    fn each_epoch_is_that_epoch_of_every_part() {
        let globals = |len, add| Range::new(0, len).map_with_index(move |i, _| i.global + add);
        let ds = Concatenate::new(vec![globals(2, 0), globals(0, 50), globals(3, 100)]);
        let mut cx = Cx::default();
        let seen: Vec<u64> = (0..12).map(|i| ds.get(i, &mut cx).unwrap().unwrap()).collect();
        assert_eq!(seen, [0, 1, 100, 101, 102, 2, 3, 103, 104, 105, 4, 5]);
    }

    #[test]
    fn what_has_no_end_cannot_be_followed() {
        let ds = Concatenate::new(vec![Range::new(0, 2).repeat(1), Range::new(0, 2).repeat(None)]);
        assert_eq!(ds.check().unwrap_err().message(), "dataset 1 of the concatenation never ends");
        let long = Concatenate::new(vec![Range::new(0, i64::MAX - 1), Range::new(0, i64::MAX - 1)]);
        assert!(long.check().unwrap_err().message().starts_with("the concatenated length is beyond"));
        let none = Concatenate::new(Vec::<Range>::new());
        assert!(none.check().is_err() && none.get(0, &mut Cx::default()).unwrap().is_none());
    }

    #[test]
    fn the_parts_are_numbered_one_after_the_other() {
        let part = || Range::new(0, 2).try_map(|x| if x == 1 { Err(Error::data("no")) } else { Ok(x) });
        let error = Concatenate::new(vec![part(), part()]).get(3, &mut Cx::default()).unwrap_err();
        assert_eq!(error.to_string(), "stage 3 map: no");
    }
}
