//! The source of pipeline files.

use super::{BEGINNING, TfRecord, compression};
use crate::source::Examples;
use crate::source::detect::plain::open_plain_by;
use crate::source::entries::prelude::*;
use crate::source::formats::tf_record::FACTS;
use crate::source::record_args::{RecordArgs, Records, to_record};

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(tfrecord))];

arguments! {
    struct TfRecordArgs(paths) with RecordArgs as content {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.tfrecord`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Cache for the index of record positions: `beside` the data files, `off`, or the path of a folder.
        index_cache: CacheArg = "beside",
        /// Number of lanes for compressed files. Each lane reads every `lanes`-th file, and records come from the lanes in turn, so the
        /// number determines the order of records. By default, all files form a single stream.
        lanes: Lanes,
    }
}

fn tfrecord(args: TfRecordArgs, at: &Site<'_>) -> Result<Chain> {
    let content = args.content.records(at)?;
    let files = files_of("tfrecord", &args.paths, at)?;
    let open = |files: &[Location]| open_plain_by(files, BEGINNING, |head| compression(head).is_some());
    let plain = |contents| {
        let source = TfRecord::options().cache(args.index_cache.of(at)).of(contents)?;
        Ok(content.clone().elements(source))
    };
    by_number_or_streams(&files, &args.lanes, at, open, plain, |files| stream(&content, files))
}

fn stream(content: &Records, files: &[Location]) -> Result<BoxIter<Element>> {
    use crate::dataset::IterDatasetExt;
    let records = super::TfRecordStream::open(files)?;
    Ok(match content {
        Records::Field(name) => to_record(name).in_order(records).boxed(),
        Records::Parsed(parser) => Examples::new(records, parser.clone()).boxed(),
    })
}
