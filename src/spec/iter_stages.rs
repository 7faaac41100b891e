//! Stages of streams: batches, limits, epochs of a stream.

use super::arguments::{Arguments, arguments, words};
use super::build::{Behind, Site};
use super::chain::Chain;
use super::decode::Fields;
use super::entry::StageEntry;
use super::node::Node;
use super::values::Positive;
use crate::dataset::iter::{BadRecords, ENUMERATE, IterTryMapWithIndex, Padding, Stream};
use crate::dataset::{BoxIter, BoxMap, IterDatasetExt, MapDatasetExt, Remainder};
use crate::element::{Array, Element, Name};
use crate::error::{Error, Result};

pub(super) const STAGES: &[StageEntry] = &[
    StageEntry::both(
        "batch",
        "Stacks consecutive elements into batches. The stage begins the stream, unless `to_iter` follows. Batches before \
         `to_iter` have random access, and cannot be padded.",
        &Behind(map_batch),
        &Behind(batch),
    )
    .at_border(&Behind(stream_batch))
    .starts_stream(),
    StageEntry::iter(
        "rebatch",
        "Regroups the rows of batches into batches of `batch_size` rows. Rows from a single batch are not copied.\n\n\
         ConfigError: `batch_size` is 0.\n\n\
         DataError: Arrays of a batch differ in their number of rows.",
        &Behind(rebatch),
    ),
    StageEntry::chain(
        "skip_bad_records",
        "Skips records that the stages before it cannot use. Directly after random access, it begins the stream.\n\n\
         Skipped records are counted in the report and in the state. The first few are logged. Use the stage directly \
         after a stream of files, or after the last elementwise stage, and before stages that join elements.\n\n\
         DataError: More records than a limit were skipped. The error is raised during the pass.",
        &Behind(skip_bad_records),
    ),
    StageEntry::iter("limit", "Ends after the first `count` elements.\n\n\
         ConfigError: `count` is 0.", &Behind(limit)),
    StageEntry::iter("take", "Ends after the first `count` elements, as `limit` does.\n\n\
         ConfigError: `count` is 0.", &Behind(limit)),
    StageEntry::iter("skip", "Skips the first `count` elements.\n\n\
         The skipped elements are evaluated once in each pass. Before `to_iter_dataset`, the slice `ds[count:]` skips \
         elements at no cost.\n\n\
         ConfigError: `count` is negative.", &Behind(skip)),
    StageEntry::iter(
        "enumerate",
        "Adds the number of each element in the stream as a column.",
        &Behind(enumerate),
    )
    .new_columns(),
    StageEntry::iter(
        "cache",
        "Keeps all elements in memory for the later epochs of a subsequent `repeat`.",
        &Behind(cache),
    ),
    StageEntry::both(
        "repeat",
        "Repeats the dataset for several epochs, or without end. Before `to_iter`, shuffles differ between epochs; after it, \
         all epochs are equal.\n\n\
         A slice of a shuffled dataset has other elements in each epoch: see `split`. A loader logs a warning for such a repeat.\n\n\
         ConfigError: `num_epochs` is 0.",
        &Behind(map_repeat),
        &Behind(repeat),
    ),
];

words!(Remainder { "keep" => Remainder::Keep, "drop" => Remainder::Drop });

/// What becomes of the last elements, which may also be padded.
#[derive(Clone, Copy)]
pub(super) enum RemainderOrPad {
    Left(Remainder),
    Padded,
}

words!(RemainderOrPad {
    "keep" => RemainderOrPad::Left(Remainder::Keep),
    "drop" => RemainderOrPad::Left(Remainder::Drop),
    "pad" => RemainderOrPad::Padded,
});

/// Way in which elements are batched.
enum Batching {
    Stacked(Remainder),
    Masked(Padding),
}

arguments! {
    struct BatchArgs(batch_size) {
        /// Number of elements in a batch.
        batch_size: Positive<usize>,
        /// Value of every number in padding; only with `remainder: pad`. By default, 0.
        pad_value: Option<f64>,
        /// Name of the mask, a column of bools that is true in real rows; only with `remainder: pad`. By default, `batch_mask`.
        mask: Option<String>,
        /// Policy for the last elements if they do not fill a batch: `keep` delivers a smaller batch, `drop` drops the elements, `pad`
        /// fills the batch up to `batch_size`.
        remainder: RemainderOrPad = "keep",
    }
}

fn batching(args: BatchArgs, at: &Site<'_>) -> Result<(usize, Batching)> {
    let BatchArgs { batch_size: Positive(size), pad_value, mask, remainder } = args;
    match remainder {
        RemainderOrPad::Padded => {
            let mut padding = Padding { value: pad_value.unwrap_or(0.0), ..Padding::default() };
            if let Some(mask) = mask {
                padding.mask = Name::new(mask);
            }
            Ok((size, Batching::Masked(padding)))
        }
        RemainderOrPad::Left(_) if pad_value.is_some() || mask.is_some() => {
            Err(at.error("`pad_value` and `mask` belong to `remainder: pad`"))
        }
        RemainderOrPad::Left(remainder) => Ok((size, Batching::Stacked(remainder))),
    }
}

