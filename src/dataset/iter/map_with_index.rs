use serde::{Deserialize, Serialize};

use super::IterDataset;
use super::each::{Counter, InOrder, IterMapped};
use crate::dataset::entry::prelude::*;
use crate::dataset::facts::Facts;
use crate::dataset::map::Each;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Stage;
use crate::element::{Array, Name};
use crate::error::Error;
use crate::error::Result;

/// See [`IterDatasetExt::map_with_index`](super::IterDatasetExt::map_with_index).
pub type IterMapWithIndex<D, F> = IterMapped<D, NumberedFn<F>, Counter>;

/// See [`IterDatasetExt::try_map_with_index`](super::IterDatasetExt::try_map_with_index).
pub type IterTryMapWithIndex<D, F> = IterMapped<D, TryNumberedFn<F>, Counter>;

/// See [`IterDatasetExt::enumerate`](super::IterDatasetExt::enumerate).
pub type IterEnumerate<D> = IterMapWithIndex<D, fn(u64, <D as IterDataset>::Item) -> Numbered<D>>;

/// An element of `D`, preceded by its number.
pub type Numbered<D> = (u64, <D as IterDataset>::Item);

/// The function of [`IterMapWithIndex`].
#[doc(hidden)]
pub struct NumberedFn<F> {
    f: F,
    name: &'static str,
    params: String,
}

/// The function of [`IterTryMapWithIndex`].
#[doc(hidden)]
pub struct TryNumberedFn<F> {
    f: F,
    name: &'static str,
    params: String,
}

/// Name of the stage that numbers elements.
pub(crate) const ENUMERATE: &str = "enumerate";

impl<D: IterDataset> IterEnumerate<D> {
    pub(super) fn enumerate(parent: D) -> Self {
        Self::named(parent, ENUMERATE, String::new(), |index, element| (index, element))
    }
}

/// Implements the common parts of infallible and fallible functions: `$name` is the function of the stage `$stage`.
macro_rules! numbered_stage {
    ($stage:ident, $name:ident) => {
        impl<D: Stage, F: Send + Sync> $stage<D, F> {
            /// Makes the stage with this name. `params` must describe `f` completely.
            pub(crate) fn named(parent: D, name: &'static str, params: String, f: F) -> Self {
                Self::new(parent, |_| InOrder::new($name { f, name, params }, Counter::default()))
            }
        }

        impl<F: Send + Sync> Facts for $name<F> {
            fn name(&self) -> &'static str {
                self.name
            }
            fn params(&self) -> String {
                self.params.clone()
            }
            fn sees_index(&self) -> bool {
                true
            }
        }
        debug_name!($name<F>);
    };
}
numbered_stage!(IterMapWithIndex, NumberedFn);
numbered_stage!(IterTryMapWithIndex, TryNumberedFn);

impl<T, U, F: Fn(u64, T) -> U + Send + Sync> Each<T> for NumberedFn<F> {
    const IS_ONE: bool = true;
    type Out = U;

    fn apply(&self, index: u64, element: T) -> Result<Option<U>> {
        Ok(Some((self.f)(index, element)))
    }
}

impl<T, U, F: Fn(u64, T) -> Result<U> + Send + Sync> Each<T> for TryNumberedFn<F> {
    const IS_ONE: bool = true;
    type Out = U;

    fn apply(&self, index: u64, element: T) -> Result<Option<U>> {
        (self.f)(index, element).map(Some)
    }
}

/// Position of a pass that counts elements.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterState<S> {
    /// The parent's position.
    pub parent: S,
    /// Number of elements seen.
    pub counter: u64,
}

arguments! {
    struct EnumerateArgs(column) {
        /// Name of the column for the number.
        column: String,
        /// Number of the first element.
        start: i64 = 0,
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::iter(
    ENUMERATE,
    "Adds the number of each element in the stream as a column.",
    &Behind(|ds: BoxIter<Element>, EnumerateArgs { column, start }: EnumerateArgs, _| {
        let params = format!("start={start}, column={column}");
        let column = Name::new(column);
        let number = move |index: u64, element: Element| {
            if element.get(&column).is_some() {
                return Err(
                    Error::data(format!("there is a column `{column}` already")).help("give the number another name")
                );
            }
            Ok(element.with(column.clone(), Array::scalar(start.wrapping_add_unsigned(index))))
        };
        Ok(IterTryMapWithIndex::named(ds, ENUMERATE, params, number).boxed())
    }),
)
.new_columns();

#[cfg(test)]
mod tests {
    use crate::cx::Cx;
    use crate::dataset::iter::{DatasetIterator, IterDataset, IterDatasetExt, laws};
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
    use crate::{Error, MapDatasetExt};

    #[test]
    fn counts_what_arrives_and_resumes() {
        let ds = Range::new(0, 30).to_iter().filter(|x| x % 3 == 1).map_with_index(|i, x| (i, x));
        assert_eq!(laws::check(&ds), (0..10).map(|i| (i, 3 * i as i64 + 1)).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_go_on_behind_a_resume() {
        let ds = Range::new(0, 20).to_iter().filter(|x| x % 4 == 0).enumerate();
        assert_eq!(laws::check(&ds), [(0, 0), (1, 4), (2, 8), (3, 12), (4, 16)]);
        assert_eq!(crate::dataset::label(&ds), "enumerate");
    }

    #[test]
    fn an_error_uses_its_index_up() {
        let ds = Range::new(0, 3)
            .to_iter()
            .try_map_with_index(|i, x| if i == 1 { Err(Error::data("no")) } else { Ok((i, x)) });
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        assert_eq!(iter.next(&mut cx).unwrap(), Some((0, 0)));
        assert_eq!(iter.next(&mut cx).unwrap_err().to_string(), "stage 2 map_with_index: element 1: no");
        assert_eq!(iter.next(&mut cx).unwrap(), Some((2, 2)));
    }
}
