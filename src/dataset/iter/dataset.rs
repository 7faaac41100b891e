use super::{DatasetIterator, PartPassOf};
use crate::dataset::plan::{PlanOf, Planning};
use crate::dataset::stage::Stage;
use crate::element::Element;
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::Part;

/// A dataset that is read in order. [`iter`](Self::iter) starts a pass; the dataset itself never changes.
///
/// A stream is a recipe over root elements. The [`Runtime`] decides which threads or processes evaluate them.
/// The choice never changes the elements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream of elements",
    label = "not an `IterDataset`",
    note = "a dataset with random access becomes a stream by `.to_iter()`"
)]
#[expect(unused_variables, reason = "provided methods ignore their arguments")]
pub trait IterDataset: Stage + Send + Sync {
    /// Type of an element.
    type Item: Send + 'static;
    /// Type of a pass over the dataset.
    type Iter: DatasetIterator<Item = Self::Item> + 'static;

    /// Starts a pass at the beginning.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the stage cannot work as configured.
    fn iter(&self, run: &Runtime) -> Result<Self::Iter>;

    /// Starts a pass that evaluates only the elements for the rows of `part` in every batch.
    ///
    /// Returns `None` if the assignment of rows to parts depends on elements of other parts. The loader then evaluates
    /// whole batches and takes the part's rows from them.
    ///
    /// # Errors
    /// As [`iter`](Self::iter), and [`ErrorKind::Config`](crate::ErrorKind::Config) if the rows of a batch do not
    /// divide into equal shares.
    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>>
    where
        Self: Sized,
    {
        Ok(None)
    }

    /// Plans the stream from keys: see [`plan`](crate::dataset::plan). Returns `None` if there are no keys, or if a
    /// stage's decisions require more than keys.
    ///
    /// A custom stage that only drops or reorders elements, or passes them on unchanged, can run its own pass over its
    /// parent's plan:
    /// `match planning.of(&self.parent)? { Some(plan) => plan.through(|pass| Ok(MyIter { parent: pass, … })),
    /// None => Ok(None) }`.
    /// Without a plan, a host that takes a part of the rows evaluates all elements.
    ///
    /// # Errors
    /// As [`iter`](Self::iter), and errors of opening keys.
    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>>
    where
        Self: Sized,
    {
        Ok(None)
    }
}

/// A stream of [`Element`]s. Traits for such streams bound their implementations by this trait, because the compiler
/// shows its message for a method that they lack.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream of `Element`s",
    label = "not an `IterDataset<Item = Element>`",
    note = "a dataset with random access becomes a stream by `.to_iter()`"
)]
pub trait Elements: IterDataset<Item = Element> {}

impl<D: IterDataset<Item = Element>> Elements for D {}

/// Implements [`IterDataset`] for a stage that leaves its stream `$inner` unchanged.
macro_rules! same_stream {
    ($name:ident, $inner:tt) => {
        impl<D: IterDataset> IterDataset for $name<D> {
            type Item = D::Item;
            type Iter = D::Iter;

            fn iter(&self, run: &$crate::Runtime) -> $crate::Result<D::Iter> {
                self.$inner.iter(run)
            }

            fn iter_part(
                &self,
                run: &$crate::Runtime,
                part: &$crate::part::Part,
            ) -> $crate::Result<Option<$crate::dataset::iter::PartPassOf<D>>> {
                self.$inner.iter_part(run, part)
            }

            fn plan(
                &self,
                planning: &$crate::dataset::plan::Planning<'_>,
            ) -> $crate::Result<Option<$crate::dataset::plan::PlanOf<D>>> {
                planning.of(&self.$inner)
            }
        }
    };
}
pub(in crate::dataset) use same_stream;
