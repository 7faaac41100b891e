//! Disjoint parts of a dataset, in every epoch.

use std::ops::Range;

use super::epochs;
use super::order::{Order, Ordered};
use crate::dataset::blocks::Blocks;
use crate::dataset::entry::prelude::*;
use crate::dataset::stage::Stage;
use crate::dataset::{INFINITE, Period};
use crate::error::{Error, Result};
use crate::rng::IndexShuffle;

/// See [`MapDatasetExt::split`](super::MapDatasetExt::split).
pub type Split<D> = Ordered<D, SplitOrder>;

/// Sizes of the parts of a [`split`](super::MapDatasetExt::split), and the assignment of elements to parts.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitSizes {
    sizes: Vec<f64>,
    seed: u32,
    shuffle: bool,
}

/// Tolerance for the rounding errors of a sum of fractions.
const ROUNDED: f64 = 1e-9;

impl SplitSizes {
    /// Makes parts of these sizes: numbers below 1 are fractions of the elements, others are counts. Draws elements
    /// with seed 0.
    pub fn new(sizes: impl IntoIterator<Item = f64>) -> Self {
        Self { sizes: sizes.into_iter().collect(), seed: 0, shuffle: true }
    }

    setters! {
        /// Sets the seed for drawing elements.
        #[must_use]
        pub seed: u32;

        /// Sets whether elements are drawn at random. If not, parts are ranges of the dataset, in order.
        #[must_use]
        pub shuffle: bool;
    }

    /// Returns the places of part `take` of `len` elements.
    fn places(&self, take: usize, len: u64) -> Result<Range<u64>> {
        let parts = self.sizes.len();
        let (Some(&size), before) = (self.sizes.get(take), self.sizes.get(..take).unwrap_or_default()) else {
            return Err(Error::config(format!("part {take} of {parts}, and parts count from 0")));
        };
        if let Some(bad) = self.sizes.iter().find(|size| !(**size > 0.0 && size.is_finite())) {
            return Err(Error::config(format!("a part of size {bad}, and sizes must be above 0")));
        }
        if len >= INFINITE {
            return Err(Error::config("it splits a dataset that never ends").help("split before `repeat`"));
        }
        let all: f64 = self.sizes.iter().sum();
        let (first, end) = (before.iter().sum::<f64>(), before.iter().sum::<f64>() + size);
        let places = if self.sizes.iter().all(|size| *size < 1.0) {
            if all > 1.0 + ROUNDED {
                return Err(Error::config(format!("the fractions sum to {all}, and must sum to 1 at most")));
            }
            let place = |fraction: f64| ((fraction * len as f64).round() as u64).min(len);
            place(first)..if end > 1.0 - ROUNDED { len } else { place(end) }
        } else if self.sizes.iter().all(|size| *size >= 1.0 && size.fract() == 0.0) {
            if all > len as f64 {
                return Err(Error::config(format!("the parts have {all} elements, but the dataset has {len}")));
            }
            first as u64..end as u64
        } else {
            return Err(Error::config("sizes are all fractions, which are below 1, or all counts"));
        };
        if places.is_empty() {
            return Err(Error::config(format!("part {take} of {len} elements is empty"))
                .help("give a count of elements, or a larger fraction"));
        }
        Ok(places)
    }
}

/// The order of [`Split`]: the elements of one part.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct SplitOrder {
    sizes: SplitSizes,
    take: usize,
    parent_len: u64,
    /// The range of the part in the order of the division.
    places: Range<u64>,
    /// The order of the division; `None` for the parent's order.
    drawn: Option<IndexShuffle>,
}

impl SplitOrder {
    pub(super) fn new(parent_len: u64, sizes: &SplitSizes, take: usize) -> Self {
        // Invalid sizes give an empty part here, and an error in `check`.
        let places = sizes.places(take, parent_len).unwrap_or(0..0);
        let drawn = (sizes.shuffle && parent_len > 0).then(|| IndexShuffle::four_rounds(parent_len - 1, sizes.seed));
        Self { sizes: sizes.clone(), take, parent_len, places, drawn }
    }

    fn count(&self) -> u64 {
        self.places.end - self.places.start
    }
}

impl Order for SplitOrder {
    const IS_NATIVE: bool = true;

    facts! { name: "split" }

