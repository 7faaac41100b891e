//! The source of pipeline files.

use super::Lines;
use crate::dataset::columns::NamedFn;
use crate::source::StreamOptions;
use crate::source::entries::prelude::*;
use crate::source::formats::lines::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(lines))];

arguments! {
    struct LinesArgs(paths) {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.txt`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Name of the text column.
        column: String = "text",
        /// Whether lines of only white space are records. Compressed files do not support this option.
        blank_lines: bool = false,
        /// Cache for the index of record positions: `beside` the data files, `off`, or the path of a folder.
        index_cache: CacheArg = "beside",
        /// Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from the lanes in turn, so the
        /// number determines the order of records. By default, all files form a single stream.
        lanes: Lanes,
    }
}

fn lines(args: LinesArgs, at: &Site<'_>) -> Result<Chain> {
    let LinesArgs { paths, column, blank_lines, index_cache, lanes } = args;
    let files = files_of("lines", &paths, at)?;
    let plain = |contents| {
        let lines = Lines::options().cache(index_cache.of(at)).blank_lines(blank_lines).open_contents(contents)?;
        Ok(to_element(&column).after(Source::new(lines)).boxed())
    };
    by_number_or_streams(&files, &lanes, at, open_plain, plain, |files| {
        if blank_lines {
            return Err(at.error("`blank_lines` is for files that are not compressed: a stream leaves them out"));
        }
        Ok(to_element(&column).in_order(StreamOptions::new().lines(files)?).boxed())
    })
}

/// A line as an element with a column of text.
fn to_element(column: &str) -> NamedFn<String> {
    let name = column.to_owned();
    NamedFn::map("to_element", name.clone(), move |line: String| Ok(Element::new().with(&name, line.as_str())))
}
