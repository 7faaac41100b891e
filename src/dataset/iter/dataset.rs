use super::{
    BadRecords, BatchFn, CacheFlow, Counter, DatasetIterator, FilterThresholds, FlatMapFlow, Flowing, InOrder,
    IterBatch, IterCache, IterEnumerate, IterFilter, IterFlatMap, IterLimit, IterMap, IterMapWithIndex, IterRandomMap,
    IterRebatch, IterRepeat, IterSkip, IterSkipBad, IterTryFlatMap, IterTryMap, IterTryMapWithIndex, IterTryRandomMap,
    IterWindowShuffle, IterZip, LimitFlow, Padding, PartPassOf, RebatchFlow, RepeatFlow, SkipBadFlow, SkipFlow,
    Stacked, StackedPadded, Watch, WindowFlow, ZipLength,
};
use crate::dataset::boxed::BoxIter;
use crate::dataset::map::{DrawFn, FilterFn, MapFn, Ordered, Seed, SeedOrder, TryDrawFn, TryMapFn};
use crate::dataset::plan::{PlanOf, Planning};
use crate::dataset::remainder::Remainder;
use crate::dataset::seeds::StageSeed;
use crate::dataset::stage::Stage;
use crate::element::{Batch, Element, Stack};
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::Part;
use crate::rng::ElementRng;

/// Read in order. [`iter`](Self::iter) starts a pass; the dataset itself never changes.
///
/// It is a recipe over a stream of root elements: who evaluates them is decided last, by the [`Runtime`], and
/// never changes the elements.
pub trait IterDataset: Stage + Send + Sync {
    /// Elements of this type.
    type Item: Send + 'static;
    /// A pass over it.
    type Iter: DatasetIterator<Item = Self::Item> + 'static;

    /// Starts a pass at the beginning.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the stage cannot work as configured.
    fn iter(&self, run: &Runtime) -> Result<Self::Iter>;

    /// Starts a pass that evaluates only what the rows of `part` of every batch need; `None` where the elements of other rows have to be
    /// evaluated to know which rows are whose. Then a loader takes the rows out of whole batches.
    ///
    /// # Errors
    /// As [`iter`](Self::iter), and [`ErrorKind::Config`](crate::ErrorKind::Config) where the rows of a batch do not divide.
    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>>
    where
        Self: Sized,
    {
        let _ = (run, part);
        Ok(None)
    }

    /// Plans the stream out of keys: see [`plan`](crate::dataset::plan). `None` where a stage decides by more than those, and where there are
    /// none.
    ///
    /// A stage of your own that hands on elements as they are, some of them or in another order, plans by a pass of itself over that of its parent:
    /// `match planning.of(&self.parent)? { Some(plan) => plan.through(|pass| Ok(MyIter { parent: pass, … })), None => Ok(None) }`.
    /// Without a plan a host that takes a part of the rows evaluates all elements.
    ///
    /// # Errors
    /// As [`iter`](Self::iter), and those of opening keys.
    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>>
    where
        Self: Sized,
    {
        let _ = planning;
        Ok(None)
    }

    /// Applies `f` to every element. One that may fail is for [`try_map`](Self::try_map): here a `Result` would be the element.
    ///
    /// The thread that asks for elements reads the stream, in order. Threads of the executor apply `f` to chunks of elements.
    /// On a [`Stream`](super::Stream) (right after [`to_iter`](crate::MapDataset::to_iter)) the method of that type is used instead,
    /// which reads on those threads, too.
    fn map<U, F>(self, f: F) -> IterMap<Self, F>
    where
        Self: Sized,
        U: Send + 'static,
        F: Fn(Self::Item) -> U + Send + Sync + 'static,
    {
        Flowing::new(self, |_| InOrder::new(MapFn(f), ()))
    }

    /// Applies `f`, which may fail, to every element.
    ///
    /// Threads apply `f` as that of [`map`](Self::map).
    ///
    /// # Errors
    /// The error of `f`, with the stage.
    fn try_map<U, F>(self, f: F) -> IterTryMap<Self, F>
    where
        Self: Sized,
        U: Send + 'static,
        F: Fn(Self::Item) -> Result<U> + Send + Sync + 'static,
    {
        Flowing::new(self, |_| InOrder::new(TryMapFn(f), ()))
    }

    /// Applies `f` to every element and its index in this stream: a counter of what has arrived here, kept over a resume.
    ///
    /// The index in the dataset, before anything was dropped, is what the method of that name on
    /// [`MapDataset`](crate::MapDataset) gives. DIFFERENCE from Grain: there, every worker process counts from 0 and
    /// indices come up several times; here they are the same whoever evaluates the pipeline.
    fn map_with_index<U, F>(self, f: F) -> IterMapWithIndex<Self, F>
    where
        Self: Sized,
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
        Self: Sized,
        U: Send + 'static,
        F: Fn(u64, Self::Item) -> Result<U> + Send + Sync + 'static,
    {
        IterTryMapWithIndex::named(self, "map_with_index", String::new(), f)
    }