    fn params(&self) -> String {
        let SplitSizes { sizes, seed, shuffle } = &self.sizes;
        let sizes: Vec<_> = sizes.iter().map(f64::to_string).collect();
        let order = if *shuffle { format!("seed={seed}") } else { "shuffle=false".to_owned() };
        format!("{}, take={}, {order}", sizes.join(" "), self.take)
    }
    fn len(&self, _: u64) -> u64 {
        self.count()
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<u64>> {
        let Some((_, k)) = epochs::split(index, self.count()) else { return Ok(None) };
        let at = self.places.start + k;
        Ok(Some(self.drawn.as_ref().map_or(at, |drawn| drawn.get(at))))
    }
    fn inverse(&self, place: u64) -> Result<Option<u64>> {
        if place >= self.parent_len {
            return Ok(None);
        }
        let at = self.drawn.as_ref().map_or(place, |drawn| drawn.index_of(place));
        Ok(self.places.contains(&at).then(|| at - self.places.start))
    }
    fn period(&self) -> Option<Period> {
        Some(Period { parent: self.parent_len, len: self.count() })
    }
    fn blocks(&self, parent: &dyn Stage) -> Option<Blocks> {
        parent.blocks().filter(|_| self.drawn.is_none())?.cut(self.places.clone())
    }
    fn check(&self) -> Result<()> {
        self.sizes.places(self.take, self.parent_len).map(drop)
    }
}

arguments! {
    struct SplitArgs {
        /// Sizes of all parts: fractions below 1, or numbers of elements.
        sizes: Vec<f64>,
        /// Index of the part to take, from 0.
        take: usize,
        /// Seed for drawing the elements of each part, from 0 to 2^32 - 1. The `seed` of the pipeline does not change it.
        seed: u32 = 0,
        /// Whether the elements of each part are drawn at random. If false, parts are consecutive ranges.
        shuffle: bool = true,
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::map(
    "split",
    "Takes a part of a fixed split, such as a training or validation set. Parts share no elements in any epoch.",
    &Behind(|ds: BoxMap<Element>, SplitArgs { sizes, take, seed, shuffle }: SplitArgs, _| {
        Ok(ds.split(&SplitSizes::new(sizes).seed(seed).shuffle(shuffle), take).boxed())
    }),
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range as Numbers};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn part(len: i64, sizes: &SplitSizes, take: usize) -> Split<Numbers> {
        Numbers::new(0, len).split(sizes, take)
    }

    #[test]
    fn parts_share_no_element_in_any_epoch() {
        let sizes = SplitSizes::new([0.9, 0.1]);
        let shuffled = || Numbers::new(0, 1000).seed(1).shuffle(None);
        let epochs = |take| shuffled().split(&sizes, take).shuffle(5).repeat(10).collect().unwrap();
        let (train, validation) = (epochs(0), epochs(1));
        assert_eq!((train.len(), validation.len()), (9000, 1000));
        let [train, validation] = [train, validation].map(|seen| seen.into_iter().collect::<BTreeSet<_>>());
        assert_eq!((train.len(), validation.len()), (900, 100));
        assert!(train.is_disjoint(&validation));
        // Slices of a shuffle share elements.
        let sliced = |range| shuffled().slice(range).repeat(10).collect().unwrap();
        let train: BTreeSet<_> = sliced(0..900).into_iter().collect();
        assert_eq!(sliced(900..1000).iter().filter(|seen| train.contains(seen)).count(), 1000);
    }

    #[test]
    fn the_division_is_that_of_a_shuffle_or_of_ranges() {
        let counts = SplitSizes::new([7.0, 3.0]);
        let order = Numbers::new(0, 10).shuffle(0).collect().unwrap();
        assert_eq!(part(10, &counts, 0).collect().unwrap(), order[..7]);
        assert_eq!(part(10, &counts, 1).collect().unwrap(), order[7..]);
        assert_eq!(part(10, &counts.clone().shuffle(false), 1).collect().unwrap(), [7, 8, 9]);
        assert_ne!(part(10, &counts.clone().seed(1), 1).collect().unwrap(), order[7..]);
        assert_eq!((&part(10, &counts, 1) as &dyn Stage).lines()[1], "split(7 3, take=1, seed=0)");
        let thirds = SplitSizes::new([1.0 / 3.0; 3]);
        assert_eq!([0, 1, 2].map(|take| part(10, &thirds, take).len()), [3, 4, 3]);
    }

    #[test]
    fn what_cannot_be_split_is_refused() {
        let refused = |len, sizes: &[f64], take| {
            part(len, &SplitSizes::new(sizes.iter().copied()), take).node().describe.check().unwrap_err()
        };
        assert_eq!(refused(10, &[0.5, 0.5], 2).message(), "part 2 of 2, and parts count from 0");
        assert_eq!(refused(10, &[0.5, -0.1], 0).message(), "a part of size -0.1, and sizes must be above 0");
        assert_eq!(refused(10, &[0.5, 0.75], 0).message(), "the fractions sum to 1.25, and must sum to 1 at most");
        assert_eq!(refused(10, &[8.0, 3.0], 0).message(), "the parts have 11 elements, but the dataset has 10");
        assert_eq!(refused(10, &[0.5, 3.0], 0).message(), "sizes are all fractions, which are below 1, or all counts");
        assert_eq!(refused(10, &[1.5], 0).message(), "sizes are all fractions, which are below 1, or all counts");
        assert_eq!(refused(3, &[0.9, 0.1], 1).message(), "part 1 of 3 elements is empty");
        assert_eq!(refused(3, &[f64::NAN], 0).message(), "a part of size NaN, and sizes must be above 0");
        let endless = Numbers::new(0, 3).repeat(None).split(&SplitSizes::new([0.5]), 0);
        assert_eq!(endless.node().describe.check().unwrap_err().message(), "it splits a dataset that never ends");
        assert_eq!(part(0, &SplitSizes::new([0.5]), 0).collect().unwrap_err().kind(), crate::ErrorKind::Config);
    }

    proptest! {
        #[test]
        fn parts_cover_the_dataset_and_an_element_is_found_where_it_stands(
            len in 8..200u64, fractions in proptest::collection::vec(1..5u8, 1..4), seed: u32, shuffle: bool,
        ) {
            let all: f64 = fractions.iter().map(|&n| f64::from(n)).sum();
            prop_assume!(fractions.len() > 1);
            let sizes = SplitSizes::new(fractions.iter().map(|&n| f64::from(n) / all)).seed(seed).shuffle(shuffle);
            let mut seen = Vec::new();
            for take in 0..fractions.len() {
                let order = SplitOrder::new(len, &sizes, take);
                for index in 0..order.count() {
                    let place = order.place(index).unwrap().unwrap();
                    prop_assert_eq!(order.inverse(place).unwrap(), Some(index));
                    prop_assert_eq!(order.place(index + 3 * order.count()).unwrap(), Some(place));
                    seen.push(place);
                }
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..len).collect::<Vec<_>>());
        }
    }
}
