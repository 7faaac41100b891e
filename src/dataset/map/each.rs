//! Stages that treat each element separately. [`Mapped`] makes a stage of an [`Each`].

use std::fmt;

use super::{BulkRead, Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::facts::Facts;
use crate::dataset::node::{Describe, Indices, Node};
use crate::dataset::stage::{Stage, stage_after};
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// A function of single elements of type `T`. [`Mapped`] makes a stage of it.
///
/// ```
/// use gristmill::dataset::{Facts, Role, map::{Each, Mapped, Range}};
/// use gristmill::{Result, prelude::*};
///
/// /// Halves even numbers and drops the others.
/// struct Halve;
///
/// impl Facts for Halve {
///     fn name(&self) -> &'static str {
///         "halve"
///     }
///     fn role(&self) -> Role {
///         Role::MayDrop
///     }
/// }
///
/// impl Each<i64> for Halve {
///     type Out = i64;
///     fn apply(&self, _: u64, x: i64) -> Result<Option<i64>> {
///         Ok((x % 2 == 0).then_some(x / 2))
///     }
/// }
///
/// let ds = Range::new(0, 5).pipe(|parent| Mapped::new(parent, |_| Halve));
/// assert_eq!(ds.collect()?, [0, 1, 2]);
/// # Ok::<(), gristmill::Error>(())
/// ```
pub trait Each<T>: Facts {
    /// Whether each element becomes exactly one element or an error. The report then counts the element before it is
    /// made.
    const IS_ONE: bool = false;

    /// Type of the results.
    type Out;

    /// Makes an element, or none, of the element at `index`.
    ///
    /// # Errors
    /// Errors of the function. The caller adds the stage.
    fn apply(&self, index: u64, element: T) -> Result<Option<Self::Out>>;

    /// Applies the function to the elements at `indices`, and adds the stage to its errors with `blame`. Override this
    /// method if many elements at once are faster.
    #[inline]
    fn apply_many(&self, indices: &[u64], many: Many<T>, blame: impl Fn(Error) -> Error + Copy) -> Many<Self::Out> {
        // Costs nothing if `apply` does not use the index.
        let index = |place: usize| indices.get(place).copied().unwrap_or_default();
        many.filter_map(|place, element| self.apply(index(place), element).map_err(blame))
    }

    /// Returns the element for an index without an element: see [`has_every_index`](Facts::has_every_index).
    #[inline]
    fn of_none(&self) -> Option<Self::Out> {
        None
    }

    /// Returns the number of elements that the report counts for `made`.
    #[inline]
    fn count(&self, made: &[Self::Out]) -> u64 {
        made.len() as u64
    }

    /// Returns a copy of the function, for a pass that evaluates only a part of the stages before it: see
    /// `MapDataset::for_pass`.
    #[doc(hidden)]
    fn again(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// Applies `each` to an element, as work of `stage`.
#[inline]
pub(in crate::dataset) fn apply<T, E: Each<T>>(
    each: &E,
    stage: StageId,
    index: u64,
    element: T,
    cx: &mut Cx,
) -> Result<Option<E::Out>> {
    let work = || each.apply(index, element);
    let made = if E::IS_ONE { cx.timed(stage, work) } else { cx.consumed(stage, work) };
    match made {
        Ok(Some(made)) => {
            if !E::IS_ONE {
                cx.produced(stage, each.count(std::slice::from_ref(&made)), 0);
            }
            Ok(Some(made))
        }
        Ok(None) => Ok(None),
        Err(error) => Err(cx.blame(stage, each.name(), error)),
    }
}

/// The dataset `D` with `E` applied to its elements: `map`, `filter` and all other stages that treat each element
/// separately.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Mapped<D, E> {
    parent: D,
    pub(super) each: E,
    stage: StageId,
}

impl<D: Stage, E: Facts> Mapped<D, E> {
    /// Applies the function returned by `each(&parent)` to the elements of `parent`.
    pub fn new(parent: D, each: impl FnOnce(&D) -> E) -> Self {
        Self { stage: stage_after(&[&parent]), each: each(&parent), parent }
    }

    /// Returns true if each element is made of the parent's element alone.
    fn is_by_element(&self) -> bool {
        !self.each.sees_index() && !self.each.has_every_index()
    }
}

impl<D, E> Mapped<D, E> {
    /// Returns the parent, the function and the id of the stage.
    pub(crate) fn parts(&self) -> (&D, &E, StageId) {
        (&self.parent, &self.each, self.stage)
    }
}

impl<D: Stage, E: Facts> Stage for Mapped<D, E> {
    fn node(&self) -> Node<'_> {
        let Self { each, .. } = self;
        Node {
            describe: self,
            is_native: each.is_native(),
            has_every_index: each.has_every_index(),
            indices: if self.is_by_element() { Indices::ByElement } else { Indices::Kept },
            memory: each.memory(),
            ..Node::new(each.name(), each.role())
        }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D, E: Facts> Describe for Mapped<D, E> {
    fn params(&self) -> String {
        self.each.params()
    }
    fn check(&self) -> Result<()> {
        self.each.check()
    }
}

impl<D: MapDataset, E: Each<D::Item>> MapDataset for Mapped<D, E> {
    type Item = E::Out;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<E::Out>> {
        if let Some(element) = self.parent.get(index, cx)? {
            return apply(&self.each, self.stage, index, element, cx);
        }
        let made = self.each.of_none();
        if made.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(made)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<E::Out> {
        let many = self.parent.get_many(indices, cx);
        let blame = cx.blamer(self.stage, self.each.name());
        let (count, work) = (many.items().len(), || self.each.apply_many(indices, many, blame));
        if E::IS_ONE {
            return cx.timed_many(self.stage, count, work);
        }
        let made = cx.consumed_many(self.stage, count, work);
        cx.produced(self.stage, self.each.count(made.items()), 0);
        made
    }

    reads_in_bulk!();

    fn for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<Self>> {
        let each = self.each.again()?;
        Some(self.parent.for_pass(run, border)?.map(|parent| Self { parent, each, stage: self.stage }))
    }
}

impl<D: MapDataset, E: Each<D::Item>> BulkRead<E::Out> for Mapped<D, E> {
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<E::Out>> {
        if !self.is_by_element() {
            return None;
        }
        let many = self.parent.bulk()?.get_records(source, records, cx)?;
        Some(self.each.apply_many(records, many, cx.blamer(self.stage, self.each.name())))
    }
}

debug_as!(<D: fmt::Debug, E: Facts> Mapped<D, E>, |self, f| {
    f.debug_struct(self.each.name()).field("parent", &self.parent).finish_non_exhaustive()
});
