use super::combine::{Combine, Combined};
use super::parents::Parents;
use super::{MapDataset, epochs};
use crate::dataset::INFINITE;
use crate::dataset::blocks::Blocks;
use crate::dataset::stage::Stage;
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
/// [`check`](crate::dataset::Describe::check) returns an [`ErrorKind::Config`](crate::ErrorKind::Config) error for an infinite dataset,
/// an empty list, and a total length of `i64::MAX` or more.
///
/// # Cost
/// Searches the lengths: `O(log n)` per element for `n` datasets.
pub type Concatenate<D> = Combined<D, Consecutive>;

/// The choice of [`Concatenate`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Consecutive {
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
        Self { combine: Consecutive { ends: ends.collect() }, parents }
    }
}

impl Consecutive {
    /// Returns the first index of dataset `which`, and its length.
    #[inline]
    fn range(&self, which: usize) -> (u64, u64) {
        let start = which.checked_sub(1).map_or(0, |before| self.ends[before]);
        (start, self.ends[which] - start)
    }
}

impl Combine for Consecutive {
    const IS_NATIVE: bool = true;

    facts! { name: "concatenate" }

    fn params(&self, count: usize) -> String {
        count.to_string()
    }
    fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<(usize, u64)>> {
        let Some((epoch, k)) = epochs::split(index, self.len()) else { return Ok(None) };
        let which = self.ends.partition_point(|&end| end <= k);
        let (start, len) = self.range(which);
        Ok(Some((which, epochs::join(epoch, len, k - start)?)))
    }
    fn inverse(&self, which: usize, place: u64) -> Option<u64> {
        let (start, len) = self.range(which);
        let (epoch, k) = epochs::split(place, len)?;
        epochs::join(epoch, self.len(), start + k).ok()
    }
    fn blocks(&self, parents: &[&dyn Stage]) -> Option<Blocks> {
        Blocks::chained(parents.iter().map(|parent| parent.blocks()))
    }
    fn check(&self, lens: &[u64]) -> Result<()> {
        if lens.is_empty() {
            return Err(Error::config("the number of datasets to concatenate is 0, and must be 1 or more"));
        }
        if let Some(at) = lens.iter().position(|&len| len >= INFINITE) {
            return Err(Error::config(format!("dataset {at} of the concatenation never ends"))
                .help("concatenate first, then `repeat`"));
        }
        if self.len() >= INFINITE {
            return Err(Error::config(format!("the concatenated length is beyond {} elements", INFINITE - 1)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::cx::Cx;
    use crate::dataset::Describe;
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
