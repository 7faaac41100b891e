//! Contents of the datasets of the package: a `MapDataset` holds a chain of random access, an `IterDataset` a stream.

use std::path::PathBuf;

use pyo3::prelude::*;

use super::callable::Callable;
use super::convert;
use super::error::OrRaise;
use super::interpreter::attached;
use super::item::Item;
use super::random::RandomFunction;
use crate::cx::Cx;
use crate::dataset::iter::{
    BadRecords, Cut, CutStream, ENUMERATE, FanOut, FanStream, FilterThresholds, IterTryMapWithIndex, ZipLength, zip_all,
};
use crate::dataset::map::ElementIndex;
use crate::dataset::{BoxIter, BoxMap, IterDatasetExt, MapDataset, MapDatasetExt, Remainder, Stage};
use crate::element::{Element, Stack};
use crate::error::{Error, Result};
use crate::rng::ElementRng;
use crate::spec::by_name;
use crate::spec::chain::{Border, Chain, Context};
use crate::spec::columns::NamedFn;
use crate::spec::node::Tree;

/// The stages so far: of elements if all are native, else of items.
#[derive(Clone, Debug)]
pub(crate) enum Pipeline {
    Elements(Chain, Context),
    Items(Chain<Item>),
}

/// Applies a function of chains of any type to either kind of pipeline.
macro_rules! both {
    ($pipeline:expr, $chain:ident => $new:expr) => {
        match $pipeline {
            $crate::python::pipeline::Pipeline::Elements(chain, context) => {
                let $chain = chain.clone();
                $crate::python::pipeline::Pipeline::Elements($new, context.clone())
            }
            $crate::python::pipeline::Pipeline::Items(chain) => {
                let $chain = chain.clone();
                $crate::python::pipeline::Pipeline::Items($new)
            }
        }
    };
}
pub(crate) use both;

/// Appends a stage of random access for any type of elements.
macro_rules! over {
    ($pipeline:expr, $ds:ident => $new:expr) => {
        $crate::python::pipeline::both!($pipeline, chain => chain.over(|$ds| $crate::dataset::BoxMap::new($new)))
    };
}
pub(crate) use over;

/// Appends a stateful stage for any type of elements.
macro_rules! behind {
    ($pipeline:expr, $ds:ident => $new:expr) => {
        $crate::python::pipeline::both!($pipeline, chain => {
            let $ds = chain.into_iter();
            $crate::spec::chain::Chain::Iter($crate::dataset::BoxIter::new($new))
        })
    };
}
pub(crate) use behind;

/// Applies `$new` to a list of datasets with random access, of elements if all are, else of items.
macro_rules! over_several {
    ($several:expr, $parts:ident => $new:expr) => {{
        use $crate::python::pipeline::{Pipeline, Several};
        use $crate::spec::chain::Chain;
        match Several::new($several) {
            Several::Elements($parts, context) => {
                Pipeline::Elements(Chain::Map($crate::dataset::BoxMap::new($new)), context)
            }
            Several::Items($parts) => Pipeline::Items(Chain::Map($crate::dataset::BoxMap::new($new))),
        }
    }};
}
pub(crate) use over_several;

/// Stages that call Python for each element.
const OF_PYTHON: [&str; 8] =
    ["source", "computed", "map", "map_with_index", "random_map", "filter", "flat_map", "scan"];

/// Appends an elementwise stage. It stays before the border, or inside the lanes, if no stateful stage precedes it.
fn each<T: Send + 'static, U: Send + 'static>(chain: Chain<T>, function: NamedFn<T, U>) -> Chain<U> {
    match chain {
        Chain::Map(ds) => Chain::Map(function.after(ds).boxed()),
        Chain::Stream(ds, border) => Chain::Stream(function.after(ds).boxed(), border),
        Chain::Lanes(parts, count) => {
            Chain::Lanes(parts.into_iter().map(|part| function.clone().in_order(part).boxed()).collect(), count)
        }
        Chain::Iter(ds) => Chain::Iter(function.in_order(ds).boxed()),
    }
}

