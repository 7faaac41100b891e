//! Data sets of shards: WebDataset, MDS.

use std::path::PathBuf;

#[cfg(feature = "webdataset")]
use super::{CacheArg, Lanes, by_number_or_streams, files_of};
#[cfg(feature = "mds")]
use super::{by_number, paths};
#[cfg(feature = "webdataset")]
use crate::dataset::IterDataset;
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::error::Result;
use crate::spec::arguments::arguments;
use crate::spec::build::Site;
use crate::spec::chain::Chain;
#[cfg(feature = "mds")]
use crate::spec::values::Amount;
use crate::spec::values::Given;

#[cfg(feature = "webdataset")]
arguments! {
    pub(super) struct WebDatasetArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.tar`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Decode fields by their extension: text, numbers, what JSON holds, arrays of `.npy`, images (`uint8`,
        /// height × width × channels). Without it they are bytes.
        decode: bool = false,
        /// Add the path of the shard as the column `__url__`.
        url: bool = false,
        /// The extensions to read, all of them by default.
        columns: Option<Vec<String>>,
        /// Place of the positions of the records: `beside` the file, `off`, or a folder.
        index_cache: CacheArg = "beside",
        /// How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo `lanes`; it is part of
        /// the data's order. One stream by default.
        lanes: Lanes,
    }
}

#[cfg(feature = "webdataset")]
pub(super) fn webdataset(args: WebDatasetArgs, at: &Site<'_>) -> Result<Chain> {
    use crate::source::{WebDataset, open_plain};
    let files = files_of("webdataset", &args.paths, at)?;
    let mut options = WebDataset::options().decode(args.decode).url(args.url);
    if let Some(columns) = args.columns {
        options = options.columns(columns);
    }
    let plain = |contents| {
        let options = options.clone().cache(args.index_cache.of(at));
        Ok(Source::new(options.open_contents(contents)?).boxed())
    };
    by_number_or_streams(&files, &args.lanes, at, open_plain, plain, |files| Ok(options.clone().stream(files)?.boxed()))
}

#[cfg(feature = "mds")]
arguments! {
    pub(super) struct MdsArgs(paths) {
        /// Folders or their URLs; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Decode JPEG and PNG to arrays (`uint8`, height × width × channels); else they are bytes.
        images: bool = true,
        /// Hold each shard against the hash that its index has of it.
        check_hashes: bool = false,
        /// Memory for decompressed shards that are kept.
        cache_bytes: Amount = "512MiB",
        /// The columns to read, all of them by default.
        columns: Option<Vec<String>>,
    }
}

#[cfg(feature = "mds")]
pub(super) fn mds(args: MdsArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let mut options = crate::source::Mds::options()
        .images(args.images)
        .check_hashes(args.check_hashes)
        .cache_bytes(args.cache_bytes.into());
    if let Some(columns) = args.columns {
        options = options.columns(columns);
    }
    by_number(at, || Ok(Source::new(options.open(&paths)?).boxed()))
}
