use std::ops::RangeBounds;
use std::sync::Arc;

use super::{
    Batch, BlockOrder, BlockShuffle, DrawFn, ElementIndex, Filter, FilterFn, FlatMap, IndexFn, IndicesOrder, Many, Map,
    MapFn, MapWithIndex, Mapped, Ordered, RandomMap, Repeat, RepeatOrder, Seed, SeedOrder, SelectIndices, Shuffle,
    ShuffleOrder, Slice, SliceOrder, Slots, SlotsFn, Split, SplitOrder, SplitSizes, Stacking, TryDrawFn, TryFlatMap,
    TryIndexFn, TryMap, TryMapFn, TryMapWithIndex, TryRandomMap, WindowOrder, WindowShuffle, Zip,
};
use crate::cx::{Cx, StageId};
use crate::dataset::boxed::BoxMap;
use crate::dataset::iter::{InPlace, Stream};
use crate::dataset::remainder::Remainder;
use crate::dataset::run::collect::collect;
use crate::dataset::stage::Stage;
use crate::element::{Name, Ragged, Stack};
use crate::error::Result;
use crate::exec::Runtime;
use crate::rng::ElementRng;

/// Answer of [`MapDataset::get_stacked`]: a batch, or nothing.
pub type GetStacked<T> = Option<InPlace<<T as Stack>::Batch>>;

/// Random access, without state: every [`get`](Self::get) stands alone, so any thread may call it, in any order.
///
/// # Determinism
/// `get(i)` is a pure function of the pipeline and `i`. Executors rely on it: they evaluate chunks of consecutive
/// indices wherever a thread is free, and a crashed or repeated chunk gives the same elements.
///
/// # Writing one outside the crate
/// Implement [`Stage`] (name, params, role, parents) and the two methods below; number the stage by
/// [`stage_after`](crate::dataset::stage_after) and run its own work inside [`Cx::timed`], so that the report sees it.
/// `examples/custom_stage.rs` is a complete one; [`get_many`](Self::get_many) makes it quicker where elements are cheap. [`pipe`](Self::pipe) puts it into a chain.
pub trait MapDataset: Stage + Send + Sync {
    /// Elements of this type.
    type Item;

    /// Elements in one epoch, [`INFINITE`](crate::dataset::INFINITE) if it never ends.
    fn len(&self) -> u64;

    /// The element at `index`, or `None` where a filter dropped it. Indices past [`len`](Self::len) belong to later epochs.
    ///
    /// # Errors
    /// Errors of a source, a user's function or a check of the data, with the stage that failed.
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Self::Item>>;

    /// Does what [`get`](Self::get) does for each of `indices`, in that order: a place for every index, whatever becomes of it.
    ///
    /// Executors ask for chunks where elements are cheap. A stage that does nothing here does what it does one by one; one
    /// that evaluates its parent by `get_many` and then runs over the elements in one loop, inside [`Cx::timed_many`], costs a
    /// call, a look at the clock and so on for the chunk instead of the element. An error belongs to its place, and the
    /// others have their elements all the same.
    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Self::Item> {
        Many::one_by_one(indices, |index| self.get(index, cx))
    }

    /// Makes what [`Stack::stack`] makes of the elements at `indices`, at least one, in that order, where that is to be had without
    /// making them: a source that has columns copies it out of those, and a stage that changes only the order passes it on.
    ///
    /// `None` where it is not to be had, and where an element is missing, bad or unlike the first: who asks then makes the
    /// elements, and learns which of them it is. Asked is only what [has columns](Stage::has_columns), behind stages of order.
    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<Self::Item>
    where
        Self::Item: Stack,
    {
        let _ = (indices, cx);
        None
    }

    /// The rows that stand for what [`get_many`](Self::get_many) gives at `indices`, without elements: the arrays of these names. For
    /// sources of columns, and stages that change only the order. `None` where elements are needed: where an index has none, a value
    /// is no array, two differ in dtype or inner shape, or making an element could fail.
    fn get_ragged(&self, indices: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        let _ = (indices, names, cx);
        None
    }

    /// What becomes of some records of the source that is at this [place](Stage::address), whatever orders lie between, if all other stages
    /// see each element alone. `None` where that is not so, and where it is the source of another.
    #[doc(hidden)]
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<Self::Item>> {
        let _ = (source, records, cx);
        None
    }

    /// The rows that stand for some records of the source that is at this place, whatever orders lie between: see [`get_ragged`](Self::get_ragged).
    /// `None` where any other stage lies between, too, and where it is the source of another.
    #[doc(hidden)]
    fn get_ragged_records(&self, source: usize, records: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        let _ = (source, records, names, cx);
        None
    }

