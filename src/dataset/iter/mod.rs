//! Streams: ordered, stateful, checkpointable. One adaptor a file, all methods on [`IterDataset`].

mod chunks;
#[expect(clippy::module_inception, reason = "the trait's own file is this one; adaptors are named after their method")]
mod map;
mod stream;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::map::{IterMap, IterMapIter};
pub use self::stream::{Stream, StreamIter, StreamState};
use super::boxed::BoxIter;
use super::map::Seed;
use super::stage::Stage;
use crate::cx::Cx;
use crate::error::Result;
use crate::exec::Runtime;
use crate::loader::LoaderBuilder;

/// Read in order. [`iter`](Self::iter) starts a pass; the dataset itself never changes.
///
/// It is a recipe over a stream of root elements: who evaluates them is decided last, by the [`Runtime`], and
/// never changes the elements.
pub trait IterDataset: Stage + Send + Sync {
    /// What it yields.
    type Item: Send + 'static;
    /// A pass over it.
    type Iter: DatasetIterator<Item = Self::Item> + 'static;

    /// Starts a pass at the beginning.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the stage cannot work as configured.
    fn iter(&self, run: &Runtime) -> Result<Self::Iter>;

    /// Applies `f` to every element.
    ///
    /// On a [`Stream`] (right after [`to_iter`](crate::MapDataset::to_iter)) the method of that type is used instead,
    /// which runs in parallel; behind a stateful stage it runs on the one thread of those.
    fn map<U, F>(self, f: F) -> IterMap<Self, F>
    where
        Self: Sized,
        U: Send + 'static,
        F: Fn(Self::Item) -> Result<U> + Send + Sync + 'static,
    {
        IterMap::new(self, f)
    }

    /// Sets the seed from which random stages after it derive theirs; see [`default_seed`](super::default_seed).
    fn seed(self, seed: u32) -> Seed<Self>
    where
        Self: Sized,
    {
        Seed::new(self, seed)
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

    /// Chooses who evaluates the pipeline, and starts it: see [`LoaderBuilder`].
    fn loader(self) -> LoaderBuilder<Self>
    where
        Self: Sized + 'static,
    {
        LoaderBuilder::new(self)
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

/// One pass over an [`IterDataset`].
///
/// # Laws
/// `restore(state())` on a fresh pass continues with the element that [`next`](Self::next) would have given, whatever the
/// executor; and `state()` after `restore(s)` equals `s`. A state holds positions, never elements: what a stage had in
/// memory is read again.
pub trait DatasetIterator: Send {
    /// What it yields.
    type Item;
    /// Where it is. Small, and cheap to clone: the executor takes one for every element it hands over.
    type State: Clone + Send + Sync + Serialize + DeserializeOwned + 'static;

    /// The next element, or `None` at the end, again and again.
    ///
    /// # Errors
    /// An error consumes the element that failed: calling again goes on behind it. [`Loader`](crate::Loader) never does.
    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>>;

    /// The position after what has been yielded so far.
    fn state(&self) -> Self::State;

    /// Goes to a position. Stages that had elements in memory read them again, through `cx`.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) for a position that this pipeline cannot have been in, and whatever reading reports.
    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()>;
}

impl<D: IterDataset> IterDataset for Seed<D> {
    type Item = D::Item;
    type Iter = D::Iter;

    fn iter(&self, run: &Runtime) -> Result<D::Iter> {
        self.parent.iter(run)
    }
}
