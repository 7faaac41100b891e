//! Another item type for the same stage: nothing that a seed, a report or a checkpoint could see.

use std::sync::Arc;

use pyo3::prelude::*;

use super::interpreter::released;
use super::item::Item;
use super::native::Native;
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::iter::{Dealt, PartPassOf};
use crate::dataset::map::{BulkRead, Many};
use crate::dataset::plan::{Make, Member, PlanOf, Planning, Segments, Span, Turn};
use crate::dataset::{
    BoxIter, BoxMap, DatasetIterator, IterDataset, IterDatasetExt, MapDataset, MapDatasetExt, Stage, same_stage,
};
use crate::element::{Element, Tree, Value};
use crate::error::Result;
use crate::exec::{Failed, Runtime};
use crate::part::Part;
use crate::spec::chain::Chain;

/// Lets keys measure Python's items.
pub(crate) fn plan_items() {
    crate::dataset::plan::read_also(|item| Some(item.downcast_ref::<Item>()?.clone().into_element()));
}

/// A dataset or a pass whose items are turned into others, under the name of the stage that made them.
pub(crate) struct Converted<D, F> {
    inner: D,
    convert: F,
    /// Whether the inner dataset is native, so that the interpreter is released.
    releases: bool,
    /// The Python object of the pipeline, if no other reference keeps it. It shows its references to the garbage
    /// collector.
    object: Option<Arc<Py<PyAny>>>,
}

impl<D, F> Converted<D, F> {
    /// Has `read` look at the dataset inside.
    fn read<R: Send>(&self, read: impl FnOnce(&D) -> R + Send) -> R
    where
        D: Sync,
    {
        let inner = &self.inner;
        if self.releases { released(|| read(inner)) } else { read(inner) }
    }
}

impl<D: Stage, F> Stage for Converted<D, F> {
    same_stage!(.inner);
}

impl<D: MapDataset<Item: Send>, U, F: Fn(D::Item) -> Result<U> + Clone + Send + Sync> MapDataset for Converted<D, F> {
    type Item = U;

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<U>> {
        self.read(|inner| inner.get(index, cx))?.map(&self.convert).transpose()
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<U> {
        let many = self.read(|inner| inner.get_many(indices, cx));
        many.filter_map(|_, item| (self.convert)(item).map(Some))
    }

    reads_in_bulk!();

    fn for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<Self>> {
        let inner = self.inner.for_pass(run, border)?;
        let (convert, object) = (self.convert.clone(), self.object.clone());
        Some(inner.map(|inner| Self { inner, convert, releases: self.releases, object }))
    }
}

impl<D: MapDataset<Item: Send>, U, F: Fn(D::Item) -> Result<U> + Clone + Send + Sync> BulkRead<U> for Converted<D, F> {
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<U>> {
        let many = self.read(|inner| inner.bulk()?.get_records(source, records, cx))?;
        Some(many.filter_map(|_, item| (self.convert)(item).map(Some)))
    }
}

impl<D, U, F> IterDataset for Converted<D, F>
where
    D: IterDataset,
    U: Send + 'static,
    F: Fn(D::Item) -> Result<U> + Copy + Send + Sync + 'static,
{
    type Item = U;
    type Iter = Converted<D::Iter, F>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let inner = self.inner.iter(run)?;
        Ok(Converted { inner, convert: self.convert, releases: self.releases, object: self.object.clone() })
    }

    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>> {
        let (convert, releases, object) = (self.convert, self.releases, self.object.clone());
        let of_part = move |batch: Dealt<D::Item>| batch.try_map(convert);
        let pass = self.inner.iter_part(run, part)?;
        Ok(pass.map(|inner| Box::new(Converted { inner, convert: of_part, releases, object }) as _))
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        let Some(plan) = self.inner.plan(planning)? else { return Ok(None) };
        let (convert, releases) = (self.convert, self.releases);
        Ok(Some(plan.making(|make| MakeConverted { make, convert, releases }, convert, &Releasing(releases))))
    }
}

/// Has the items of records turned into others, and lets go of the interpreter for them or not.
struct Releasing(bool);

impl Turn for Releasing {
    fn turn<I: Send + 'static, O: 'static>(
        &self,
        inner: BoxMap<I>,
        convert: impl Fn(I) -> Result<O> + Clone + Send + Sync + 'static,
    ) -> BoxMap<O> {
        BoxMap::new(Converted { inner, convert, releases: self.0, object: None })
    }
}

/// Makes what items that were planned are turned into.
struct MakeConverted<T, F> {
    make: Box<dyn Make<T>>,
    convert: F,
    releases: bool,
}

