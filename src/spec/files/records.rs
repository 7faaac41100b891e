//! Files of records of bytes: ArrayRecord, TFRecord.

#[cfg(any(feature = "array_record", feature = "tf_record"))]
use super::paths;
#[cfg(feature = "tf_record")]
use super::{index_cache, lanes_of, refuse_lanes};
#[cfg(feature = "compress")]
use crate::dataset::IterDataset;
use crate::dataset::map::{RandomAccess, Source};
use crate::dataset::{BoxMap, MapDataset};
use crate::element::{Buffer, Element, Value};
use crate::error::Result;
use crate::spec::chain::{Chain, Context};
use crate::spec::columns::NamedFn;
use crate::spec::decode::Fields;

/// `array_record: {paths: "train-*.array_record", field: record}`: elements of one field of bytes.
#[cfg(feature = "array_record")]
pub(super) fn array_record(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    let mut options = crate::source::ArrayRecord::options();
    if let Some(bytes) = fields.optional("cache_bytes")? {
        options = options.cache_bytes(bytes);
    }
    let source = options.open(&paths)?;
    Ok(Chain::Map(record_elements(source, &fields.or("field", RECORD.to_owned())?)))
}

/// `bagz: {paths: "train@4.bagz", field: record, interleaved: false}`: the same.
#[cfg(feature = "bagz")]
pub(super) fn bagz(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    use crate::source::{Bagz, sharded_names};
    let paths = super::paths_by(fields.required_node("paths")?, context, |path| sharded_names(&path))?;
    let source = Bagz::options().interleaved(fields.or("interleaved", false)?).open(&paths)?;
    Ok(Chain::Map(record_elements(source, &fields.or("field", RECORD.to_owned())?)))
}

/// `tfrecord: {paths: "train-*.tfrecord", field: record}`: the same; compressed files are a stream.
#[cfg(feature = "tf_record")]
pub(super) fn tfrecord(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    #[cfg(feature = "compress")]
    use crate::source::any_compressed;
    use crate::source::{TfRecord, find};
    let files = find(paths(fields.required_node("paths")?, context)?, &TF_RECORD)?;
    let field = fields.or("field", RECORD.to_owned())?;
    #[cfg(feature = "compress")]
    if any_compressed(&files)? {
        let Some(count) = fields.at_least("lanes", 1)? else { return Ok(Chain::Iter(record_stream(&files, &field)?)) };
        return lanes_of(&files, count, |files| record_stream(files, &field));
    }
    refuse_lanes(fields)?;
    let source = TfRecord::options().cache(index_cache(fields, context)?).open(&files)?;
    Ok(Chain::Map(record_elements(source, &field)))
}

/// Endings of TFRecord files.
#[cfg(feature = "tf_record")]
const TF_RECORD: [&str; 4] = [".tfrecord.gz", ".tfrecords.gz", ".tfrecord", ".tfrecords"];

/// Records of compressed files as elements of one field.
#[cfg(all(feature = "tf_record", feature = "compress"))]
fn record_stream(files: &[std::path::PathBuf], field: &str) -> Result<crate::dataset::BoxIter<Element>> {
    Ok(to_record(field).after(crate::source::TfRecordStream::open(files)?).boxed())
}

/// The field that holds a record of bytes, unless it is given another name.
const RECORD: &str = "record";

/// Records of bytes as elements of one field.
fn record_elements(source: impl RandomAccess<Record = Buffer> + 'static, field: &str) -> BoxMap<Element> {
    to_record(field).after(Source::new(source)).boxed()
}

/// Bytes as an element of one field.
fn to_record(field: &str) -> NamedFn<Buffer> {
    let name = field.to_owned();
    let element = move |record: Buffer| Ok(Element::with_capacity(1).with(&name, Value::Bytes(record)));
    NamedFn::map("to_element", field.to_owned(), element)
}
