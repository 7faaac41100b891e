//! Arrow.

use std::path::PathBuf;

use super::{by_number, paths};
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::error::Result;
use crate::source::Arrow;
use crate::spec::arguments::arguments;
use crate::spec::build::Site;
use crate::spec::chain::Chain;
use crate::spec::values::{Amount, Given};

arguments! {
    pub(super) struct ArrowArgs(paths) {
        /// Files, folders, globs or URLs; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Memory for decompressed batches that are kept.
        cache_bytes: Amount = "256MiB",
        /// The columns to read, all of them by default.
        columns: Option<Given<Vec<String>>>,
    }
}

pub(super) fn arrow(args: ArrowArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let mut options = Arrow::options().cache_bytes(args.cache_bytes.into());
    args.columns.as_ref().map(Given::get).transpose()?;
    by_number(at, || {
        if let Some(given) = args.columns {
            let columns = Arrow::open(&paths)?.columns().map(str::to_owned).collect();
            options = options.columns(at.of_columns(columns).columns_in(&given)?);
        }
        Ok(Source::new(options.open(&paths)?).boxed())
    })
}
