//! Contents of an `IterDataset` of the package.

use std::path::PathBuf;

use pyo3::prelude::*;

use super::callable::Callable;
use super::convert;
use super::error::OrRaise;
use super::item::Item;
use super::maps::Maps;
use super::random::RandomFunction;
use crate::dataset::iter::{
    BadRecords, Cut, CutStream, ENUMERATE, FanOut, FanStream, FilterThresholds, IterTryMapWithIndex, ZipLength, zip_all,
};
use crate::dataset::{BoxIter, IterDatasetExt, MapDatasetExt, Remainder, Stage};
use crate::element::{Element, Stack};
use crate::error::Result;
use crate::spec::by_name;
use crate::spec::chain::{Border, Chain, Context};
use crate::spec::columns::NamedFn;
use crate::spec::node::Tree;

/// A stream: of elements if all stages are native, else of items.
#[derive(Clone, Debug)]
pub(crate) enum Streams {
    Elements(Chain, Context),
    Items(Chain<Item>),
}

/// Appends a stateful stage for any type of elements, to either kind of stream.
macro_rules! behind {
    ($streams:expr, $ds:ident => $new:expr) => {
        match $streams {
            Streams::Elements(chain, context) => {
                let $ds = chain.clone().into_iter();
                Streams::Elements(Chain::Iter(BoxIter::new($new)), context.clone())
            }
            Streams::Items(chain) => {
                let $ds = chain.clone().into_iter();
                Streams::Items(Chain::Iter(BoxIter::new($new)))
            }
        }
    };
}
pub(crate) use behind;

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
fn sifted<T>(chain: Chain<T>, filter: NamedFn<T, T>, thresholds: Option<FilterThresholds>) -> Chain<T>
where
    T: Send + 'static,
{
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
    Chain::Iter(match chain {
        Chain::Stream(ds, border) => border.open(ds).batch_with(size, remainder).boxed(),
        chain => chain.into_iter().batch_with(size, remainder).boxed(),
    })
}

/// Ends the part that workers evaluate. Later elementwise stages stay before the border, or inside the lanes, so the
/// cut changes no element. In lanes it changes nothing, because a filter in a lane determines the next element, and a
/// lane is evaluated completely by its reader.
fn cut<T: Send + 'static>(chain: Chain<T>) -> Chain<T> {
    match chain {
        Chain::Stream(ds, border) => Chain::Stream(Cut::new(ds).boxed(), border),
        lanes @ Chain::Lanes(..) => lanes,
        chain => Chain::Iter(CutStream::new(chain.into_iter()).boxed()),
    }
}

impl Streams {
    /// Returns the elements of `maps` in order.
    pub(crate) fn of(maps: &Maps, border: Border) -> Self {
        match maps {
            Maps::Elements(ds, context) => Self::Elements(Chain::Stream(ds.clone(), border), context.clone()),
            Maps::Items(ds) => Self::Items(Chain::Stream(ds.clone(), border)),
        }
    }

    /// Converts to items.
    pub(crate) fn items(&self) -> Chain<Item> {
        match self {
            Self::Elements(chain, _) => convert::native_chain(chain.clone()),
            Self::Items(chain) => chain.clone(),
        }
    }

    /// Wraps a stream of the crate.
    pub(crate) fn native_stream(ds: BoxIter<Element>) -> Self {
        Self::Elements(Chain::Iter(ds), Context::new(PathBuf::new()))
    }

    /// Makes the native source `name`, read in order.
    pub(crate) fn source(name: &str, arguments: Tree) -> Result<Self> {
        let (chain, context) = by_name::source(name, arguments, BadRecords::Error)?;
        Ok(Self::Elements(chain.into_stream(), context))
    }

    /// Converts elements with one field of bytes to those bytes.
    pub(crate) fn bytes(self) -> Self {
        match self {
            Self::Elements(chain, _) => Self::Items(convert::native_bytes_chain(chain)),
            items => items,
        }
    }

    /// Appends the native stage `name`.
    pub(crate) fn native(&self, name: &str, arguments: Tree) -> Result<Self> {
        let (chain, context) = match self {
            Self::Elements(chain, context) => (chain.clone(), context.clone()),
            Self::Items(chain) => (convert::chain(chain.clone(), Item::into_element), Context::unknown()),
        };
        let (chain, context) = by_name::stage(chain, name, arguments, &context)?;
        Ok(Self::Elements(chain, context))
    }