    /// Applies `f` to every element and random numbers of its own: they depend on the seed and on how many elements came
    /// before it here, on nothing else.
    ///
    /// Grain's numbers, bit for bit: Philox4x64 keyed by the seed, at the element's place. Without a `seed` it is
    /// [`default_seed`](crate::dataset::default_seed). In front of [`to_iter`](crate::MapDataset::to_iter) the method of that name
    /// gives the same numbers where nothing was dropped and the seed is the same.
    /// ```
    /// use gristmill::{IterDataset, MapDataset, dataset::map::Range};
    /// let ds = Range::new(0, 3).to_iter().random_map(7, |x, rng| x as f64 + rng.random_f64());
    /// assert_eq!(ds.collect()?, ds.collect()?);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if it has no seed and none is above it.
    fn random_map<U, F>(self, seed: impl Into<Option<u32>>, f: F) -> IterRandomMap<Self, F>
    where
        Self: Sized,
        U: Send + 'static,
        F: Fn(Self::Item, &mut ElementRng) -> U + Send + Sync + 'static,
    {
        Flowing::new(self, |parent| InOrder::new(DrawFn::new(parent, seed.into(), f), Counter::default()))
    }

    /// [`random_map`](Self::random_map) with a function that may fail.
    ///
    /// # Errors
    /// As there, and the error of `f`, with stage and element index.
    fn try_random_map<U, F>(self, seed: impl Into<Option<u32>>, f: F) -> IterTryRandomMap<Self, F>
    where
        Self: Sized,
        U: Send + 'static,
        F: Fn(Self::Item, &mut ElementRng) -> Result<U> + Send + Sync + 'static,
    {
        Flowing::new(self, |parent| InOrder::new(TryDrawFn::new(parent, seed.into(), f), Counter::default()))
    }

    /// Keeps the elements for which `predicate` holds; warns where it drops nearly all: see [`FilterThresholds`].
    ///
    /// Threads apply the predicate as the function of [`map`](Self::map).
    fn filter<P>(self, predicate: P) -> IterFilter<Self, P>
    where
        Self: Sized,
        P: Fn(&Self::Item) -> bool + Send + Sync + 'static,
    {
        self.filter_with(predicate, FilterThresholds::default())
    }

    /// Keeps the elements for which `predicate` holds, with thresholds of your own.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) where the `raise` threshold is reached; the window of 1000 elements that is
    /// looked at is part of the state, so a resumed run fails at the same element.
    fn filter_with<P>(self, predicate: P, thresholds: FilterThresholds) -> IterFilter<Self, P>
    where
        Self: Sized,
        P: Fn(&Self::Item) -> bool + Send + Sync + 'static,
    {
        Flowing::new(self, |_| InOrder::new(FilterFn(predicate), Watch::new(thresholds)))
    }

    /// Replaces every element by what `f` makes of it: none, one or many.
    ///
    /// A resume reads the element that was given out in part once more.
    /// Threads apply `f` as that of [`map`](Self::map); the iterator that it returns is read as its pieces are asked for.
    fn flat_map<C, F>(self, f: F) -> IterFlatMap<Self, F>
    where
        Self: Sized,
        C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
        F: Fn(Self::Item) -> C + Send + Sync + 'static,
    {
        Flowing::new(self, |_| FlatMapFlow::new(MapFn(f)))
    }

    /// [`flat_map`](Self::flat_map) with a function that may fail.
    ///
    /// # Errors
    /// The error of `f`, with the stage.
    fn try_flat_map<C, F>(self, f: F) -> IterTryFlatMap<Self, F>
    where
        Self: Sized,
        C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
        F: Fn(Self::Item) -> Result<C> + Send + Sync + 'static,
    {
        Flowing::new(self, |_| FlatMapFlow::new(TryMapFn(f)))
    }

    /// Stacks `size` elements at a time into one batch; the last may be smaller.
    ///
    /// On a [`Stream`](super::Stream) the `batch` methods of that type are used instead, which run in parallel where they can.
    ///
    /// Arrays of an [`Element`] gain a leading dimension, text becomes a list; numbers and vectors become a `Vec`.
    /// ```
    /// use gristmill::{IterDataset, MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 5).to_iter().batch(2).collect()?, [vec![0, 1], vec![2, 3], vec![4]]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `size` is 0; [`ErrorKind::Data`](crate::ErrorKind::Data) where elements
    /// differ in structure, dtype or shape.
    fn batch(self, size: usize) -> IterBatch<Self, Stacked>
    where
        Self: Sized,
        Self::Item: Stack<Batch: Send + 'static>,
    {
        IterBatch::new(self, size, Remainder::Keep, Stacked)
    }

