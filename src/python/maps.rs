//! Contents of a `MapDataset` of the package.

use pyo3::prelude::*;

use super::callable::Callable;
use super::convert;
use super::error::OrRaise;
use super::interpreter::attached;
use super::item::Item;
use super::random::RandomFunction;
use crate::dataset::iter::BadRecords;
use crate::dataset::{BoxMap, MapDataset, MapDatasetExt, Stage};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::spec::by_name;
use crate::spec::chain::{Chain, Context};
use crate::spec::columns::NamedFn;
use crate::spec::node::Tree;

/// A dataset with random access: of elements if all stages are native, else of items.
#[derive(Clone, Debug)]
pub(crate) enum Maps {
    Elements(BoxMap<Element>, Context),
    Items(BoxMap<Item>),
}

/// Appends a stage for any type of elements, to either kind of dataset.
macro_rules! over {
    ($maps:expr, $ds:ident => $new:expr) => {
        match $maps {
            Maps::Elements($ds, context) => {
                let $ds = $ds.clone();
                Maps::Elements($crate::dataset::BoxMap::new($new), context.clone())
            }
            Maps::Items($ds) => {
                let $ds = $ds.clone();
                Maps::Items($crate::dataset::BoxMap::new($new))
            }
        }
    };
}
pub(crate) use over;

/// Applies `$new` to a list of datasets, of elements or of items.
macro_rules! over_several {
    ($several:expr, $parts:ident => $new:expr) => {
        match $several {
            Several::Elements($parts, context) => Maps::Elements($crate::dataset::BoxMap::new($new), context),
            Several::Items($parts) => Maps::Items($crate::dataset::BoxMap::new($new)),
        }
    };
}
pub(crate) use over_several;

impl Maps {
    /// The last stage.
    pub(crate) fn stage(&self) -> &dyn Stage {
        match self {
            Self::Elements(ds, _) => ds,
            Self::Items(ds) => ds,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Elements(ds, _) => ds.len(),
            Self::Items(ds) => ds.len(),
        }
    }

    /// Converts to items.
    pub(crate) fn items(&self) -> BoxMap<Item> {
        match self {
            Self::Elements(ds, _) => convert::native_map(ds.clone()),
            Self::Items(ds) => ds.clone(),
        }
    }

    /// Wraps a dataset of the crate, which must have random access.
    pub(crate) fn from_chain(name: &str, chain: Chain, context: Context) -> Result<Self> {
        match chain {
            Chain::Map(ds) => Ok(Self::Elements(ds, context)),
            _ => Err(Error::config(format!("`{name}` gives a stream here, which has no random access"))
                .help("use the method of this name on IterDataset, or after to_iter_dataset()")),
        }
    }

    /// Makes the native source `name`.
    pub(crate) fn source(name: &str, arguments: Tree) -> Result<Self> {
        let (chain, context) = by_name::source(name, arguments, BadRecords::Error)?;
        Self::from_chain(name, chain, context)
    }

    /// Converts elements with one field of bytes to those bytes.
    pub(crate) fn bytes(self) -> Self {
        match self {
            Self::Elements(ds, _) => Self::Items(convert::native_bytes(ds)),
            items => items,
        }
    }

    /// Appends the native stage `name`.
    pub(crate) fn native(&self, name: &str, arguments: Tree) -> Result<Self> {
        let (ds, context) = match self {
            Self::Elements(ds, context) => (ds.clone(), context.clone()),
            Self::Items(ds) => (convert::map(ds.clone(), Item::into_element), Context::unknown()),
        };
        let (chain, context) = by_name::stage(Chain::Map(ds), name, arguments, &context)?;
        Self::from_chain(name, chain, context)
    }

    /// Appends a Python function.
    pub(crate) fn map(&self, function: Callable) -> Self {
        Self::Items(function.map_stage().after(self.items()).boxed())
    }

    /// Appends a Python function of index and item.
    pub(crate) fn map_with_index(&self, function: Callable) -> Self {
        let call = move |index: crate::dataset::map::ElementIndex, item| function.map_with_index(index.global, item);
        Self::Items(self.items().try_map_with_index(call).around(attached).boxed())
    }

    /// Appends a Python function of item and random numbers.
    pub(crate) fn random_map(&self, function: Callable, seed: Option<u32>) -> Self {
        let function = RandomFunction::new(function);
        let call = move |item, rng: &mut crate::rng::ElementRng| function.call(item, rng);
        Self::Items(self.items().try_random_map(seed, call).around(attached).boxed())
    }

    /// Appends a filter by a Python function.
    pub(crate) fn filter(&self, function: Callable) -> Self {
        match self {
            Self::Elements(ds, context) => {
                Self::Elements(function.native_filter_stage().after(ds.clone()).boxed(), context.clone().blind())
            }
            Self::Items(ds) => Self::Items(function.filter_stage().after(ds.clone()).boxed()),
        }
    }

    /// Appends a function that makes up to `max_fan_out` items of an item, in as many slots.
    pub(crate) fn flat_map(&self, max_fan_out: usize, function: Callable) -> Self {
        Self::Items(self.items().try_flat_map(max_fan_out, move |item| function.flat_map(item)).boxed())
    }

    /// Replaces `None` by empty slots. Native stages yield no `None`.
    pub(crate) fn drop_none(&self) -> Self {
        match self {
            Self::Elements(..) => self.clone(),
            Self::Items(ds) => {
                let keep = |item: &Item| Ok(!item.is_none());
                Self::Items(NamedFn::filter("drop_none", String::new(), keep).after(ds.clone()).boxed())
            }
        }
    }

    /// Replaces empty slots by `None`.
    pub(crate) fn slots(&self) -> Self {
        if !self.stage().may_drop() {
            return self.clone();
        }
        let filled = |slot: Option<Item>| Ok(slot.unwrap_or_else(Item::none));
        Self::Items(convert::map(self.items().slots().boxed(), filled))
    }

    /// Checks the last stage, so that its method raises errors about arguments.
    pub(crate) fn checked(self, py: Python<'_>) -> PyResult<Self> {
        let id = self.stage().count() - 1;
        self.stage()
            .node()
            .describe
            .check()
            .map_err(|e| e.stage(format!("{id} {}", self.stage().name())))
            .or_raise(py)?;
        Ok(self)
    }
}

/// Datasets of one kind: of elements if all are, else of items.
pub(crate) enum Several {
    Elements(Vec<BoxMap<Element>>, Context),
    Items(Vec<BoxMap<Item>>),
}

impl Several {
    pub(crate) fn new(parts: Vec<Maps>) -> Self {
        let elements = |part: &Maps| if let Maps::Elements(ds, _) = part { Some(ds.clone()) } else { None };
        match parts.iter().map(elements).collect() {
            Some(elements) if !parts.is_empty() => Self::Elements(elements, Context::unknown()),
            _ => Self::Items(parts.iter().map(Maps::items).collect()),
        }
    }
}
