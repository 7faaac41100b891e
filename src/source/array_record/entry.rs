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
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.array_record`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Memory for the cache of decoded chunks; used only if chunks contain several records.
        cache_bytes: Amount = "256MiB",
        /// Whether to read the intact chunks of a file without a valid index, such as a truncated file. A warning reports the loss.
        recover: bool = false,
    }
}

fn array_record(args: ArrayRecordArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let options = ArrayRecord::options().recover(args.recover).cache_bytes(args.cache_bytes.into());
    let content = args.content.records(at)?;
    by_number(at, || Ok(content.elements(options.open(&paths)?)))
}
