//! The source of pipeline files.

use super::{WebDataset, WebDatasetOptions};
use crate::source::entries::prelude::*;
use crate::source::formats::webdataset::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(webdataset)).chooses("columns")];

arguments! {
    struct WebDatasetArgs(paths) {
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

fn webdataset(args: WebDatasetArgs, at: &Site<'_>) -> Result<Chain> {
    let files = files_of("webdataset", &args.paths, at)?;
    let options = WebDataset::options().decode(args.decode).url(args.url);
    let options = args.columns.into_iter().fold(options, WebDatasetOptions::columns);
    let plain = |contents| {
        let options = options.clone().cache(args.index_cache.of(at));
        Ok(Source::new(options.open_contents(contents)?).boxed())
    };
    by_number_or_streams(&files, &args.lanes, at, open_plain, plain, |files| Ok(options.clone().stream(files)?.boxed()))
}
