//! The source of pipeline files.

use super::ArrayRecord;
use crate::declare::values::Amount;
use crate::source::entries::prelude::*;
use crate::source::formats::array_record::FACTS;
use crate::source::record_args::RecordArgs;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(array_record))];

arguments! {
    struct ArrayRecordArgs(paths) with RecordArgs as content {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.array_record`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Memory for decoded chunks, if chunks hold several records.
        cache_bytes: Amount = "256MiB",
        /// Read a file that was cut off up to its last whole chunk. The loss is logged.
        recover: bool = false,
    }
}

fn array_record(args: ArrayRecordArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let options = ArrayRecord::options().recover(args.recover).cache_bytes(args.cache_bytes.into());
    let content = args.content.records(at)?;
    by_number(at, || Ok(content.elements(options.open(&paths)?)))
}
