//! Imports of the entries of formats.

pub(in crate::source) use super::{
    CacheArg, Lanes, Paths, Whole, by_number, by_number_or_streams, files_of, paths, paths_by,
};
pub(in crate::source) use crate::dataset::entry::SourceEntry;
pub(in crate::source) use crate::dataset::entry::build::{Of, Site};
pub(in crate::source) use crate::dataset::entry::chain::Chain;
pub(in crate::source) use crate::dataset::map::Source;
pub(in crate::source) use crate::dataset::{BoxIter, BoxMap, IterDatasetExt, MapDatasetExt};
pub(in crate::source) use crate::declare::arguments::{Kind, arguments, words};
pub(in crate::source) use crate::declare::node::Node;
pub(in crate::source) use crate::declare::values::{Decode, Given, decode_as, word};
pub(in crate::source) use crate::element::Element;
pub(in crate::source) use crate::error::Result;
pub(in crate::source) use crate::place::Location;
pub(in crate::source) use crate::source::detect::plain::open_plain;
pub(in crate::source) use std::path::PathBuf;
