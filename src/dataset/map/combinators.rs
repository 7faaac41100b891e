use std::ops::RangeBounds;
use std::sync::Arc;

use super::{
    Batch, BlockOrder, BlockShuffle, DrawFn, ElementIndex, FannedOut, Filter, FilterFn, FlatMap, IndexFn, IndicesOrder,
    Map, MapDataset, MapFn, MapWithIndex, Mapped, Ordered, RandomMap, Repeat, RepeatOrder, Seed, SeedOrder,
    SelectIndices, Shuffle, ShuffleOrder, Slice, SliceOrder, Slots, SlotsFn, Split, SplitOrder, SplitSizes, TryDrawFn,
    TryFlatMap, TryIndexFn, TryMap, TryMapFn, TryMapWithIndex, TryRandomMap, WindowOrder, WindowShuffle, Zip,
};
use crate::dataset::boxed::BoxMap;
use crate::dataset::iter::{BatchFn, Stacked, Stream};
use crate::dataset::remainder::Remainder;
use crate::dataset::run::collect::collect;
use crate::element::Stack;
use crate::error::Result;
use crate::rng::ElementRng;

/// The methods of every [`MapDataset`]: stages after it, a stream of it, its elements.
///
/// The trait is implemented for all datasets. Import it with the [`prelude`](crate::prelude).
pub trait MapDatasetExt: MapDataset + Sized {
    /// Returns true if an epoch has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies `f` to every element. If `f` may fail, use [`try_map`](Self::try_map): here a `Result` is an element.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let ds = Range::new(0, 3).map(|x| x * 10);
    /// assert_eq!(ds.collect()?, [0, 10, 20]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn map<U, F>(self, f: F) -> Map<Self, F>
    where
        F: Fn(Self::Item) -> U + Send + Sync,
    {
        Mapped::new(self, |_| MapFn(f))
    }

    /// Applies `f`, which may fail, to every element.
    ///
    /// # Errors
    /// The error of `f`, with stage and element index.
    fn try_map<U, F>(self, f: F) -> TryMap<Self, F>
    where
        F: Fn(Self::Item) -> Result<U> + Send + Sync,
    {
        Mapped::new(self, |_| TryMapFn(f))
    }

    /// Keeps the elements for which `predicate` returns true. The length does not change: a dropped element leaves an
    /// empty slot, which [`to_iter`](Self::to_iter) skips.
    fn filter<P>(self, predicate: P) -> Filter<Self, P>
    where
        P: Fn(&Self::Item) -> bool + Send + Sync,
    {
        Mapped::new(self, |_| FilterFn(predicate))
    }

