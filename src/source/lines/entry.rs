//! The source of pipeline files.

use super::Lines;
use crate::declare::columns::NamedFn;
use crate::source::StreamOptions;
use crate::source::entries::prelude::*;
use crate::source::formats::lines::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(lines))];

arguments! {
    struct LinesArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.txt`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// The name of the column of text.
        column: String = "text",
        /// Whether lines of nothing but white space are records, too; only of files that are not compressed.
        blank_lines: bool = false,
        /// Place of the positions of the records: `beside` the file, `off`, or a folder.
        index_cache: CacheArg = "beside",
        /// How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo `lanes`; it is part of
        /// the data's order. One stream by default.
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
