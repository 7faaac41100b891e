//! The source of pipeline files.

use super::{WebDataset, WebDatasetOptions};
use crate::source::entries::prelude::*;
use crate::source::formats::webdataset::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(webdataset)).chooses("columns")];

arguments! {
    struct WebDatasetArgs(paths) {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.tar`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Whether to decode fields by their extension: text, numbers, JSON, arrays of `.npy` and images (`uint8`, height × width ×
        /// channels). If false, fields are bytes.
        decode: bool = false,
        /// Whether to add the path of the shard as the column `__url__`.
        url: bool = false,
        /// Extensions to read. By default, all extensions.
        columns: Option<Vec<String>>,
        /// Cache for the index of record positions: `beside` the data files, `off`, or the path of a folder.
        index_cache: CacheArg = "beside",
        /// Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from the lanes in turn, so the
        /// number determines the order of records. By default, all files form a single stream.
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