/// Appends a filter. Filters before the border share their count of dropped elements.
fn sifted<T: Send + 'static>(chain: Chain<T>, filter: NamedFn<T, T>, thresholds: Option<FilterThresholds>) -> Chain<T> {
    let own = thresholds.unwrap_or_default();
    match chain {
        Chain::Stream(ds, border) => {
            let thresholds = thresholds.unwrap_or(border.thresholds);
            Chain::Stream(filter.after(ds).boxed(), Border { thresholds, ..border })
        }
        Chain::Lanes(parts, count) => {
            Chain::Lanes(parts.into_iter().map(|part| filter.clone().watched(part, own).boxed()).collect(), count)
        }
        Chain::Map(ds) => Chain::Map(filter.after(ds).boxed()),
        Chain::Iter(ds) => Chain::Iter(filter.watched(ds, own).boxed()),
    }
}

/// Appends a batch. Directly after the border, a batch is stacked by the threads that evaluate its elements.
fn stacked<T: Stack<Batch = T> + Send + 'static>(chain: Chain<T>, size: usize, remainder: Remainder) -> Chain<T> {
    match chain {
        Chain::Map(ds) => Chain::Map(ds.batch_with(size, remainder).boxed()),
        Chain::Stream(ds, border) => Chain::Iter(border.open(ds).batch_with(size, remainder).boxed()),
        chain => Chain::Iter(chain.into_iter().batch_with(size, remainder).boxed()),
    }
}

/// Ends the part that workers evaluate. Later elementwise stages stay before the border, or inside the lanes, so the
/// cut changes no element. In lanes it changes nothing, because a filter in a lane determines the next element, and a
/// lane is evaluated completely by its reader.
fn cut<T: Send + 'static>(chain: Chain<T>) -> Chain<T> {
    match chain {
        Chain::Stream(ds, border) => Chain::Stream(Cut::new(ds).boxed(), border),
        lanes @ Chain::Lanes(..) => lanes,
        chain => Chain::Iter(CutStream(chain.into_iter()).boxed()),
    }
}

impl Pipeline {
    /// Returns a dataset of items with random access.
    pub(crate) fn map_of(ds: impl MapDataset<Item = Item> + 'static) -> Self {
        Self::Items(Chain::Map(ds.boxed()))
    }

    /// Returns a stream of items.
    pub(crate) fn stream_of(ds: impl crate::IterDataset<Item = Item> + 'static) -> Self {
        Self::Items(Chain::Iter(ds.boxed()))
    }

    /// Wraps a stream of the crate.
    pub(crate) fn native_stream(ds: BoxIter<Element>) -> Self {
        Self::Elements(Chain::Iter(ds), Context::new(PathBuf::new()))
    }

    /// Makes the native source `name`.
    pub(crate) fn source(name: &str, arguments: Tree) -> Result<Self> {
        let (chain, context) = by_name::source(name, arguments, BadRecords::Error)?;
        Ok(Self::Elements(chain, context))
    }

    /// Checks that the result of `name` has random access.
    pub(crate) fn random_access(self, name: &str) -> Result<Self> {
        if self.is_map() {
            return Ok(self);
        }
        Err(Error::config(format!("`{name}` gives a stream here, which has no random access"))
            .help("use the method of this name on IterDataset, or after to_iter_dataset()"))
    }

    fn is_map(&self) -> bool {
        matches!(self, Self::Elements(Chain::Map(_), _) | Self::Items(Chain::Map(_)))
    }

    /// Makes a stream, unless the pipeline is a stream.
    pub(crate) fn into_stream(self, border: Border) -> Self {
        both!(&self, chain => chain.into_stream(border))
    }

    /// Returns the last stage.
    pub(crate) fn stage(&self) -> Box<dyn Stage> {
        match self {
            Self::Elements(chain, _) => chain.last(),
            Self::Items(chain) => chain.last(),
        }
    }

