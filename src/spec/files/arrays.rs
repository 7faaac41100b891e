//! Files of arrays: NumPy's, safetensors.

use std::path::PathBuf;

use super::{Paths, by_number, paths};
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::error::Result;
use crate::source::Npy;
use crate::spec::arguments::arguments;
use crate::spec::build::Site;
use crate::spec::chain::Chain;
use crate::spec::values::Given;

arguments! {
    pub(super) struct NpyArgs(paths) {
        /// A single file, in place of `paths`.
        path: Option<Given<PathBuf>>,
        /// Files, folders, globs, ranges of shards (`train-{000..127}.npy`) or URLs of any of these; one or a list. All have one type
        /// and one shape of a row.
        paths: Option<Given<Vec<PathBuf>>>,
        /// The name of the column.
        field: String = "data",
    }
}

pub(super) fn npy(NpyArgs { path, paths: given, field }: NpyArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = match (path, given) {
        (Some(path), None) => Paths { all: vec![at.existing(&path)?], shards: at.shards.clone() },
        (_, Some(given)) => paths(&given, at)?,
        (None, None) => return Err(at.missing("paths")),
    };
    by_number(at, || Ok(Source::new(Npy::open(&paths)?.field(field)).boxed()))
}

#[cfg(feature = "safetensors")]
arguments! {
    pub(super) struct SafetensorsArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.safetensors`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// A record for each row, along the first dimension that all tensors of a file share.
        rows: bool = false,
        /// The tensors to read, all of them by default.
        columns: Option<Vec<String>>,
        /// Read tensors of 8-bit floats as their bytes (`uint8`).
        float8_as_u8: bool = false,
    }
}

#[cfg(feature = "safetensors")]
pub(super) fn safetensors(args: SafetensorsArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let mut options = crate::source::Safetensors::options().rows(args.rows).float8_as_u8(args.float8_as_u8);
    if let Some(columns) = args.columns {
        options = options.columns(columns);
    }
    by_number(at, || Ok(Source::new(options.open(&paths)?).boxed()))
}
