//! Files of records of bytes: ArrayRecord, TFRecord.

#[cfg(any(feature = "array_record", feature = "tf_record"))]
use super::paths;
#[cfg(any(feature = "array_record", feature = "bagz"))]
use super::unopened_map;
#[cfg(feature = "tf_record")]
use super::{found, index_cache, is_packed, refuse_lanes, unopened};
#[cfg(feature = "compress")]
use crate::dataset::IterDataset;
use crate::dataset::map::{RandomAccess, Source};
use crate::dataset::{BoxMap, MapDataset};
use crate::element::{Buffer, Element, Value};
use crate::error::Result;
use crate::source::{ExampleParser, Examples};
use crate::spec::chain::{Chain, Context};
use crate::spec::columns::NamedFn;
use crate::spec::decode::Fields;
use crate::spec::examples::{RECORD, parser};

/// `array_record: {paths: "train-*.array_record", field: record}`: elements of one field of bytes, or of examples.
#[cfg(feature = "array_record")]
pub(super) fn array_record(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    let mut options = crate::source::ArrayRecord::options();
    if let Some(bytes) = fields.optional("cache_bytes")? {
        options = options.cache_bytes(bytes);
    }
    options = options.recover(fields.or("recover", false)?);
    let content = Records::of(fields)?;
    if context.is_draft {
        return Ok(Chain::Map(unopened_map()));
    }
    Ok(Chain::Map(content.elements(options.open(&paths)?)))
}

/// `bagz: {paths: "train@4.bagz", field: record, interleaved: false, compressed: true}`: the same.
#[cfg(feature = "bagz")]
pub(super) fn bagz(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    use crate::source::{Bagz, sharded_names};
    let paths = super::paths_by(fields.required_node("paths")?, context, |path| sharded_names(&path))?;
    let mut options = Bagz::options().interleaved(fields.or("interleaved", false)?);
    if let Some(compressed) = fields.optional("compressed")? {
        options = options.compressed(compressed);
    }
    let content = Records::of(fields)?;
    if context.is_draft {
        return Ok(Chain::Map(unopened_map()));
    }
    Ok(Chain::Map(content.elements(options.open(&paths)?)))
}

/// `tfrecord: {paths: "train-*.tfrecord", field: record}`: the same; compressed files are a stream.
#[cfg(feature = "tf_record")]
pub(super) fn tfrecord(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    use crate::source::{TF_RECORD_BEGINNING, TfRecord, open_plain_by, tf_record_compression};
    let files = found(paths(fields.required_node("paths")?, context)?, &TF_RECORD, context)?;
    let (content, cache) = (Records::of(fields)?, index_cache(fields, context)?);
    if context.is_draft {
        return unopened(fields, is_packed(&files));
    }
    let is_packed = |head: &[u8]| tf_record_compression(head).is_some();
    let Some(contents) = open_plain_by(&files, TF_RECORD_BEGINNING, is_packed)? else {
        return packed(fields, &files, &content);
    };
    refuse_lanes(fields)?;
    let source = TfRecord::options().cache(cache).of(contents)?;
    Ok(Chain::Map(content.elements(source)))
}

#[cfg(all(feature = "tf_record", feature = "compress"))]
fn packed(fields: &Fields<'_>, files: &[std::path::PathBuf], content: &Records) -> Result<Chain> {
    let Some(count) = fields.at_least("lanes", 1)? else { return Ok(Chain::Iter(content.stream(files)?)) };
    super::lanes_of(files, count, |files| content.stream(files))
}

#[cfg(all(feature = "tf_record", not(feature = "compress")))]
fn packed(_: &Fields<'_>, _: &[std::path::PathBuf], _: &Records) -> Result<Chain> {
    Err(crate::source::Format::TfRecordStream.lacking())
}

/// Endings of TFRecord files, compressed or not.
#[cfg(feature = "tf_record")]
const TF_RECORD: [&str; 6] =
    [".tfrecord.gz", ".tfrecords.gz", ".tfrecord.zlib", ".tfrecords.zlib", ".tfrecord", ".tfrecords"];

/// What becomes of records of bytes.
enum Records {
    /// The one field of an element.
    Field(String),
    Parsed(ExampleParser),
}

impl Records {
    fn of(fields: &Fields<'_>) -> Result<Self> {
        let field = fields.optional("field")?;
        match (parser(fields)?, field) {
            (Some(_), Some(_)) => {
                Err(fields.error("`field` is the name of a record of bytes, and examples have their own"))
            }
            (Some(parser), None) => Ok(Self::Parsed(parser)),
            (None, field) => Ok(Self::Field(field.unwrap_or_else(|| RECORD.to_owned()))),
        }
    }

    fn elements(self, source: impl RandomAccess<Record = Buffer> + 'static) -> BoxMap<Element> {
        match self {
            Self::Field(name) => to_record(&name).after(Source::new(source)).boxed(),
            Self::Parsed(parser) => Source::new(Examples::new(source, parser)).boxed(),
        }
    }

    /// Those of compressed files.
    #[cfg(all(feature = "tf_record", feature = "compress"))]
    fn stream(&self, files: &[std::path::PathBuf]) -> Result<crate::dataset::BoxIter<Element>> {
        let records = crate::source::TfRecordStream::open(files)?;
        Ok(match self {
            Self::Field(name) => to_record(name).after(records).boxed(),
            Self::Parsed(parser) => Examples::new(records, parser.clone()).boxed(),
        })
    }
}

/// Bytes as an element of one field.
fn to_record(field: &str) -> NamedFn<Buffer> {
    let name = field.to_owned();
    let element = move |record: Buffer| Ok(Element::with_capacity(1).with(&name, Value::Bytes(record)));
    NamedFn::map("to_element", field.to_owned(), element)
}