    /// Returns the number of elements of a dataset with random access.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Elements(chain, _) => chain.prefix().map_or(0, MapDataset::len),
            Self::Items(chain) => chain.prefix().map_or(0, MapDataset::len),
        }
    }

    /// Returns the element at `index` of a dataset with random access.
    pub(crate) fn get(&self, index: u64) -> Result<Option<Item>> {
        let cx = &mut Cx::default();
        match self {
            Self::Elements(chain, _) => chain.prefix().map_or(Ok(None), |ds| Ok(ds.get(index, cx)?.map(Item::Element))),
            Self::Items(chain) => chain.prefix().map_or(Ok(None), |ds| ds.get(index, cx)),
        }
    }

    /// Converts to items.
    pub(crate) fn items(&self) -> Chain<Item> {
        match self {
            Self::Elements(chain, _) => convert::native_chain(chain.clone()),
            Self::Items(chain) => chain.clone(),
        }
    }

    /// Converts elements with one field of bytes to those bytes.
    pub(crate) fn bytes(self) -> Self {
        match self {
            Self::Elements(chain, _) => Self::Items(convert::native_bytes_chain(chain)),
            items => items,
        }
    }

    /// Appends the native stage `name`, which keeps random access.
    pub(crate) fn native(&self, name: &str, arguments: Tree) -> Result<Self> {
        let (chain, context) = match self {
            Self::Elements(chain, context) => (chain.clone(), context.clone()),
            Self::Items(chain) => (convert::chain(chain.clone(), Item::into_element), Context::unknown()),
        };
        let (chain, context) = by_name::stage(chain, name, arguments, &context)?;
        let made = Self::Elements(chain, context);
        if self.is_map() { made.random_access(name) } else { Ok(made) }
    }

    /// Appends a Python function.
    pub(crate) fn map(&self, function: Callable) -> Self {
        Self::Items(each(self.items(), function.map_stage()))
    }

    /// Appends a Python function of the item and its index, or its number in the stream.
    pub(crate) fn map_with_index(&self, function: Callable) -> Self {
        Self::Items(match self.items() {
            Chain::Map(ds) => {
                let call = move |index: ElementIndex, item| function.map_with_index(index.global, item);
                Chain::Map(ds.try_map_with_index(call).around(attached).boxed())
            }
            chain => {
                let call = move |index, item| function.map_with_index(index, item);
                Chain::Iter(chain.into_iter().try_map_with_index(call).boxed())
            }
        })
    }

    /// Appends a Python function of a state and the item.
    pub(crate) fn scan(&self, function: Callable, initial: serde_json::Value) -> Self {
        let call = move |state: &mut _, item| function.scan(state, item);
        Self::stream_of(self.dataset().scan(initial, call))
    }

    /// Pairs each item with its number in this stream.
    pub(crate) fn enumerate(&self, start: i64) -> Self {
        let params = if start == 0 { String::new() } else { format!("start={start}") };
        let number = move |index, item| Ok(Item::Tuple(vec![Item::Int(start.wrapping_add_unsigned(index)), item]));
        Self::stream_of(IterTryMapWithIndex::named(self.dataset(), ENUMERATE, params, number))
    }

    /// Appends a Python function of the item and random numbers of its position.
    pub(crate) fn random_map(&self, function: Callable, seed: Option<u32>) -> Self {
        let function = RandomFunction::new(function);
        let call = move |item, rng: &mut ElementRng| function.call(item, rng);
        Self::Items(match self.items() {
            Chain::Map(ds) => Chain::Map(ds.try_random_map(seed, call).around(attached).boxed()),
            chain => Chain::Iter(chain.into_iter().try_random_map(seed, call).boxed()),
        })
    }

    /// Appends a filter by a Python function.
    pub(crate) fn filter(&self, function: Callable, thresholds: Option<FilterThresholds>) -> Self {
        match self {
            Self::Elements(chain, context) => Self::Elements(
                sifted(chain.clone(), function.native_filter_stage(), thresholds),
                context.clone().blind(),
            ),
            Self::Items(chain) => Self::Items(sifted(chain.clone(), function.filter_stage(), thresholds)),
        }
    }

    /// Drops items that are `None`, which leaves empty slots. Native stages yield no `None`.
    pub(crate) fn drop_none(&self) -> Self {
        match self {
            Self::Elements(..) => self.clone(),
            Self::Items(chain) => {
                let keep = |item: &Item| Ok(!item.is_none());
                Self::Items(each(chain.clone(), NamedFn::filter("drop_none", String::new(), keep)))
            }
        }
    }

    /// Replaces empty slots by `None`.
    pub(crate) fn slots(&self) -> Self {
        if !self.stage().may_drop() {
            return self.clone();
        }
        let filled = |slot: Option<Item>| Ok(slot.unwrap_or_else(Item::none));
        Self::Items(self.items().over(|ds| convert::map(ds.slots().boxed(), filled)))
    }

    /// Skips the bad records of the stages so far.
    pub(crate) fn skip_bad_records(&self, bad: BadRecords) -> Self {
        both!(self, chain => chain.on_bad_record(bad))
    }

    /// Zips datasets with random access to tuples.
    pub(crate) fn zip_maps(maps: Vec<BoxMap<Item>>) -> Self {
        Self::map_of(convert::map(crate::dataset::map::ZipAll::new(maps), |items| Ok(Item::Tuple(items))))
    }

    /// Zips streams to tuples.
    pub(crate) fn zip(streams: &[&Self], length: ZipLength) -> Self {
        let zipped = zip_all(streams.iter().map(|ds| ds.dataset()), length).boxed();
        Self::Items(convert::chain(Chain::Iter(zipped), |items: Vec<Item>| Ok(Item::Tuple(items))))
    }

    /// Replaces each item by the items that a Python function returns.
    pub(crate) fn flat_map(&self, function: Callable) -> Self {
        let call = move |item| function.flat_map(item);
        Self::Items(Chain::Iter(match self.items() {
            Chain::Stream(ds, Border { bad, thresholds }) => {
                let each = move |item| call(item).map(|pieces| pieces.into_iter().collect());
                FanStream::of(FanOut::flat_map(ds, each), bad, thresholds).boxed()
            }
            chain => chain.into_iter().try_flat_map(call).boxed(),
        }))
    }

    /// Replaces each item by up to `max_fan_out` items that a Python function returns, in as many slots.
    pub(crate) fn fan_out(&self, max_fan_out: usize, function: Callable) -> Self {
        let call = move |item| function.flat_map(item);
        Self::Items(self.items().over(|ds| ds.try_flat_map(max_fan_out, call).boxed()))
    }

    /// Stacks batches.
    pub(crate) fn batch(&self, size: usize, remainder: Remainder) -> Self {
        both!(self, chain => stacked(chain, size, remainder))
    }

    /// Makes batches by a Python function.
    pub(crate) fn batch_fn(&self, size: usize, remainder: Remainder, function: Callable) -> Self {
        let make = move |items| function.batch(items);
        Self::Items(match self.items() {
            Chain::Map(ds) => Chain::Map(ds.batch_with_fn(size, remainder, make).boxed()),
            Chain::Stream(ds, border) => Chain::Iter(border.open(ds).batch_with_fn(size, remainder, make).boxed()),
            chain => Chain::Iter(chain.into_iter().batch_with_fn(size, remainder, make).boxed()),
        })
    }

    /// Ends the part of the pipeline that workers evaluate.
    pub(crate) fn cut(&self) -> Self {
        both!(self, chain => cut(chain.into_stream(Border::default())))
    }

    /// Whether the next elementwise stage runs inside lanes.
    pub(crate) fn in_lanes(&self) -> bool {
        matches!(self, Self::Elements(Chain::Lanes(..), _) | Self::Items(Chain::Lanes(..)))
    }

    /// Whether Python makes its elements individually. A shuffled and batched range of numbers is native.
    pub(crate) fn is_python(&self) -> bool {
        let mut found = false;
        if let Self::Items(_) = self {
            self.stage().walk(&mut |_, node| found |= OF_PYTHON.contains(&node.name()));
        }
        found
    }

    /// Returns the dataset that a loader runs.
    pub(crate) fn dataset(&self) -> BoxIter<Item> {
        self.items().into_iter()
    }

    /// Checks the last stage, so that its method raises errors about arguments.
    pub(crate) fn checked(self, py: Python<'_>) -> PyResult<Self> {
        let checked = match &self {
            Self::Elements(chain, _) => chain.check(),
            Self::Items(chain) => chain.check(),
        };
        let named = |error: Error| {
            let stage = self.stage();
            error.stage(format!("{} {}", stage.count() - 1, stage.name()))
        };
        checked.map_err(named).or_raise(py)?;
        Ok(self)
    }
}

/// Datasets with random access of one kind: of elements if all are, else of items.
pub(crate) enum Several {
    Elements(Vec<BoxMap<Element>>, Context),
    Items(Vec<BoxMap<Item>>),
}

impl Several {
    pub(crate) fn new<'a>(parts: impl Iterator<Item = &'a Pipeline> + Clone) -> Self {
        let elements = |part: &Pipeline| match part {
            Pipeline::Elements(chain, _) => chain.prefix().cloned(),
            Pipeline::Items(_) => None,
        };
        match parts.clone().map(elements).collect::<Option<Vec<_>>>() {
            Some(elements) if !elements.is_empty() => Self::Elements(elements, Context::unknown()),
            _ => Self::Items(Self::items(parts)),
        }
    }

    /// Converts the datasets to items.
    pub(crate) fn items<'a>(parts: impl Iterator<Item = &'a Pipeline>) -> Vec<BoxMap<Item>> {
        parts.filter_map(|part| part.items().prefix().cloned()).collect()
    }
}
