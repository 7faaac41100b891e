use super::Many;
use crate::cx::{Cx, StageId};
use crate::dataset::iter::InPlace;
use crate::dataset::stage::Stage;
use crate::element::{Name, Ragged, Stack};
use crate::error::Result;
use crate::exec::Runtime;

/// Result of [`BulkRead::get_stacked`]: a batch, or `None`.
pub type GetStacked<T> = Option<InPlace<<T as Stack>::Batch>>;

/// A random-access dataset without state. Any thread may call [`get`](Self::get), in any order.
///
/// # Determinism
/// `get(i)` is a pure function of the pipeline and `i`. Executors rely on this: they evaluate chunks of consecutive
/// indices on any free thread. A chunk that is evaluated again, for example after a crash, yields equal elements.
///
/// # Custom stages
/// Implement [`Stage`], `len` and `get`, as in `examples/custom_stage.rs`. The stage id is
/// [`stage_after`](crate::dataset::stage_after) of the parents. [`Cx::timed`] counts the stage's own work. Implement
/// [`get_many`](Self::get_many), too, if elements are cheap. [`pipe`](super::MapDatasetExt::pipe) adds the stage to a
/// chain.
#[expect(clippy::len_without_is_empty, reason = "it is a method of `MapDatasetExt`")]
pub trait MapDataset: Stage + Send + Sync {
    /// Type of the elements.
    type Item;

    /// Returns the number of elements in one epoch; [`INFINITE`](crate::dataset::INFINITE) if the dataset never ends.
    fn len(&self) -> u64;

    /// Returns the element at `index`, or `None` if a filter dropped it. Indices past `len` belong to later epochs.
    ///
    /// # Errors
    /// Errors of a source, a user's function or a check of the data, with the stage that failed.
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Self::Item>>;

    /// Returns the results of [`get`](Self::get) for `indices`, in order. Each index has a place, even if `get` fails.
    ///
    /// Executors call this method for chunks of cheap elements. The default calls `get` for each index. A faster
    /// version calls `get_many` of its parent, and processes the elements in one loop inside [`Cx::timed_many`], which
    /// reads the clock once per chunk. An error affects only its own place.
    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Self::Item> {
        Many::one_by_one(indices, |index| self.get(index, cx))
    }

    /// Returns the faster reads of the dataset, if there are any.
    fn bulk(&self) -> Option<&dyn BulkRead<Self::Item>> {
        None
    }

    /// Returns a copy of the dataset for one pass of `border`, if the executor of `run` evaluates only a part of the
    /// dataset. By default, returns `None`: the stage is evaluated together with its parents.
    #[doc(hidden)]
    fn for_pass(&self, _run: &Runtime, _border: StageId) -> Option<Result<Self>>
    where
        Self: Sized,
    {
        None
    }
}

/// Reads of many elements at once that make no separate elements, or start at a source: see [`MapDataset::bulk`].
///
/// Each method returns `None` if it cannot serve a call. The caller then makes the elements.
#[expect(unused_variables, reason = "provided methods ignore their arguments")]
pub trait BulkRead<T> {
    /// Returns the batch that [`Stack::stack`] makes of the elements at `indices` (at least one), without making the
    /// elements. Sources copy the batch from their columns. Stages that change only the order forward the call.
    ///
    /// Returns `None` without columns, or if an element is missing, bad or unlike the first. The caller then makes the
    /// elements to find the cause. Called only if the source [has columns](crate::dataset::Node::has_columns).
    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<T>
    where
        T: Stack,
    {
        None
    }

    /// Returns rows that represent the elements at `indices`, without making elements: the arrays called `names`.
    /// `None` if an index has no element, a value is not an array, arrays differ in dtype or inner shape, or an element
    /// could fail. For sources of columns and stages that change only the order.
    fn get_ragged(&self, indices: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        None
    }

    /// Returns the elements made of `records` of the source at this address. Skips stages that change only the order.
    /// `None` if the source is elsewhere, or if another stage does not treat each element separately.
    #[doc(hidden)]
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<T>> {
        None
    }

    /// Returns rows that represent `records` of the source at this address, as [`get_ragged`](Self::get_ragged) and
    /// [`get_records`](Self::get_records) do.
    #[doc(hidden)]
    fn get_ragged_records(&self, source: usize, records: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        None
    }
}
