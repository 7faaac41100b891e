//! Common description of the stages that pack group by group.

use super::columns::Columns;
use super::kernel::Kernel;
use super::options::{BinPackOptions, ConcatPackOptions};
use super::rows::RowSpec;
use crate::error::Result;
use crate::pack::bins::Fit;
use crate::pack::concat::{ConcatOptions, ConcatThenSplit};
use crate::pack::feature::Feature;
use crate::pack::group::GroupPacker;

/// Reason that a plan cannot pack the rows of a packing stage again.
pub(super) const PACKED: &str =
    "makes rows of several elements, and a later stage depends on their lengths, which keys do not contain";

/// Options of a stage that packs group by group.
#[derive(Clone, Debug)]
pub(super) enum GroupPlan {
    Bins(BinPackOptions),
    Concat(ConcatPackOptions),
}

impl GroupPlan {
    pub(super) fn rows(&self) -> &RowSpec {
        match self {
            Self::Bins(options) => &options.rows,
            Self::Concat(options) => &options.rows,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Bins(options) if options.group.fit == Fit::Best => "best_fit_pack",
            Self::Bins(_) => "first_fit_pack",
            Self::Concat(_) => "concat_then_split_pack",
        }
    }

    /// Returns true if lengths alone determine the rows and their order.
    pub(super) fn is_by_lengths(&self) -> bool {
        match self {
            Self::Bins(options) => options.group_by.is_none(),
            Self::Concat(_) => true,
        }
    }

    /// Returns true if elements are cut at the end of a row.
    pub(super) fn is_concat(&self) -> bool {
        matches!(self, Self::Concat(_))
    }

    /// Returns the number of rows in a group.
    pub(super) fn rows_held(&self) -> usize {
        match self {
            Self::Bins(options) => options.group.bins,
            Self::Concat(options) if options.split_full_length_features => 1,
            Self::Concat(_) => 1 + ConcatOptions::default().max_waiting,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Bins(options) => options.check(),
            Self::Concat(options) => options.check(),
        }
    }

    pub(super) fn kernel(&self, columns: &Columns, features: &[Feature]) -> Result<Kernel> {
        Ok(match self {
            Self::Bins(options) => Kernel::Bins(GroupPacker::new(features, options.group)?),
            Self::Concat(options) => {
                let options = options.kernel(|at| columns.dtype(at), features)?;
                Kernel::Concat(ConcatThenSplit::new(features, options)?)
            }
        })
    }
}

display_as!(GroupPlan, |self, f| {
    match self {
        Self::Bins(options) => options.fmt(f),
        Self::Concat(options) => options.fmt(f),
    }
});
