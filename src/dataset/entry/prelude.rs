//! Imports of the entries of stages.

pub(crate) use super::StageEntry;
pub(crate) use super::build::{Behind, Of, Site};
pub(crate) use crate::dataset::{BoxIter, BoxMap, IterDatasetExt, MapDatasetExt};
pub(crate) use crate::declare::arguments::{Arguments, arguments, words};
pub(crate) use crate::declare::values::{Given, Positive};
pub(crate) use crate::element::Element;
pub(crate) use crate::error::Result;