    /// Appends a Python function.
    pub(crate) fn map(&self, function: Callable) -> Self {
        Self::Items(each(self.items(), function.map_stage()))
    }

    /// Appends a Python function of a counter and the item.
    pub(crate) fn map_with_index(&self, function: Callable) -> Self {
        let call = move |index, item| function.map_with_index(index, item);
        Self::Items(Chain::Iter(self.items().into_iter().try_map_with_index(call).boxed()))
    }

    /// Appends a Python function of a state and the item.
    pub(crate) fn scan(&self, function: Callable, initial: serde_json::Value) -> Self {
        let call = move |state: &mut _, item| function.scan(state, item);
        Self::Items(Chain::Iter(self.items().into_iter().scan(initial, call).boxed()))
    }

    /// Pairs each item with its number in this stream.
    pub(crate) fn enumerate(&self, start: i64) -> Self {
        let params = if start == 0 { String::new() } else { format!("start={start}") };
        let number = move |index, item| Ok(Item::Tuple(vec![Item::Int(start.wrapping_add_unsigned(index)), item]));
        let numbered = IterTryMapWithIndex::named(self.items().into_iter(), ENUMERATE, params, number);
        Self::Items(Chain::Iter(numbered.boxed()))
    }

    /// Appends a Python function of the item and random numbers of its position.
    pub(crate) fn random_map(&self, function: Callable, seed: Option<u32>) -> Self {
        let function = RandomFunction::new(function);
        let call = move |item, rng: &mut crate::rng::ElementRng| function.call(item, rng);
        Self::Items(Chain::Iter(self.items().into_iter().try_random_map(seed, call).boxed()))
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

    /// Drops items that are `None`. Native stages yield no `None`.
    pub(crate) fn drop_none(&self) -> Self {
        match self {
            Self::Elements(..) => self.clone(),
            Self::Items(chain) => {
                let keep = |item: &Item| Ok(!item.is_none());
                Self::Items(each(chain.clone(), NamedFn::filter("drop_none", String::new(), keep)))
            }
        }
    }

    /// Skips the bad records of the stages so far.
    pub(crate) fn skip_bad_records(&self, bad: BadRecords) -> Self {
        match self {
            Self::Elements(chain, context) => Self::Elements(chain.clone().on_bad_record(bad), context.clone()),
            Self::Items(chain) => Self::Items(chain.clone().on_bad_record(bad)),
        }
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

    /// Stacks batches.
    pub(crate) fn batch(&self, size: usize, remainder: Remainder) -> Self {
        match self {
            Self::Elements(chain, context) => Self::Elements(stacked(chain.clone(), size, remainder), context.clone()),
            Self::Items(chain) => Self::Items(stacked(chain.clone(), size, remainder)),
        }
    }

    /// Makes batches by a Python function.
    pub(crate) fn batch_fn(&self, size: usize, remainder: Remainder, function: Callable) -> Self {
        let make = move |items| function.batch(items);
        Self::Items(Chain::Iter(match self.items() {
            Chain::Stream(ds, border) => border.open(ds).batch_with_fn(size, remainder, make).boxed(),
            chain => chain.into_iter().batch_with_fn(size, remainder, make).boxed(),
        }))
    }

    /// Ends the part of the pipeline that workers evaluate.
    pub(crate) fn cut(&self) -> Self {
        match self {
            Self::Elements(chain, context) => Self::Elements(cut(chain.clone()), context.clone()),
            Self::Items(chain) => Self::Items(cut(chain.clone())),
        }
    }

    /// Whether the next elementwise stage runs inside lanes.
    pub(crate) fn in_lanes(&self) -> bool {
        match self {
            Self::Elements(chain, _) => matches!(chain, Chain::Lanes(..)),
            Self::Items(chain) => matches!(chain, Chain::Lanes(..)),
        }
    }

    /// Whether Python makes its elements individually. A shuffled and batched range of numbers is native.
    pub(crate) fn is_python(&self) -> bool {
        let mut found = false;
        if let Self::Items(_) = self {
            (&self.dataset() as &dyn Stage).walk(&mut |_, node| found |= OF_PYTHON.contains(&node.name()));
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
        checked.map_err(|error| self.named(error)).or_raise(py)?;
        Ok(self)
    }

    fn named(&self, error: crate::Error) -> crate::Error {
        let dataset = self.dataset();
        let stage: &dyn Stage = &dataset;
        error.stage(format!("{} {}", stage.count() - 1, stage.name()))
    }
}