fn batch(ds: BoxIter<Element>, args: BatchArgs, at: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(match batching(args, at)? {
        (size, Batching::Stacked(remainder)) => ds.batch_with(size, remainder).boxed(),
        (size, Batching::Masked(padding)) => ds.batch_masked_with(size, padding).boxed(),
    })
}

/// Directly after the border: stacked by the threads that evaluate the elements.
fn stream_batch(ds: Stream<BoxMap<Element>>, args: BatchArgs, at: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(match batching(args, at)? {
        (size, Batching::Stacked(remainder)) => ds.batch_with(size, remainder).boxed(),
        (size, Batching::Masked(padding)) => ds.batch_masked_with(size, padding).boxed(),
    })
}

arguments! {
    struct RebatchArgs(batch_size) {
        /// Number of rows in a batch.
        batch_size: Positive<usize>,
        /// Policy for the last rows if they do not fill a batch: `keep` delivers a smaller batch, `drop` drops the rows.
        remainder: Remainder = "keep",
    }
}

/// Before `to_iter`: batches of fixed places, stacked on any thread, and never padded.
fn map_batch(ds: BoxMap<Element>, args: RebatchArgs, _: &Site<'_>) -> Result<BoxMap<Element>> {
    Ok(ds.batch_with(args.batch_size.0, args.remainder).boxed())
}

fn rebatch(ds: BoxIter<Element>, args: RebatchArgs, _: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(ds.rebatch(args.batch_size.0, args.remainder).boxed())
}

arguments! {
    struct SkipBadRecordsArgs(limit) {
        /// Maximum number of skipped records. By default, no limit.
        limit: Option<u64>,
        /// Maximum number of consecutive skipped records. By default, no limit.
        consecutive: Option<u64>,
    }
}

/// The policy of the stage `name` for bad records, if it has one.
pub(super) fn bad_records(name: &str, args: &Node) -> Option<BadRecords> {
    let args = (name == "skip_bad_records").then(|| Fields::of(args, &SkipBadRecordsArgs::ABOUT)).and_then(Result::ok);
    let SkipBadRecordsArgs { limit, consecutive } = SkipBadRecordsArgs::read(&args?).ok()?;
    Some(BadRecords::Skip { limit, consecutive })
}

fn skip_bad_records(chain: Chain, args: SkipBadRecordsArgs, _: &Site<'_>) -> Result<Chain> {
    let SkipBadRecordsArgs { limit, consecutive } = args;
    Ok(chain.on_bad_record(BadRecords::Skip { limit, consecutive }))
}

arguments! {
    struct LimitArgs(count) {
        /// Number of elements to keep.
        count: Positive<u64>,
    }
}

fn limit(ds: BoxIter<Element>, LimitArgs { count }: LimitArgs, _: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(ds.limit(count.0).boxed())
}

arguments! {
    struct SkipArgs(count) {
        /// Number of elements to skip; 0 skips none.
        count: u64,
    }
}

fn skip(ds: BoxIter<Element>, SkipArgs { count }: SkipArgs, _: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(ds.skip(count).boxed())
}

arguments! {
    struct EnumerateArgs(column) {
        /// Name of the column for the number.
        column: String,
        /// Number of the first element.
        start: i64 = 0,
    }
}

fn enumerate(ds: BoxIter<Element>, args: EnumerateArgs, _: &Site<'_>) -> Result<BoxIter<Element>> {
    let EnumerateArgs { column, start } = args;
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
    Ok(IterTryMapWithIndex::named(ds, ENUMERATE, params, number).boxed())
}

arguments! {
    struct CacheArgs {}
}

fn cache(ds: BoxIter<Element>, _: CacheArgs, _: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(ds.cache().boxed())
}

arguments! {
    struct RepeatArgs(num_epochs) {
        /// Number of epochs. By default, the dataset is infinite.
        num_epochs: Option<Positive<u64>>,
        /// Whether each epoch has a new random order and new random numbers; only before `to_iter`. If false, each epoch repeats the first.
        reseed_each_epoch: bool = true,
    }
}

arguments! {
    /// Arguments of a stream, which repeats its first epoch.
    struct StreamRepeatArgs(num_epochs) {
        /// Number of epochs. By default, the dataset is infinite.
        num_epochs: Option<Positive<u64>>,
    }
}

fn repeat(ds: BoxIter<Element>, args: StreamRepeatArgs, _: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(ds.repeat(args.num_epochs.map(|count| count.0)).boxed())
}

fn map_repeat(ds: BoxMap<Element>, args: RepeatArgs, _: &Site<'_>) -> Result<BoxMap<Element>> {
    Ok(ds.repeat(args.num_epochs.map(|count| count.0)).reseed_each_epoch(args.reseed_each_epoch).boxed())
}