    /// The indices of the parent that stand at `indices`, where other processes have to be told of them: see `Order::listed`.
    #[doc(hidden)]
    fn listed(&self, indices: std::ops::Range<u64>) -> Option<Vec<u64>> {
        let _ = indices;
        None
    }

    /// The same dataset for one pass behind `border`, where the executor of `run` evaluates only a part of it; `None` where all of it
    /// is evaluated in one place. A stage that says nothing here is evaluated with all in front of it.
    #[doc(hidden)]
    fn for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<Self>>
    where
        Self: Sized,
    {
        let _ = (run, border);
        None
    }

    /// Whether an epoch has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies `f` to every element. One that may fail is for [`try_map`](Self::try_map): here a `Result` would be the element.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// let ds = Range::new(0, 3).map(|x| x * 10);
    /// assert_eq!(ds.collect()?, [0, 10, 20]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn map<U, F>(self, f: F) -> Map<Self, F>
    where
        Self: Sized,
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
        Self: Sized,
        F: Fn(Self::Item) -> Result<U> + Send + Sync,
    {
        Mapped::new(self, |_| TryMapFn(f))
    }

    /// Keeps the elements for which `predicate` holds. The length stays: a dropped element leaves an empty slot, which
    /// [`to_iter`](Self::to_iter) skips.
    fn filter<P>(self, predicate: P) -> Filter<Self, P>
    where
        Self: Sized,
        P: Fn(&Self::Item) -> bool + Send + Sync,
    {
        Mapped::new(self, |_| FilterFn(predicate))
    }

    /// The slots themselves, for what must have one for each index, as `batch`: `None` where an element was dropped.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// let ds = Range::new(0, 4).filter(|x| x % 2 == 1).slots();
    /// assert_eq!(ds.collect()?, [None, Some(1), None, Some(3)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn slots(self) -> Slots<Self>
    where
        Self: Sized,
    {
        Mapped::new(self, |_| SlotsFn)
    }

