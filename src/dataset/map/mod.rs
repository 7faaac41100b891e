//! Random-access datasets: one adaptor a file, all methods on [`MapDataset`].

mod filter;
#[expect(clippy::module_inception, reason = "one adaptor a file, named after its method")]
mod map;
mod range;
mod seed;
mod source;

use std::sync::Arc;

pub use self::filter::Filter;
pub use self::map::{Map, TryMap};
pub use self::range::Range;
pub use self::seed::Seed;
pub use self::source::{RandomAccess, Source};
use super::boxed::BoxMap;
use super::iter::Stream;
use super::stage::Stage;
use crate::cx::Cx;
use crate::error::Result;

/// Random access, without state: every [`get`](Self::get) stands alone, so any thread may call it, in any order.
///
/// # Determinism
/// `get(i)` is a pure function of the pipeline and `i`. Executors rely on it: they evaluate chunks of consecutive
/// indices wherever a thread is free, and a crashed or repeated chunk gives the same elements.
///
/// # Writing one outside the crate
/// Implement [`Stage`] (name, params, role, parents) and the two methods below; number the stage by
/// [`stage_after`](super::stage_after) and run its own work inside [`Cx::timed`], so that the report sees it.
/// `examples/custom_stage.rs` is a complete one. [`pipe`](Self::pipe) puts it into a chain.
pub trait MapDataset: Stage + Send + Sync {
    /// What it yields.
    type Item;

    /// Elements in one epoch, [`INFINITE`](super::INFINITE) if it never ends.
    fn len(&self) -> u64;

    /// The element at `index`, or `None` where a filter dropped it. Indices past [`len`](Self::len) belong to later epochs.
    ///
    /// # Errors
    /// Whatever a source, a user's function or a check of the data reports, with the stage that failed.
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Self::Item>>;

    /// Whether an epoch has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies `f` to every element.
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
        Map::new(self, f)
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
        TryMap::new(self, f)
    }

    /// Keeps the elements for which `predicate` holds. The length stays: a dropped element leaves an empty slot, which
    /// [`to_iter`](Self::to_iter) skips.
    fn filter<P>(self, predicate: P) -> Filter<Self, P>
    where
        Self: Sized,
        P: Fn(&Self::Item) -> bool + Send + Sync,
    {
        Filter::new(self, predicate)
    }

    /// Sets the seed from which random stages after it, unless given their own, derive theirs.
    ///
    /// Grain's rule: see [`default_seed`](super::default_seed).
    fn seed(self, seed: u32) -> Seed<Self>
    where
        Self: Sized,
    {
        Seed::new(self, seed)
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
    /// The first error.
    fn collect(&self) -> Result<Vec<Self::Item>>
    where
        Self: Sized,
    {
        let mut cx = Cx::default();
        (0..self.len()).filter_map(|i| self.get(i, &mut cx).transpose()).collect()
    }
}

/// Boxes and shared pointers to datasets are datasets.
macro_rules! forward_map_dataset {
    ($pointer:ty) => {
        impl<D: Stage + ?Sized> Stage for $pointer {
            fn name(&self) -> &'static str {
                (**self).name()
            }
            fn params(&self) -> String {
                (**self).params()
            }
            fn role(&self) -> super::Role {
                (**self).role()
            }
            fn parents(&self) -> Vec<&dyn Stage> {
                (**self).parents()
            }
            fn seed_root(&self) -> Option<u32> {
                (**self).seed_root()
            }
            fn is_border(&self) -> bool {
                (**self).is_border()
            }
            fn memory_bytes(&self) -> Option<u64> {
                (**self).memory_bytes()
            }
            fn check(&self) -> Result<()> {
                (**self).check()
            }
        }

        impl<D: MapDataset + ?Sized> MapDataset for $pointer {
            type Item = D::Item;
            fn len(&self) -> u64 {
                (**self).len()
            }
            fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
                (**self).get(index, cx)
            }
        }
    };
}
forward_map_dataset!(Arc<D>);
forward_map_dataset!(Box<D>);