    /// [`batch`](Self::batch), choosing what becomes of the last elements where they do not fill one.
    fn batch_with(self, size: usize, remainder: Remainder) -> IterBatch<Self, Stacked>
    where
        Self: Sized,
        Self::Item: Stack<Batch: Send + 'static>,
    {
        IterBatch::new(self, size, remainder, Stacked)
    }

    /// [`batch`](Self::batch), with the last one filled up to `size` by [`Stack::padding`]: every batch has one shape, and
    /// [`Padded`](super::Padded) says how many of its elements are real.
    ///
    /// ```
    /// use gristmill::{IterDataset, MapDataset, dataset::map::Range};
    /// let last = Range::new(1, 4).to_iter().batch_padded(2).collect()?.pop().unwrap();
    /// assert_eq!((last.batch.as_slice(), last.real, last.mask()), ([3, 0].as_slice(), 1, vec![true, false]));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn batch_padded(self, size: usize) -> IterBatch<Self, StackedPadded>
    where
        Self: Sized,
        Self::Item: Stack<Batch: Send + 'static>,
    {
        IterBatch::new(self, size, Remainder::Keep, StackedPadded)
    }

    /// [`batch`](Self::batch) of [`Element`]s, with the last one filled up by zeros to `size`, and in every batch a field
    /// `batch_mask` (bool, `[size]`) that is true for real elements: one element spec for the whole run, so that an
    /// accelerator never recompiles.
    ///
    /// # Errors
    /// As [`batch`](Self::batch), and [`ErrorKind::Data`](crate::ErrorKind::Data) if the elements have a field of that name.
    fn batch_masked(self, size: usize) -> IterBatch<Self, Padding>
    where
        Self: IterDataset<Item = Element> + Sized,
    {
        self.batch_masked_with(size, Padding::default())
    }

    /// [`batch_masked`](Self::batch_masked) with a pad value and a name of the mask of your own.
    ///
    /// # Errors
    /// As there, and [`ErrorKind::Data`](crate::ErrorKind::Data) if the value does not fit the dtype of an array.
    fn batch_masked_with(self, size: usize, padding: Padding) -> IterBatch<Self, Padding>
    where
        Self: IterDataset<Item = Element> + Sized,
    {
        IterBatch::new(self, size, Remainder::Keep, padding)
    }

    /// Makes a batch of `size` elements at a time by a function of your own, which gets 1 to `size` of them.
    fn batch_with_fn<B, F>(self, size: usize, remainder: Remainder, f: F) -> IterBatch<Self, BatchFn<F>>
    where
        Self: Sized,
        B: Send + 'static,
        F: Fn(Vec<Self::Item>) -> Result<B> + Send + Sync + 'static,
    {
        IterBatch::new(self, size, remainder, BatchFn(f))
    }

    /// Cuts batches anew into `size` rows each, along the leading dimension that all leaves share.
    ///
    /// Rows within one batch of the parent are views of it; only what lies over a boundary is copied.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `size` is 0; [`ErrorKind::Data`](crate::ErrorKind::Data) for a batch of 0 rows,
    /// or whose leaves differ in their number, and where batches that meet in one differ in dtype or shape.
    fn rebatch(self, size: usize, remainder: Remainder) -> IterRebatch<Self>
    where
        Self: IterDataset<Item = Batch> + Sized,
    {
        Flowing::new(self, |_| RebatchFlow { size, remainder })
    }

    /// Pairs of the elements of `self` and `other`, which must be equally many: [`zip_with`](Self::zip_with) says otherwise.
    ///
    /// ```
    /// use gristmill::{IterDataset, MapDataset, dataset::map::Range};
    /// let ds = Range::new(0, 2).to_iter().zip(Range::new(5, 7).map(|x| x.to_string()).to_iter());
    /// assert_eq!(ds.collect()?, [(0, "5".to_owned()), (1, "6".to_owned())]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) where one is shorter, naming it. An error of one side leaves out the
    /// element of the other, too.
    fn zip<E: IterDataset>(self, other: E) -> IterZip<Self, E>
    where
        Self: Sized,
    {
        IterZip::new(self, other, ZipLength::Equal)
    }

    /// [`zip`](Self::zip), choosing what becomes of different lengths.
    fn zip_with<E: IterDataset>(self, other: E, length: ZipLength) -> IterZip<Self, E>
    where
        Self: Sized,
    {
        IterZip::new(self, other, length)
    }