    /// Sets the seed from which random stages after it, unless given their own, derive theirs.
    ///
    /// Grain's rule: see [`default_seed`](crate::dataset::default_seed).
    fn seed(self, seed: u32) -> Seed<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |_| SeedOrder(seed))
    }

    /// Applies `f` to every element and its [`ElementIndex`].
    ///
    /// The global index goes on over the epochs, as in Grain; `epoch` and `in_epoch` are counted where the stage stands,
    /// so put it before [`repeat`](Self::repeat) to see epochs.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// let ds = Range::new(5, 7).map_with_index(|i, x| (i.epoch, i.in_epoch, x)).repeat(2);
    /// assert_eq!(ds.collect()?, [(0, 0, 5), (0, 1, 6), (1, 0, 5), (1, 1, 6)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn map_with_index<U, F>(self, f: F) -> MapWithIndex<Self, F>
    where
        Self: Sized,
        F: Fn(ElementIndex, Self::Item) -> U + Send + Sync,
    {
        Mapped::new(self, |parent| IndexFn::new(parent.len(), f))
    }

    /// [`map_with_index`](Self::map_with_index) with a function that may fail.
    ///
    /// # Errors
    /// The error of `f`, with stage and element index.
    fn try_map_with_index<U, F>(self, f: F) -> TryMapWithIndex<Self, F>
    where
        Self: Sized,
        F: Fn(ElementIndex, Self::Item) -> Result<U> + Send + Sync,
    {
        Mapped::new(self, |parent| TryIndexFn::new(parent.len(), f))
    }

    #[doc = include_str!("shuffle.md")]
    fn shuffle(self, seed: impl Into<Option<u32>>) -> Shuffle<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |parent| ShuffleOrder::new(parent, seed.into()))
    }

    #[doc = include_str!("window_shuffle.md")]
    fn window_shuffle(self, window_size: u64, seed: impl Into<Option<u32>>) -> WindowShuffle<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |parent| WindowOrder::new(parent, window_size, seed.into()))
    }

    #[doc = include_str!("block_shuffle.md")]
    fn block_shuffle(self, window_blocks: usize, seed: impl Into<Option<u32>>) -> BlockShuffle<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |parent| BlockOrder::new(parent, window_blocks, seed.into()))
    }

    /// Applies `f` to every element and a generator of random numbers that belongs to its index.
    ///
    /// Without a seed of its own it takes the [default](crate::dataset::default_seed) from the [`seed`](Self::seed) before it;
    /// without either it is an [`ErrorKind::Config`](crate::ErrorKind::Config) error of [`check`](Stage::check).
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// let ds = Range::new(0, 4).seed(41).random_map(None, |x, rng| x + rng.integers(0, 10));
    /// assert_eq!(ds.collect()?, [0, 6, 9, 5]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Determinism
    /// The numbers are a function of (seed, global index), whoever draws them and in whatever order; those of numpy's
    /// `Generator(Philox(seed))` with the index in its counter, as in Grain. Every epoch draws others.
    ///
    /// # Cost
    /// About 20 ns for the first number of an element.
    fn random_map<U, F>(self, seed: impl Into<Option<u32>>, f: F) -> RandomMap<Self, F>
    where
        Self: Sized,
        F: Fn(Self::Item, &mut ElementRng) -> U + Send + Sync,
    {
        Mapped::new(self, |parent| DrawFn::new(parent, seed.into(), f))
    }

    /// [`random_map`](Self::random_map) with a function that may fail.
    ///
    /// # Errors
    /// The error of `f`, with stage and element index.
    fn try_random_map<U, F>(self, seed: impl Into<Option<u32>>, f: F) -> TryRandomMap<Self, F>
    where
        Self: Sized,
        F: Fn(Self::Item, &mut ElementRng) -> Result<U> + Send + Sync,
    {
        Mapped::new(self, |parent| TryDrawFn::new(parent, seed.into(), f))
    }

    /// Makes up to `max_fan_out` elements of each: the length is `max_fan_out` times as large, and slots that `f` does not
    /// fill are empty.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// let ds = Range::new(0, 3).flat_map(2, |x| vec![x; x as usize]);
    /// assert_eq!((ds.len(), ds.collect()?), (6, vec![1, 2, 2]));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) in every slot of an element that becomes more than `max_fan_out`.
    ///
    /// # Cost
    /// `f` runs once for each element where a thread asks for the slots in order (Grain runs it for every slot), and holds
    /// what is left of one element for each thread. In any other order, such as after a shuffle, it runs for every slot.
    fn flat_map<C, F>(self, max_fan_out: usize, f: F) -> FlatMap<Self, F, C::Item>
    where
        Self: Sized,
        C: IntoIterator<Item: Send>,
        F: Fn(Self::Item) -> C + Send + Sync,
    {
        FlatMap::new(self, max_fan_out, f)
    }

    /// [`flat_map`](Self::flat_map) with a function that may fail.
    ///
    /// # Errors
    /// The error of `f`, in every slot of the element.
    fn try_flat_map<C, F>(self, max_fan_out: usize, f: F) -> TryFlatMap<Self, F, C::Item>
    where
        Self: Sized,
        C: IntoIterator<Item: Send>,
        F: Fn(Self::Item) -> Result<C> + Send + Sync,
    {
        TryFlatMap::new(self, max_fan_out, f)
    }

    /// The elements of `range`, as Python's `ds[a:b]`: negative numbers count from the end, and what is out of range is cut.
    ///
    /// Epoch `e` is the slice of the parent's epoch `e`, which a shuffle puts in another order: parts that must share no
    /// element in any epoch are those of [`split`](Self::split). A dataset that never ends cannot be counted from its end: an
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) error of [`check`](Stage::check).
    /// DIFFERENCE: what is left of it from a start on never ends either; in Grain it has a length, `sys.maxsize - start`.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 10).slice(2..4).collect()?, [2, 3]);
    /// assert_eq!(Range::new(0, 10).slice(-2..).collect()?, [8, 9]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn slice(self, range: impl RangeBounds<i64>) -> Slice<Self>
    where
        Self: Sized,
    {
        self.slice_step(range, 1)
    }

    /// Every `step`-th element of `range`, backwards from its start where `step` is negative: Python's `ds[a:b:step]`.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 10).slice_step(1..8, 3).collect()?, [1, 4, 7]);
    /// assert_eq!(Range::new(0, 10).slice_step(.., -4).collect()?, [9, 5, 1]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn slice_step(self, range: impl RangeBounds<i64>, step: i64) -> Slice<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |parent| SliceOrder::new(parent.len(), &range, step))
    }

    #[doc = include_str!("split.md")]
    fn split(self, sizes: &SplitSizes, take: usize) -> Split<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |parent| SplitOrder::new(parent.len(), sizes, take))
    }

    /// Every `count`-th element from `index` on: the part of host `index` where `count` hosts read one dataset.
    ///
    /// Put it after the shuffle, so that every host draws from all of the data and in each step all hosts together read
    /// consecutive elements of one global order. Where the length is no multiple of `count`, the first shards have one
    /// element more; hosts that must take the same number of steps cut it first: `.slice(..n - n % count)`.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 7).shard(1, 3).collect()?, [1, 4]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn shard(self, index: u64, count: u64) -> Slice<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |parent| SliceOrder::shard(parent.len(), index, count))
    }

    /// The elements at `indices`, in that order, as often as they are listed; in epoch `e` those of the parent's epoch `e`.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 10).select_indices([7, 0, 7]).collect()?, [7, 0, 7]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn select_indices(self, indices: impl Into<Arc<[u64]>>) -> SelectIndices<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |parent| IndicesOrder::new(parent.len(), indices.into()))
    }

    /// `num_epochs` epochs as one, or epochs without end for `None`.
    ///
    /// Each is shuffled, and draws its random numbers, anew; with
    /// [`reseed_each_epoch(false)`](Repeat::reseed_each_epoch) each is the first again. A slice of a shuffled dataset has
    /// other elements in each epoch: see [`split`](Self::split). 0 epochs, repeating what never ends
    /// and repeating nothing forever are [`ErrorKind::Config`](crate::ErrorKind::Config) errors of [`check`](Stage::check).
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 2).repeat(2).collect()?, [0, 1, 0, 1]);
    /// assert_eq!(Range::new(0, 2).repeat(None).slice(..3).collect()?, [0, 1, 0]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn repeat(self, num_epochs: impl Into<Option<u64>>) -> Repeat<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |parent| RepeatOrder::new(parent.len(), num_epochs.into()))
    }

    /// Its elements and those of `other`, side by side; [`ZipAll`](super::ZipAll) takes any number of datasets of one type.
    ///
    /// Lengths that differ are an [`ErrorKind::Config`](crate::ErrorKind::Config) error of [`check`](Stage::check).
    /// DIFFERENCE: where a filter dropped the element of either, the pair is dropped; Grain hands out a pair with `None` in it.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 2).zip(Range::new(5, 7)).collect()?, [(0, 5), (1, 6)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn zip<D: MapDataset>(self, other: D) -> Zip<Self, D>
    where
        Self: Sized,
    {
        Zip::new(self, other)
    }

    /// Stacks `size` consecutive elements into one batch, by [`Stack`]. No batch reaches from one epoch into the next: the
    /// last of an epoch may be smaller.
    ///
    /// A batch of 0, and a stage before it that may drop elements, are [`ErrorKind::Config`](crate::ErrorKind::Config)
    /// errors of [`check`](Stage::check): batches here have fixed places. Behind a filter, batch the stream.
    ///
    /// ```
    /// use gristmill::{MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 5).batch(2).collect()?, [vec![0, 1], vec![2, 3], vec![4]]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn batch(self, size: usize) -> Batch<Self, Stacking>
    where
        Self: Sized,
        Self::Item: Stack,
    {
        self.batch_with(size, Remainder::Keep)
    }

    /// [`batch`](Self::batch), choosing what becomes of the last elements of an epoch where they do not fill one.
    fn batch_with(self, size: usize, remainder: Remainder) -> Batch<Self, Stacking>
    where
        Self: Sized,
        Self::Item: Stack,
    {
        Batch::new(self, size, remainder, Stacking)
    }

    /// Makes a batch of `size` elements at a time by a function of your own, which gets 1 to `size` of them.
    ///
    /// # Errors
    /// The error of `f`, with the stage.
    fn batch_with_fn<B, F>(self, size: usize, remainder: Remainder, f: F) -> Batch<Self, F>
    where
        Self: Sized,
        F: Fn(Vec<Self::Item>) -> Result<B> + Send + Sync,
    {
        Batch::new(self, size, remainder, f)
    }

    /// The elements of one epoch as a stream, empty slots skipped.
    fn to_iter(self) -> Stream<Self>
    where
        Self: Sized + 'static,
    {
        Stream::new(Arc::new(self))
    }

    /// Hides the type: what declared pipelines and Python hold.
    fn boxed(self) -> BoxMap<Self::Item>
    where
        Self: Sized + 'static,
    {
        BoxMap::new(self)
    }

    /// Puts a stage of your own into a chain: `ds.pipe(|d| MyStage::new(d))`.
    fn pipe<T>(self, f: impl FnOnce(Self) -> T) -> T
    where
        Self: Sized,
    {
        f(self)
    }

    /// Reads one epoch into memory, on this thread, empty slots skipped.
    ///
    /// # Errors
    /// The first stage that cannot work as configured, then the first error of an element.
    fn collect(&self) -> Result<Vec<Self::Item>>
    where
        Self: Sized,
    {
        collect(self)
    }
}
