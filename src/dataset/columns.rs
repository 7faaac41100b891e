//! The elementwise functions that a file can name, each with its name and arguments: closures alone would leave the fingerprint blind.

mod concatenate;
mod condition;
mod names;

use std::sync::Arc;

pub(crate) use names::NameBefore;

use crate::dataset::entry::StageEntry;
use crate::dataset::iter::{FilterThresholds, Flowing, InOrder, IterMapped, Watch};
use crate::dataset::map::{Each, Many, Mapped};
use crate::dataset::{Facts, Role, Stage};
use crate::element::Element;
use crate::error::{Error, Result};

/// The entries of the stages of columns, in the order of the documentation.
pub(crate) const STAGES: &[StageEntry] =
    &[condition::ENTRY, names::SELECT, names::DROP, names::RENAME, concatenate::ENTRY];

/// Function that is called for each element; `None` drops it.
type Function<T, U> = dyn Fn(T) -> Result<Option<U>> + Send + Sync;
/// The function applied to many elements.
type Together<T, U> = dyn Fn(Many<T>) -> Many<U> + Send + Sync;

/// A function, its name and its arguments.
pub(crate) struct NamedFn<T, U = Element> {
    name: &'static str,
    params: String,
    role: Role,
    function: Arc<Function<T, U>>,
    together: Option<Arc<Together<T, U>>>,
    native: bool,
}

impl<T, U> Clone for NamedFn<T, U> {
    fn clone(&self) -> Self {
        Self { params: self.params.clone(), function: self.function.clone(), together: self.together.clone(), ..*self }
    }
}

impl<T: 'static, U: 'static> NamedFn<T, U> {
    /// One element in, one out.
    pub(crate) fn map(name: &'static str, params: String, f: impl Fn(T) -> Result<U> + Send + Sync + 'static) -> Self {
        Self {
            name,
            params,
            role: Role::Elementwise,
            function: Arc::new(move |e| f(e).map(Some)),
            together: None,
            native: true,
        }
    }

    /// Makes a stage of random access after `parent`.
    pub(crate) fn after<D: Stage>(self, parent: D) -> Mapped<D, Self> {
        Mapped::new(parent, |_| self)
    }

    /// Makes a stage of the stream `parent`.
    pub(crate) fn in_order<D: Stage>(self, parent: D) -> IterMapped<D, Self, ()> {
        Flowing::new(parent, |_| InOrder::new(self, ()))
    }
}

#[cfg(feature = "python")]
impl<T: 'static, U: 'static> NamedFn<T, U> {
    /// Makes a function of the user.
    pub(crate) fn foreign(self) -> Self {
        Self { native: false, ..self }
    }

    /// Makes a function with a faster form for many elements.
    pub(crate) fn together(self, together: impl Fn(Many<T>) -> Many<U> + Send + Sync + 'static) -> Self {
        Self { together: Some(Arc::new(together)), ..self }
    }
}

impl<T: 'static> NamedFn<T, T> {
    /// Keeps or drops.
    pub(crate) fn filter(
        name: &'static str,
        params: String,
        keep: impl Fn(&T) -> Result<bool> + Send + Sync + 'static,
    ) -> Self {
        let function = move |e: T| Ok(keep(&e)?.then_some(e));
        Self { name, params, role: Role::MayDrop, function: Arc::new(function), together: None, native: true }
    }

    /// Makes a filter of the stream `parent`, which warns and fails if it drops too much, as filters before the border do.
    pub(crate) fn watched<D: Stage>(self, parent: D, thresholds: FilterThresholds) -> IterMapped<D, Self, Watch> {
        Flowing::new(parent, |_| InOrder::new(self, Watch::new(thresholds)))
    }
}

impl<T, U> Facts for NamedFn<T, U> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn params(&self) -> String {
        self.params.clone()
    }
    fn role(&self) -> Role {
        self.role
    }
    fn is_native(&self) -> bool {
        self.native
    }
}

impl<T, U> Each<T> for NamedFn<T, U> {
    type Out = U;

    fn apply(&self, _: u64, element: T) -> Result<Option<U>> {
        (self.function)(element)
    }

    fn apply_many(&self, _: &[u64], many: Many<T>, blame: impl Fn(Error) -> Error + Copy) -> Many<U> {
        match &self.together {
            // An error that came in names the stage that it came from, and goes on doing so.
            Some(together) => together(many).map_errors(|_, error| blame(error)),
            None => many.filter_map(|_, element| (self.function)(element).map_err(blame)),
        }
    }

    fn again(&self) -> Option<Self> {
        Some(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::{ErrorKind, IterDataset, IterDatasetExt, MapDatasetExt};

    fn odd(share: Option<f64>) -> IterMapped<impl IterDataset<Item = i64>, NamedFn<i64, i64>, Watch> {
        let thresholds = FilterThresholds { warn: None, raise: share };
        NamedFn::filter("filter", "odd".into(), |x| Ok(x % 2 == 1)).watched(Range::new(0, 2500).to_iter(), thresholds)
    }

    #[test]
    fn it_keeps_what_a_filter_keeps() {
        assert_eq!(laws::check(&odd(Some(0.9))), (1..2500).step_by(2).collect::<Vec<_>>());
        assert_eq!((&odd(Some(0.5)) as &dyn Stage).lines()[2], "filter(odd, raise=0.5)");
    }

    #[test]
    fn it_fails_at_its_threshold() {
        let error = odd(Some(0.5)).collect().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.message().starts_with("50.0 % of the last 1000"), "{error}");
        assert!(odd(Some(1.5)).node().describe.check().is_err());
    }
}