    #[doc = include_str!("window_shuffle.md")]
    fn window_shuffle(self, window: usize, seed: impl Into<Option<u32>>) -> IterWindowShuffle<Self>
    where
        Self: Sized,
    {
        Flowing::new(self, |parent| WindowFlow { window, seed: StageSeed::resolve(seed.into(), &[parent]) })
    }

    /// The first `count` elements.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `count` is 0.
    fn limit(self, count: u64) -> IterLimit<Self>
    where
        Self: Sized,
    {
        Flowing::new(self, |_| LimitFlow { count })
    }

    /// The first `count` elements: [`limit`](Self::limit), by the name that iterators have for it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `count` is 0.
    fn take(self, count: u64) -> IterLimit<Self>
    where
        Self: Sized,
    {
        self.limit(count)
    }

    /// All but the first `count` elements.
    ///
    /// ```
    /// use gristmill::{IterDataset, MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 5).to_iter().skip(1).take(2).collect()?, [1, 2]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    /// # Cost
    /// They are evaluated and let go of. In front of [`to_iter`](crate::MapDataset::to_iter) a slice leaves them out at no cost.
    fn skip(self, count: u64) -> IterSkip<Self>
    where
        Self: Sized,
    {
        Flowing::new(self, |_| SkipFlow { count })
    }

    /// Pairs of each element's number in this stream, from 0 on and kept over a resume, and the element.
    ///
    /// ```
    /// use gristmill::{IterDataset, MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(5, 9).to_iter().filter(|x| x % 2 == 0).enumerate().collect()?, [(0, 6), (1, 8)]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    fn enumerate(self) -> IterEnumerate<Self>
    where
        Self: Sized,
    {
        IterEnumerate::enumerate(self)
    }

    #[doc = include_str!("skip_bad.md")]
    fn on_bad_record(self, policy: BadRecords) -> IterSkipBad<Self>
    where
        Self: Sized,
    {
        Flowing::new(self, |_| SkipBadFlow { policy })
    }

    /// The whole stream `epochs` times, or for ever if that is `None`; every epoch is the same, element by element.
    ///
    /// For epochs of different order repeat before the shuffle, on the [`MapDataset`](crate::MapDataset).
    /// ```
    /// use gristmill::{IterDataset, MapDataset, dataset::map::Range};
    /// assert_eq!(Range::new(0, 2).to_iter().repeat(2).collect()?, [0, 1, 0, 1]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for 0 epochs; [`ErrorKind::Data`](crate::ErrorKind::Data) if an epoch yields no
    /// element while there are more to come, which would be waited for without end.
    fn repeat(self, epochs: impl Into<Option<u64>>) -> IterRepeat<Self>
    where
        Self: Sized,
    {
        Flowing::new(self, |_| RepeatFlow { epochs: epochs.into() })
    }

    /// Keeps every element in memory; when the stream is started again, by [`repeat`](Self::repeat), they come from there.
    ///
    /// # Cost
    /// Memory for the whole stream, and a clone per element, which for an [`Element`] shares the bytes. A resume reads
    /// the stream again up to where it was.
    fn cache(self) -> IterCache<Self>
    where
        Self: Sized,
        Self::Item: Clone,
    {
        Flowing::new(self, |_| CacheFlow)
    }

    /// Sets the seed from which random stages after it derive theirs; see [`default_seed`](crate::dataset::default_seed).
    fn seed(self, seed: u32) -> Seed<Self>
    where
        Self: Sized,
    {
        Ordered::new(self, |_| SeedOrder(seed))
    }

    /// Hides the type: what declared pipelines and Python hold.
    fn boxed(self) -> BoxIter<Self::Item>
    where
        Self: Sized + 'static,
    {
        BoxIter::new(self)
    }

    /// Puts a stage of your own into a chain: `ds.pipe(|d| MyStage::new(d))`.
    fn pipe<T>(self, f: impl FnOnce(Self) -> T) -> T
    where
        Self: Sized,
    {
        f(self)
    }

    /// Reads everything into memory, on this thread.
    ///
    /// # Errors
    /// The first error.
    fn collect(&self) -> Result<Vec<Self::Item>>
    where
        Self: Sized,
    {
        self.check_all()?;
        let run = Runtime::inline();
        let (mut iter, mut cx) = (self.iter(&run)?, run.cx());
        let mut all = Vec::new();
        while let Some(element) = iter.next(&mut cx)? {
            all.push(element);
        }
        Ok(all)
    }

    /// [`Stage::check`] of every stage.
    ///
    /// # Errors
    /// The first stage that cannot work.
    fn check_all(&self) -> Result<()>
    where
        Self: Sized,
    {
        (self as &dyn Stage).check_all()
    }
}
