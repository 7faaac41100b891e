//! Stages of streams: batches, limits, epochs of a stream.

use super::chain::{Chain, Context};
use super::decode::Fields;
use super::entry::StageEntry;
use crate::dataset::iter::{BadRecords, ENUMERATE, IterMapWithIndex, Padding, Stream};
use crate::dataset::{BoxIter, BoxMap, IterDataset, MapDataset, Remainder};
use crate::element::{Array, Element, Name};
use crate::error::{Error, Result};

pub(super) const STAGES: &[StageEntry] = &[
    StageEntry::both("batch", Some("batch_size"), map_batch, batch).at_border(stream_batch).starts_stream(),
    StageEntry::iter("rebatch", Some("batch_size"), rebatch),
    StageEntry::chain("skip_bad_records", Some("limit"), skip_bad_records),
    StageEntry::iter("limit", Some("count"), limit),
    StageEntry::iter("take", Some("count"), limit),
    StageEntry::iter("skip", Some("count"), skip),
    StageEntry::iter("enumerate", Some("column"), enumerate).new_columns(),
    StageEntry::iter("cache", None, cache),
    StageEntry::both("repeat", Some("num_epochs"), map_repeat, repeat),
];

const REMAINDERS: &[&str] = &["keep", "drop", "pad"];

/// How elements are batched.
enum Batching {
    Stacked(Remainder),
    Masked(Padding),
}

/// `batch: {batch_size: 8, remainder: drop}`; `remainder: pad` adds a mask.
fn batching(fields: &Fields<'_>) -> Result<(usize, Batching)> {
    let size = fields.required("batch_size")?;
    let (value, mask) = (fields.optional("pad_value")?, fields.optional::<String>("mask")?);
    let Some(remainder) = remainder_or_pad(fields)? else {
        let mut padding = Padding { value: value.unwrap_or(0.0), ..Padding::default() };
        if let Some(mask) = mask {
            padding.mask = Name::new(mask);
        }
        return Ok((size, Batching::Masked(padding)));
    };
    if value.is_some() || mask.is_some() {
        return Err(fields.error("`pad_value` and `mask` belong to `remainder: pad`"));
    }
    Ok((size, Batching::Stacked(remainder)))
}

fn batch(ds: BoxIter<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    Ok(match batching(fields)? {
        (size, Batching::Stacked(remainder)) => ds.batch_with(size, remainder).boxed(),
        (size, Batching::Masked(padding)) => ds.batch_masked_with(size, padding).boxed(),
    })
}

/// Straight behind the border: stacked where the elements are evaluated.
fn stream_batch(ds: Stream<BoxMap<Element>>, fields: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    Ok(match batching(fields)? {
        (size, Batching::Stacked(remainder)) => ds.batch_with(size, remainder).boxed(),
        (size, Batching::Masked(padding)) => ds.batch_masked_with(size, padding).boxed(),
    })
}

/// Before `to_iter`: batches of fixed places, stacked on any thread.
fn map_batch(ds: BoxMap<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxMap<Element>> {
    let size = fields.required("batch_size")?;
    Ok(ds.batch_with(size, remainder(fields)?).boxed())
}

fn rebatch(ds: BoxIter<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    let size = fields.required("batch_size")?;
    Ok(ds.rebatch(size, remainder(fields)?).boxed())
}

fn remainder(fields: &Fields<'_>) -> Result<Remainder> {
    Ok(kept(fields.choice("remainder", &REMAINDERS[..2])?))
}

/// `None` for `remainder: pad`.
pub(super) fn remainder_or_pad(fields: &Fields<'_>) -> Result<Option<Remainder>> {
    let choice = fields.choice("remainder", REMAINDERS)?;
    Ok((choice != Some(2)).then(|| kept(choice)))
}

fn kept(choice: Option<usize>) -> Remainder {
    if choice == Some(1) { Remainder::Drop } else { Remainder::Keep }
}

/// `skip_bad_records: {limit: 100, consecutive: 10}`.
fn skip_bad_records(chain: Chain, fields: &Fields<'_>, _: &Context) -> Result<Chain> {
    let (limit, consecutive) = (fields.optional("limit")?, fields.optional("consecutive")?);
    Ok(chain.on_bad_record(BadRecords::Skip { limit, consecutive }))
}

fn limit(ds: BoxIter<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    Ok(ds.limit(fields.required("count")?).boxed())
}

fn skip(ds: BoxIter<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    Ok(ds.skip(fields.required("count")?).boxed())
}

/// `enumerate: {column: index, start: 1}`: each element's number in this stream, as a column of its own.
fn enumerate(ds: BoxIter<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    let (column, start) = (fields.required::<String>("column")?, fields.or("start", 0_i64)?);
    let params = format!("start={start}, column={column}");
    let column = Name::new(column);
    let number = move |index: u64, element: Element| {
        if element.get(&column).is_some() {
            return Err(
                Error::data(format!("there is a column `{column}` already")).help("give the number another name")
            );
        }
        Ok(element.with(column.clone(), Array::scalar(start.wrapping_add_unsigned(index))))
    };
    Ok(IterMapWithIndex::named(ds, ENUMERATE, params, number).boxed())
}

fn cache(ds: BoxIter<Element>, _: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    Ok(ds.cache().boxed())
}

/// `repeat: {num_epochs: 2}`; without a number, for ever. A stream gives the same epoch again.
fn repeat(ds: BoxIter<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    Ok(ds.repeat(fields.optional::<u64>("num_epochs")?).boxed())
}

fn map_repeat(ds: BoxMap<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxMap<Element>> {
    let epochs = fields.optional::<u64>("num_epochs")?;
    Ok(ds.repeat(epochs).reseed_each_epoch(fields.or("reseed_each_epoch", true)?).boxed())
}
