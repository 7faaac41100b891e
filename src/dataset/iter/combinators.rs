use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    BadRecords, BatchFn, CacheFlow, CountFlow, Counter, DatasetIterator, FilterThresholds, FlatMapFlow, Flowing,
    InOrder, IterBatch, IterCache, IterCombined, IterDataset, IterEnumerate, IterFilter, IterFlatMap, IterLimit,
    IterMap, IterMapWithIndex, IterRandomMap, IterRebatch, IterRepeat, IterScan, IterSkip, IterSkipBad, IterTryFlatMap,
    IterTryMap, IterTryMapWithIndex, IterTryRandomMap, IterWindowShuffle, IterZip, Padding, RebatchFlow, RepeatFlow,
    ScanFlow, SkipBadFlow, Stacked, StackedPadded, Watch, WindowFlow, ZipLength,
};
use crate::dataset::boxed::BoxIter;
use crate::dataset::map::{DrawFn, FilterFn, MapFn, Ordered, Seed, SeedOrder, TryDrawFn, TryMapFn};
use crate::dataset::remainder::Remainder;
use crate::dataset::seeds::StageSeed;
use crate::dataset::stage::Stage;
use crate::element::{Batch, Element, Stack};
use crate::error::Result;
use crate::exec::Runtime;
use crate::rng::ElementRng;

/// The methods of every [`IterDataset`]: stages after it, and its elements.
///
/// The trait is implemented for all streams. Import it with the [`prelude`](crate::prelude).
pub trait IterDatasetExt: IterDataset + Sized {
    /// Applies `f` to every element. If `f` may fail, use [`try_map`](Self::try_map): here, a `Result` is the element.
    ///
    /// The consumer's thread reads the stream in order. Threads or workers of the executor apply `f` to chunks of
    /// elements. A [`Stream`](super::Stream) (right after [`to_iter`](crate::MapDatasetExt::to_iter)) has its own `map`,
    /// with which they also read the elements.
    fn map<U, F>(self, f: F) -> IterMap<Self, F>
    where
        U: Send + 'static,
        F: Fn(Self::Item) -> U + Send + Sync + 'static,
    {
        Flowing::new(self, |_| InOrder::new(MapFn(f), ()))
    }

    /// Applies `f`, which may fail, to every element.
    ///
    /// Threads apply `f` as in [`map`](Self::map).
    ///
    /// # Errors
    /// The error of `f`, with the stage.
    fn try_map<U, F>(self, f: F) -> IterTryMap<Self, F>
    where
        U: Send + 'static,
        F: Fn(Self::Item) -> Result<U> + Send + Sync + 'static,
    {
        Flowing::new(self, |_| InOrder::new(TryMapFn(f), ()))
    }

    /// Applies `f` to every element and its index in this stream. The index counts the elements that have reached this
    /// stage and is kept across a resume.
    ///
    /// [`MapDataset`](crate::MapDataset) has a method with this name for the index in the dataset, before any element
    /// was dropped. DIFFERENCE from Grain: there, every worker process counts from 0, so indices repeat. Here, indices
    /// do not depend on the executor.
    fn map_with_index<U, F>(self, f: F) -> IterMapWithIndex<Self, F>
    where
        U: Send + 'static,
        F: Fn(u64, Self::Item) -> U + Send + Sync + 'static,
    {
        IterMapWithIndex::named(self, "map_with_index", String::new(), f)
    }

    /// [`map_with_index`](Self::map_with_index) with a function that may fail.
    ///
    /// # Errors
    /// The error of `f`, with stage and element index.
    fn try_map_with_index<U, F>(self, f: F) -> IterTryMapWithIndex<Self, F>
    where
        U: Send + 'static,
        F: Fn(u64, Self::Item) -> Result<U> + Send + Sync + 'static,
    {
        IterTryMapWithIndex::named(self, "map_with_index", String::new(), f)
    }

    #[doc = include_str!("random_map.md")]
    fn random_map<U, F>(self, seed: impl Into<Option<u32>>, f: F) -> IterRandomMap<Self, F>
    where
        U: Send + 'static,
        F: Fn(Self::Item, &mut ElementRng) -> U + Send + Sync + 'static,
    {
        Flowing::new(self, |parent| InOrder::new(DrawFn::new(parent, seed.into(), f), Counter::default()))
    }