impl<T: Send, U, F: Fn(T) -> Result<U> + Send> Make<U> for MakeConverted<T, F> {
    fn expect(&mut self, recipe: &[Member]) {
        self.make.expect(recipe);
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<U>> {
        let make = &mut self.make;
        let item =
            if self.releases { released(|| make.make(recipe, failed, cx)) } else { make.make(recipe, failed, cx) };
        item?.map(&self.convert).transpose()
    }

    fn sample(&mut self, recipe: &[Member]) -> Result<Option<U>> {
        let make = &mut self.make;
        let item = if self.releases { released(|| make.sample(recipe)) } else { make.sample(recipe) };
        item?.map(&self.convert).transpose()
    }

    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        self.make.lens(id, lens)
    }

    fn find_segments(&self, is_it: &mut dyn FnMut(&str) -> bool) -> Option<Segments> {
        self.make.find_segments(is_it)
    }

    fn segments(&self, recipe: &[Member], of: &Segments) -> Result<Vec<u64>> {
        self.make.segments(recipe, of)
    }

    fn spans(&self, recipe: &[Member]) -> Result<Option<Vec<Span>>> {
        self.make.spans(recipe)
    }

    fn forget(&mut self) -> Result<()> {
        self.make.forget()
    }
}

impl<I: DatasetIterator<Item: Send>, U, F: Fn(I::Item) -> Result<U> + Send> DatasetIterator for Converted<I, F> {
    type Item = U;
    type State = I::State;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<U>> {
        let item = if self.releases { released(|| self.inner.next(cx)) } else { self.inner.next(cx) };
        item?.map(&self.convert).transpose()
    }

    fn state(&self) -> I::State {
        self.inner.state()
    }

    fn restore(&mut self, state: I::State, cx: &mut Cx) -> Result<()> {
        self.inner.restore(state, cx)
    }
}

debug_as!(<D, F> Converted<D, F>, |self, f| f.write_str("Converted"));

/// `ds` with its items turned into others.
pub(crate) fn map<D, U>(ds: D, convert: impl Fn(D::Item) -> Result<U> + Clone + Send + Sync + 'static) -> BoxMap<U>
where
    D: MapDataset<Item: Send> + 'static,
    U: 'static,
{
    Converted { inner: ds, convert, releases: false, object: None }.boxed()
}

/// `ds` as it is, and the Python object that it belongs to for as long as it or a pass over it lives.
pub(crate) fn keeping(ds: BoxIter<Item>, object: Py<PyAny>) -> BoxIter<Item> {
    Converted { inner: ds, convert: Ok, releases: false, object: Some(Arc::new(object)) }.boxed()
}

/// Converts the elements of a chain.
pub(crate) fn chain<T: Send + 'static, U: Send + 'static>(
    chain: Chain<T>,
    convert: impl Fn(T) -> Result<U> + Copy + Send + Sync + 'static,
) -> Chain<U> {
    convert_chain(chain, convert, false)
}

/// Converts elements with one field of bytes, of a chain, to Python's `bytes`.
pub(crate) fn native_bytes_chain(chain: Chain) -> Chain<Item> {
    convert_chain(chain, to_bytes, true)
}

/// Converts the elements of a native chain to items.
pub(crate) fn native_chain(chain: Chain) -> Chain<Item> {
    match chain {
        Chain::Map(ds) => Chain::Map(Native(ds).boxed()),
        Chain::Stream(ds, border) => Chain::Stream(Native(ds).boxed(), border),
        chain => convert_chain(chain, |element| Ok(Item::Element(element)), true),
    }
}

fn convert_chain<T: Send + 'static, U: Send + 'static>(
    chain: Chain<T>,
    convert: impl Fn(T) -> Result<U> + Copy + Send + Sync + 'static,
    releases: bool,
) -> Chain<U> {
    let map = |ds: BoxMap<T>| Converted { inner: ds, convert, releases, object: None }.boxed();
    let iter = |ds: BoxIter<T>| Converted { inner: ds, convert, releases, object: None }.boxed();
    match chain {
        Chain::Map(ds) => Chain::Map(map(ds)),
        Chain::Stream(ds, border) => Chain::Stream(map(ds), border),
        Chain::Lanes(parts, count) => Chain::Lanes(parts.into_iter().map(iter).collect(), count),
        Chain::Iter(ds) => Chain::Iter(iter(ds)),
    }
}

fn to_bytes(element: Element) -> Result<Item> {
    Ok(match element.into_fields().next() {
        Some((_, Value::Bytes(bytes))) => Item::Tree(Box::new(Tree::Bytes(bytes))),
        other => Item::Element(other.into_iter().fold(Element::new(), |e, (name, value)| e.with(name, value))),
    })
}
