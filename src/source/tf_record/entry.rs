//! The source of pipeline files.

use super::{BEGINNING, TfRecord, compression};
#[cfg(feature = "compress")]
use crate::source::Examples;
use crate::source::detect::open_plain_by;
use crate::source::entries::prelude::*;
use crate::source::formats::tf_record::FACTS;
#[cfg(feature = "compress")]
use crate::source::record_args::to_record;
use crate::source::record_args::{RecordArgs, Records};

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(tfrecord))];

arguments! {
    struct TfRecordArgs(paths) with RecordArgs as content {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.tfrecord`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Place of the positions of the records: `beside` the file, `off`, or a folder.
        index_cache: CacheArg = "beside",
        /// How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo `lanes`; it is part of
        /// the data's order. One stream by default.
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

#[cfg(feature = "compress")]
fn stream(content: &Records, files: &[Location]) -> Result<BoxIter<Element>> {
    use crate::dataset::IterDataset;
    let records = super::TfRecordStream::open(files)?;
    Ok(match content {
        Records::Field(name) => to_record(name).in_order(records).boxed(),
        Records::Parsed(parser) => Examples::new(records, parser.clone()).boxed(),
    })
}

#[cfg(not(feature = "compress"))]
fn stream(_: &Records, _: &[Location]) -> Result<BoxIter<Element>> {
    Err(crate::source::Format::TfRecordStream.lacking())
}