    /// [`random_map`](Self::random_map) with a function that may fail.
    ///
    /// # Errors
    /// As [`random_map`](Self::random_map), and the error of `f`, with stage and element index.
    fn try_random_map<U, F>(self, seed: impl Into<Option<u32>>, f: F) -> IterTryRandomMap<Self, F>
    where
        U: Send + 'static,
        F: Fn(Self::Item, &mut ElementRng) -> Result<U> + Send + Sync + 'static,
    {
        Flowing::new(self, |parent| InOrder::new(TryDrawFn::new(parent, seed.into(), f), Counter::default()))
    }

    /// Applies `f` to a state and every element, in order. `f` may change the state, which is `initial` at the start of
    /// each pass and part of the checkpoint. The consumer's thread calls `f`.
    ///
    /// # Errors
    /// The error of `f`, with the stage. Changes that `f` made to the state before the error remain.
    fn scan<S, U, F>(self, initial: S, f: F) -> IterScan<Self, S, F>
    where
        S: Clone + Send + Sync + Serialize + DeserializeOwned + 'static,
        U: Send + 'static,
        F: Fn(&mut S, Self::Item) -> Result<U> + Send + Sync + 'static,
    {
        Flowing::new(self, |_| ScanFlow { initial, f: Arc::new(f) })
    }

    /// Keeps the elements for which `predicate` holds. Warns if the filter drops nearly all: see [`FilterThresholds`].
    ///
    /// Threads apply `predicate` as in [`map`](Self::map).
    fn filter<P>(self, predicate: P) -> IterFilter<Self, P>
    where
        P: Fn(&Self::Item) -> bool + Send + Sync + 'static,
    {
        self.filter_with(predicate, FilterThresholds::default())
    }

    /// Keeps the elements for which `predicate` holds, with custom thresholds.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the share of dropped elements reaches the `raise` threshold. The
    /// state includes the counts of the current window of 1000 elements, so a resumed run fails at the same element.
    fn filter_with<P>(self, predicate: P, thresholds: FilterThresholds) -> IterFilter<Self, P>
    where
        P: Fn(&Self::Item) -> bool + Send + Sync + 'static,
    {
        Flowing::new(self, |_| InOrder::new(FilterFn(predicate), Watch::new(thresholds)))
    }

    /// Replaces every element by the elements that `f` returns: none, one or many.
    ///
    /// Threads and worker processes apply `f` as in [`map`](Self::map). The consumer's thread advances the returned
    /// iterator, one element at a time; a worker process advances it to its end and sends all elements. A resume in the
    /// middle of such an iterator reads its input element again.
    fn flat_map<C, F>(self, f: F) -> IterFlatMap<Self, F>
    where
        C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
        F: Fn(Self::Item) -> C + Send + Sync + 'static,
    {
        Flowing::new(self, |_| FlatMapFlow(Arc::new(MapFn(f))))
    }

    /// [`flat_map`](Self::flat_map) with a function that may fail.
    ///
    /// # Errors
    /// The error of `f`, with the stage.
    fn try_flat_map<C, F>(self, f: F) -> IterTryFlatMap<Self, F>
    where
        C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
        F: Fn(Self::Item) -> Result<C> + Send + Sync + 'static,
    {
        Flowing::new(self, |_| FlatMapFlow(Arc::new(TryMapFn(f))))
    }

