//! Files of records of bytes: ArrayRecord, TFRecord.

use std::path::PathBuf;

#[cfg(any(feature = "array_record", feature = "bagz"))]
use super::by_number;
#[cfg(feature = "array_record")]
use super::paths;
#[cfg(feature = "tf_record")]
use super::{CacheArg, Lanes, by_number_or_streams, files_of};
#[cfg(feature = "tf_record")]
use crate::dataset::BoxIter;
#[cfg(all(feature = "tf_record", feature = "compress"))]
use crate::dataset::IterDataset;
use crate::dataset::map::{RandomAccess, Source};
use crate::dataset::{BoxMap, MapDataset};
use crate::element::{Buffer, Element, Value};
use crate::error::Result;
use crate::place::Location;
use crate::source::{ExampleParser, Examples};
use crate::spec::arguments::arguments;
use crate::spec::build::Site;
use crate::spec::chain::Chain;
use crate::spec::columns::NamedFn;
use crate::spec::examples::{Declared, DeclaredSequences, RECORD};
#[cfg(feature = "array_record")]
use crate::spec::values::Amount;
use crate::spec::values::Given;

#[cfg(feature = "array_record")]
arguments! {
    pub(super) struct ArrayRecordArgs(paths) with RecordArgs as content {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.array_record`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Memory for decoded chunks, if chunks hold several records.
        cache_bytes: Amount = "256MiB",
        /// Read a file that was cut off up to its last whole chunk. The loss is logged.
        recover: bool = false,
    }
}

#[cfg(feature = "array_record")]
pub(super) fn array_record(args: ArrayRecordArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let options = crate::source::ArrayRecord::options().recover(args.recover).cache_bytes(args.cache_bytes.into());
    let content = args.content.records(at)?;
    by_number(at, || Ok(content.elements(options.open(&paths)?)))
}

#[cfg(feature = "bagz")]
arguments! {
    pub(super) struct BagzArgs(paths) with RecordArgs as content {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.bagz`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Whether the records were dealt out to the files in turn.
        interleaved: bool = false,
        /// Whether records are frames of zstd; by default, the name of the file decides.
        compressed: Option<bool>,
    }
}

#[cfg(feature = "bagz")]
pub(super) fn bagz(args: BagzArgs, at: &Site<'_>) -> Result<Chain> {
    use crate::source::{Bagz, sharded_names};
    let paths = super::paths_by(&args.paths, at, |file: Location| {
        sharded_names(file.as_ref()).into_iter().map(|path| file.beside(|_| path)).collect()
    })?;
    let mut options = Bagz::options().interleaved(args.interleaved);
    if let Some(compressed) = args.compressed {
        options = options.compressed(compressed);
    }
    let content = args.content.records(at)?;
    by_number(at, || Ok(content.elements(options.open(&paths)?)))
}

#[cfg(feature = "tf_record")]
arguments! {
    pub(super) struct TfRecordArgs(paths) with RecordArgs as content {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.tfrecord`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Place of the positions of the records: `beside` the file, `off`, or a folder.
        index_cache: CacheArg = "beside",
        /// How many compressed files are read at a time, one record of each in turn, file `k` in lane `k` modulo `lanes`; it is part of
        /// the data's order. One stream by default.
        lanes: Lanes,
    }
}

#[cfg(feature = "tf_record")]
pub(super) fn tfrecord(args: TfRecordArgs, at: &Site<'_>) -> Result<Chain> {
    use crate::source::{TF_RECORD_BEGINNING, TfRecord, open_plain_by, tf_record_compression};
    let content = args.content.records(at)?;
    let files = files_of("tfrecord", &args.paths, at)?;
    let open =
        |files: &[Location]| open_plain_by(files, TF_RECORD_BEGINNING, |head| tf_record_compression(head).is_some());
    let plain = |contents| {
        let source = TfRecord::options().cache(args.index_cache.of(at)).of(contents)?;
        Ok(content.clone().elements(source))
    };
    by_number_or_streams(&files, &args.lanes, at, open, plain, |files| content.stream(files))
}

arguments! {
    /// Arguments by which records of bytes become elements.
    struct RecordArgs {
        /// The name of the column that has the bytes of a record; `record` by default.
        field: Option<String>,
        /// Parse records as `tf.train.Example`s: `true`, or features as `parse_example` declares them.
        examples: Option<Declared>,
        /// Parse records as `tf.train.SequenceExample`s: `true`, or `context` and `sequences` as `parse_sequence_example` declares
        /// them.
        sequence_examples: Option<DeclaredSequences>,
    }
}

/// Way to read records of bytes.
#[derive(Clone)]
enum Records {
    /// The only field of an element.
    Field(String),
    Parsed(ExampleParser),
}

impl RecordArgs {
    fn records(self, at: &Site<'_>) -> Result<Records> {
        let parsers = (self.examples.and_then(|given| given.0), self.sequence_examples.and_then(|given| given.0));
        match (parsers, self.field) {
            ((Some(_), Some(_)), _) => Err(at.error("`examples` and `sequence_examples` exclude each other")),
            ((None, None), field) => Ok(Records::Field(field.unwrap_or_else(|| RECORD.to_owned()))),
            (_, Some(_)) => Err(at.error("`field` is the name of a record of bytes, and examples have their own")),
            ((Some(parser), None) | (None, Some(parser)), None) => Ok(Records::Parsed(parser)),
        }
    }
}

impl Records {
    fn elements(self, source: impl RandomAccess<Record = Buffer> + 'static) -> BoxMap<Element> {
        match self {
            Self::Field(name) => to_record(&name).after(Source::new(source)).boxed(),
            Self::Parsed(parser) => Source::new(Examples::new(source, parser)).boxed(),
        }
    }

    /// Reads the records of compressed files.
    #[cfg(all(feature = "tf_record", feature = "compress"))]
    fn stream(&self, files: &[Location]) -> Result<BoxIter<Element>> {
        let records = crate::source::TfRecordStream::open(files)?;
        Ok(match self {
            Self::Field(name) => to_record(name).in_order(records).boxed(),
            Self::Parsed(parser) => Examples::new(records, parser.clone()).boxed(),
        })
    }

    #[cfg(all(feature = "tf_record", not(feature = "compress")))]
    #[expect(clippy::unused_self, reason = "streams of other builds need it")]
    fn stream(&self, _: &[Location]) -> Result<BoxIter<Element>> {
        Err(crate::source::Format::TfRecordStream.lacking())
    }
}

/// Bytes as an element with a single field.
fn to_record(field: &str) -> NamedFn<Buffer> {
    let name = field.to_owned();
    let element = move |record: Buffer| Ok(Element::with_capacity(1).with(&name, Value::Bytes(record)));
    NamedFn::map("to_element", field.to_owned(), element)
}