    /// Yields every slot, `None` if its element was dropped. For stages that need all slots, such as `batch`.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let ds = Range::new(0, 4).filter(|x| x % 2 == 1).slots();
    /// assert_eq!(ds.collect()?, [None, Some(1), None, Some(3)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn slots(self) -> Slots<Self> {
        Mapped::new(self, |_| SlotsFn)
    }

    /// Sets the seed from which later random stages derive their seeds, unless a stage is given its own seed.
    ///
    /// Follows Grain's rule: see [`default_seed`](crate::dataset::default_seed).
    fn seed(self, seed: u32) -> Seed<Self> {
        Ordered::new(self, |_| SeedOrder(seed))
    }

    /// Applies `f` to every element and its [`ElementIndex`].
    ///
    /// The global index continues over epochs, as in Grain. `epoch` and `in_epoch` count epochs of this stage. To see
    /// the epochs of [`repeat`](Self::repeat), put this stage before it.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let ds = Range::new(5, 7).map_with_index(|i, x| (i.epoch, i.in_epoch, x)).repeat(2);
    /// assert_eq!(ds.collect()?, [(0, 0, 5), (0, 1, 6), (1, 0, 5), (1, 1, 6)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn map_with_index<U, F>(self, f: F) -> MapWithIndex<Self, F>
    where
        F: Fn(ElementIndex, Self::Item) -> U + Send + Sync,
    {
        Mapped::new(self, |parent| IndexFn { f, len: parent.len() })
    }

    /// Applies `f`, which may fail, to every element and its [`ElementIndex`].
    ///
    /// # Errors
    /// The error of `f`, with stage and element index.
    fn try_map_with_index<U, F>(self, f: F) -> TryMapWithIndex<Self, F>
    where
        F: Fn(ElementIndex, Self::Item) -> Result<U> + Send + Sync,
    {
        Mapped::new(self, |parent| TryIndexFn::new(parent.len(), f))
    }

    #[doc = include_str!("shuffle.md")]
    fn shuffle(self, seed: impl Into<Option<u32>>) -> Shuffle<Self> {
        Ordered::new(self, |parent| ShuffleOrder::new(parent, seed.into()))
    }

    #[doc = include_str!("window_shuffle.md")]
    fn window_shuffle(self, window_size: u64, seed: impl Into<Option<u32>>) -> WindowShuffle<Self> {
        Ordered::new(self, |parent| WindowOrder::new(parent, window_size, seed.into()))
    }

    #[doc = include_str!("block_shuffle.md")]
    fn block_shuffle(self, window_blocks: usize, seed: impl Into<Option<u32>>) -> BlockShuffle<Self> {
        Ordered::new(self, |parent| BlockOrder::new(parent, window_blocks, seed.into()))
    }

    /// Applies `f` to every element and to the random number generator of its index.
    ///
    /// Without `seed`, an earlier [`seed`](Self::seed) stage gives a [default](crate::dataset::default_seed). Without
    /// either, the [check](crate::dataset::Describe::check) is an [`ErrorKind::Config`](crate::ErrorKind::Config).
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let ds = Range::new(0, 4).seed(41).random_map(None, |x, rng| x + rng.integers(0, 10));
    /// assert_eq!(ds.collect()?, [0, 6, 9, 5]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Determinism
    /// The numbers are a function of (seed, global index), independent of thread and order. They equal the numbers of
    /// numpy's `Generator(Philox(seed))` with the index in its counter, as in Grain. Numbers differ between epochs.
    ///
    /// # Cost
    /// About 20 ns for the first number of an element.
    fn random_map<U, F>(self, seed: impl Into<Option<u32>>, f: F) -> RandomMap<Self, F>
    where
        F: Fn(Self::Item, &mut ElementRng) -> U + Send + Sync,
    {
        Mapped::new(self, |parent| DrawFn::new(parent, seed.into(), f))
    }

    /// Applies `f`, which may fail, to every element and to the random number generator of its index.
    ///
    /// # Errors
    /// The error of `f`, with stage and element index.
    fn try_random_map<U, F>(self, seed: impl Into<Option<u32>>, f: F) -> TryRandomMap<Self, F>
    where
        F: Fn(Self::Item, &mut ElementRng) -> Result<U> + Send + Sync,
    {
        Mapped::new(self, |parent| TryDrawFn::new(parent, seed.into(), f))
    }

    /// Replaces each element by up to `max_fan_out` elements. The length is multiplied by `max_fan_out`. Slots that `f`
    /// does not fill are empty.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let ds = Range::new(0, 3).flat_map(2, |x| vec![x; x as usize]);
    /// assert_eq!((ds.len(), ds.collect()?), (6, vec![1, 2, 2]));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) in every slot of an element with more than `max_fan_out` results.
    ///
    /// # Cost
    /// `f` runs once per element if a thread reads the slots in order; Grain runs it for every slot. Each thread holds
    /// the remaining pieces of one element. In any other order, such as after a shuffle, `f` runs for every slot.
    fn flat_map<C, F>(self, max_fan_out: usize, f: F) -> FlatMap<Self, F, C::Item>
    where
        C: IntoIterator<Item: Send>,
        F: Fn(Self::Item) -> C + Send + Sync,
    {
        FannedOut::new(self, max_fan_out, MapFn(f))
    }

    /// Replaces each element by up to `max_fan_out` elements with `f`, which may fail.
    ///
    /// # Errors
    /// The error of `f`, in every slot of the element.
    fn try_flat_map<C, F>(self, max_fan_out: usize, f: F) -> TryFlatMap<Self, F, C::Item>
    where
        C: IntoIterator<Item: Send>,
        F: Fn(Self::Item) -> Result<C> + Send + Sync,
    {
        FannedOut::new(self, max_fan_out, TryMapFn(f))
    }

    /// Keeps the elements of `range`, like Python's `ds[a:b]`: negative numbers count from the end, and excess is cut.
    ///
    /// Epoch `e` is the slice of the parent's epoch `e`. After a shuffle, the slice has other elements in each epoch:
    /// use [`split`](Self::split) for parts that share no element. Negative numbers of an infinite dataset are an
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) of the [check](crate::dataset::Describe::check).
    /// DIFFERENCE: an infinite dataset sliced without a stop is infinite. In Grain its length is `sys.maxsize - start`.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 10).slice(2..4).collect()?, [2, 3]);
    /// assert_eq!(Range::new(0, 10).slice(-2..).collect()?, [8, 9]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn slice(self, range: impl RangeBounds<i64>) -> Slice<Self> {
        self.slice_step(range, 1)
    }

    /// Keeps every `step`-th element of `range`, like Python's `ds[a:b:step]`. A negative step goes backwards.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 10).slice_step(1..8, 3).collect()?, [1, 4, 7]);
    /// assert_eq!(Range::new(0, 10).slice_step(.., -4).collect()?, [9, 5, 1]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn slice_step(self, range: impl RangeBounds<i64>, step: i64) -> Slice<Self> {
        Ordered::new(self, |parent| SliceOrder::new(parent.len(), &range, step))
    }

    #[doc = include_str!("split.md")]
    fn split(self, sizes: &SplitSizes, take: usize) -> Split<Self> {
        Ordered::new(self, |parent| SplitOrder::new(parent.len(), sizes, take))
    }

    /// Keeps every `count`-th element from `index` on: the part of host `index` if `count` hosts read one dataset.
    ///
    /// Put it after the shuffle. Each host then draws from all of the data, and in each step the hosts together read
    /// consecutive elements of one global order. If the length is not a multiple of `count`, the first shards have one
    /// more element. For equal numbers of steps on all hosts, first cut the dataset: `.slice(..n - n % count)`.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 7).shard(1, 3).collect()?, [1, 4]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn shard(self, index: u64, count: u64) -> Slice<Self> {
        Ordered::new(self, |parent| SliceOrder::shard(parent.len(), index, count))
    }

    /// Keeps the elements at `indices`, in that order; repeats are allowed. Epoch `e` reads the parent's epoch `e`.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 10).select_indices([7, 0, 7]).collect()?, [7, 0, 7]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn select_indices(self, indices: impl Into<Arc<[u64]>>) -> SelectIndices<Self> {
        Ordered::new(self, |parent| IndicesOrder { indices: indices.into(), parent_len: parent.len() })
    }

    /// Joins `num_epochs` epochs into one epoch; `None` repeats forever.
    ///
    /// By default, each epoch is shuffled and draws random numbers anew. With
    /// [`reseed_each_epoch(false)`](Repeat::reseed_each_epoch), each epoch equals the first. A slice of a shuffled
    /// dataset has other elements in each epoch: see [`split`](Self::split). [`check`](crate::dataset::Describe::check)
    /// rejects 0 epochs, an infinite dataset, and an empty dataset repeated forever with
    /// [`ErrorKind::Config`](crate::ErrorKind::Config).
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 2).repeat(2).collect()?, [0, 1, 0, 1]);
    /// assert_eq!(Range::new(0, 2).repeat(None).slice(..3).collect()?, [0, 1, 0]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn repeat(self, num_epochs: impl Into<Option<u64>>) -> Repeat<Self> {
        Ordered::new(self, |parent| RepeatOrder {
            num_epochs: num_epochs.into(),
            reseed: true,
            parent_len: parent.len(),
        })
    }

    /// Pairs elements with the elements of `other`. [`ZipAll`](super::ZipAll) takes any number of datasets of one type.
    ///
    /// [`check`](crate::dataset::Describe::check) rejects different lengths with
    /// [`ErrorKind::Config`](crate::ErrorKind::Config).
    /// DIFFERENCE: if a filter dropped either element, the pair is dropped. Grain yields a pair with `None` in it.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 2).zip(Range::new(5, 7)).collect()?, [(0, 5), (1, 6)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn zip<D: MapDataset>(self, other: D) -> Zip<Self, D> {
        Zip::new(self, other)
    }

    /// Stacks `size` consecutive elements into one batch, by [`Stack`]. A batch never spans two epochs: the last batch
    /// of an epoch may be smaller.
    ///
    /// [`check`](crate::dataset::Describe::check) rejects a `size` of 0, and stages before it that may drop elements,
    /// with [`ErrorKind::Config`](crate::ErrorKind::Config): batches have fixed indices. After a filter, batch the
    /// stream.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// assert_eq!(Range::new(0, 5).batch(2).collect()?, [vec![0, 1], vec![2, 3], vec![4]]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn batch(self, size: usize) -> Batch<Self, Stacked>
    where
        Self::Item: Stack<Batch: Send + 'static>,
    {
        self.batch_with(size, Remainder::Keep)
    }

    /// Makes batches like [`batch`](Self::batch), with a policy for last elements that do not fill a batch.
    fn batch_with(self, size: usize, remainder: Remainder) -> Batch<Self, Stacked>
    where
        Self::Item: Stack<Batch: Send + 'static>,
    {
        Batch::new(self, size, remainder, Stacked)
    }

    /// Makes batches with a custom function, which receives 1 to `size` elements.
    ///
    /// # Errors
    /// The error of `f`, with the stage.
    fn batch_with_fn<B, F>(self, size: usize, remainder: Remainder, f: F) -> Batch<Self, BatchFn<F>>
    where
        B: Send + 'static,
        F: Fn(Vec<Self::Item>) -> Result<B> + Send + Sync + 'static,
    {
        Batch::new(self, size, remainder, BatchFn(f))
    }

    /// Converts one epoch into a stream. Skips empty slots.
    fn to_iter(self) -> Stream<Self>
    where
        Self: 'static,
    {
        Stream::new(Arc::new(self))
    }

    /// Hides the type of the dataset. Declared pipelines and Python use boxed datasets.
    fn boxed(self) -> BoxMap<Self::Item>
    where
        Self: 'static,
    {
        BoxMap::new(self)
    }

    /// Passes the dataset to `f`, to add a custom stage to a chain: `ds.pipe(|d| MyStage::new(d))`.
    fn pipe<T>(self, f: impl FnOnce(Self) -> T) -> T {
        f(self)
    }

    /// Reads one epoch into memory, on this thread. Skips empty slots.
    ///
    /// # Errors
    /// The error of the first stage that fails its check, else the first error of an element.
    fn collect(&self) -> Result<Vec<Self::Item>> {
        collect(self)
    }
}

impl<D: MapDataset> MapDatasetExt for D {}