    /// Stacks every `size` elements into a batch; the last batch may be smaller.
    ///
    /// A [`Stream`](super::Stream) has its own `batch` methods, which run in parallel if possible.
    ///
    /// Arrays of an [`Element`] gain a leading dimension and text becomes a list. Numbers and vectors become a `Vec`.
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 5).to_iter().batch(2).collect()?, [vec![0, 1], vec![2, 3], vec![4]]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `size` is 0; [`ErrorKind::Data`](crate::ErrorKind::Data) if
    /// elements differ in structure, dtype or shape.
    fn batch(self, size: usize) -> IterBatch<Self, Stacked>
    where
        Self::Item: Stack<Batch: Send + 'static>,
    {
        IterBatch::new(self, size, Remainder::Keep, Stacked)
    }

    /// [`batch`](Self::batch) with a policy for an incomplete last batch.
    fn batch_with(self, size: usize, remainder: Remainder) -> IterBatch<Self, Stacked>
    where
        Self::Item: Stack<Batch: Send + 'static>,
    {
        IterBatch::new(self, size, remainder, Stacked)
    }

    /// [`batch`](Self::batch) that fills the last batch up to `size` with [`Stack::padding`]. All batches have equal
    /// shapes; [`Padded`](super::Padded) contains the number of real elements.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let last = Range::new(1, 4).to_iter().batch_padded(2).collect()?.pop().unwrap();
    /// assert_eq!((last.batch.as_slice(), last.real, last.mask()), ([3, 0].as_slice(), 1, vec![true, false]));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn batch_padded(self, size: usize) -> IterBatch<Self, StackedPadded>
    where
        Self::Item: Stack<Batch: Send + 'static>,
    {
        IterBatch::new(self, size, Remainder::Keep, StackedPadded)
    }

    /// [`batch`](Self::batch) of [`Element`]s that fills the last batch up to `size` with zeros.
    ///
    /// Every batch has a field `batch_mask` (bool, `[size]`), which is true for real elements. The whole run has a
    /// single element spec, so an accelerator never recompiles.
    ///
    /// # Errors
    /// As [`batch`](Self::batch), and [`ErrorKind::Data`](crate::ErrorKind::Data) if elements have such a field.
    fn batch_masked(self, size: usize) -> IterBatch<Self, Padding>
    where
        Self: IterDataset<Item = Element>,
    {
        self.batch_masked_with(size, Padding::default())
    }

    /// [`batch_masked`](Self::batch_masked) with a custom pad value and mask name.
    ///
    /// # Errors
    /// As [`batch_masked`](Self::batch_masked), and [`ErrorKind::Data`](crate::ErrorKind::Data) if the value does not
    /// fit the dtype of an array.
    fn batch_masked_with(self, size: usize, padding: Padding) -> IterBatch<Self, Padding>
    where
        Self: IterDataset<Item = Element>,
    {
        IterBatch::new(self, size, Remainder::Keep, padding)
    }

    /// Makes each batch with a custom function, which receives 1 to `size` elements.
    fn batch_with_fn<B, F>(self, size: usize, remainder: Remainder, f: F) -> IterBatch<Self, BatchFn<F>>
    where
        B: Send + 'static,
        F: Fn(Vec<Self::Item>) -> Result<B> + Send + Sync + 'static,
    {
        IterBatch::new(self, size, remainder, BatchFn(f))
    }

    /// Slices batches again, into `size` rows each, along the leading dimension that all leaves share.
    ///
    /// Rows that come from a single batch of the parent are views. Rows that join several batches are copied.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `size` is 0. [`ErrorKind::Data`](crate::ErrorKind::Data) if a
    /// batch has 0 rows, if its leaves have different numbers of rows, or if joined batches differ in dtype or shape.
    fn rebatch(self, size: usize, remainder: Remainder) -> IterRebatch<Self>
    where
        Self: IterDataset<Item = Batch>,
    {
        Flowing::new(self, |_| RebatchFlow { size, remainder })
    }

    /// Pairs the elements of `self` and `other`, which must have equal lengths; see [`zip_with`](Self::zip_with).
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let ds = Range::new(0, 2).to_iter().zip(Range::new(5, 7).map(|x| x.to_string()).to_iter());
    /// assert_eq!(ds.collect()?, [(0, "5".to_owned()), (1, "6".to_owned())]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a dataset is shorter; the message names it. An error on one side
    /// also drops the other side's element.
    fn zip<E: IterDataset>(self, other: E) -> IterZip<Self, E> {
        self.zip_with(other, ZipLength::Equal)
    }

    /// [`zip`](Self::zip) with a policy for different lengths.
    fn zip_with<E: IterDataset>(self, other: E, length: ZipLength) -> IterZip<Self, E> {
        IterCombined::new((self, other), length)
    }

    #[doc = include_str!("window_shuffle.md")]
    fn window_shuffle(self, window: usize, seed: impl Into<Option<u32>>) -> IterWindowShuffle<Self> {
        Flowing::new(self, |parent| WindowFlow { window, seed: StageSeed::resolve(seed.into(), &[parent]) })
    }

    /// Yields the first `count` elements.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `count` is 0.
    fn limit(self, count: u64) -> IterLimit<Self> {
        Flowing::new(self, |_| CountFlow { count, skips: false })
    }

    /// Yields the first `count` elements. Same as [`limit`](Self::limit), under the name that iterators use.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `count` is 0.
    fn take(self, count: u64) -> IterLimit<Self> {
        self.limit(count)
    }

    /// Yields all elements except the first `count`.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 5).to_iter().skip(1).take(2).collect()?, [1, 2]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    /// # Cost
    /// Skipped elements are evaluated and dropped. A slice before [`to_iter`](crate::MapDatasetExt::to_iter) is free.
    fn skip(self, count: u64) -> IterSkip<Self> {
        Flowing::new(self, |_| CountFlow { count, skips: true })
    }

    /// Pairs each element with its number in this stream, from 0. The count is kept across a resume.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(5, 9).to_iter().filter(|x| x % 2 == 0).enumerate().collect()?, [(0, 6), (1, 8)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn enumerate(self) -> IterEnumerate<Self> {
        IterEnumerate::enumerate(self)
    }

    #[doc = include_str!("skip_bad.md")]
    fn on_bad_record(self, policy: BadRecords) -> IterSkipBad<Self> {
        Flowing::new(self, |_| SkipBadFlow { policy })
    }

    /// Repeats the stream `epochs` times, or forever if `epochs` is `None`. All epochs are equal, element by element.
    ///
    /// For a new order in every epoch, repeat before the shuffle, on the [`MapDataset`](crate::MapDataset).
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 2).to_iter().repeat(2).collect()?, [0, 1, 0, 1]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for 0 epochs. [`ErrorKind::Data`](crate::ErrorKind::Data) if an
    /// epoch of an endless repeat yields no element, because the next element would never come.
    fn repeat(self, epochs: impl Into<Option<u64>>) -> IterRepeat<Self> {
        Flowing::new(self, |_| RepeatFlow { epochs: epochs.into() })
    }

    /// Keeps all elements in memory. A restart, for example by [`repeat`](Self::repeat), yields them from memory.
    ///
    /// # Cost
    /// Memory for the whole stream, and a clone per element; clones of an [`Element`] share the bytes. A resume reads
    /// the stream again up to its position.
    fn cache(self) -> IterCache<Self>
    where
        Self::Item: Clone,
    {
        Flowing::new(self, |_| CacheFlow)
    }

    /// Sets the seed from which later random stages derive theirs; see [`default_seed`](crate::dataset::default_seed).
    fn seed(self, seed: u32) -> Seed<Self> {
        Ordered::new(self, |_| SeedOrder(seed))
    }

    /// Erases the type, as for pipeline files and Python.
    fn boxed(self) -> BoxIter<Self::Item>
    where
        Self: 'static,
    {
        BoxIter::new(self)
    }

    /// Adds a custom stage to a chain: `ds.pipe(|d| MyStage::new(d))`.
    fn pipe<T>(self, f: impl FnOnce(Self) -> T) -> T {
        f(self)
    }

    /// Reads all elements into memory, on this thread.
    ///
    /// # Errors
    /// The first error of the pass.
    fn collect(&self) -> Result<Vec<Self::Item>> {
        self.check_all()?;
        let run = Runtime::inline();
        let (mut iter, mut cx) = (self.iter(&run)?, run.cx());
        let mut all = Vec::new();
        while let Some(element) = iter.next(&mut cx)? {
            all.push(element);
        }
        Ok(all)
    }

    /// Calls [`Describe::check`](crate::dataset::Describe::check) on every stage.
    ///
    /// # Errors
    /// The error of the first stage that cannot work as configured.
    fn check_all(&self) -> Result<()> {
        (self as &dyn Stage).check_all()
    }
}

impl<D: IterDataset> IterDatasetExt for D {}
