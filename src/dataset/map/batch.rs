use std::fmt;
use std::ops::Range;

use super::epochs;
use super::{GetStacked, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::entry::prelude::*;
use crate::dataset::iter::rebatch::RebatchArgs;
use crate::dataset::iter::{MakeBatch, Padding, Stream};
use crate::dataset::memory::{Held, Memory};
use crate::dataset::node::{Comes, Describe, Indices, Moves, Node};
use crate::dataset::remainder::RemainderOrPad;
use crate::dataset::run::pace::Pace;
use crate::dataset::run::upcoming::{Record, Upcoming};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::dataset::{INFINITE, Remainder};
use crate::element::{Name, Stack};
use crate::error::{Error, Result};

/// Largest batch that is stacked or allocated at once. A mistyped size thus allocates no memory for elements that do
/// not exist.
const MOST_STACKED: u64 = 1 << 16;

/// Calls [`BulkRead::get_stacked`](super::BulkRead::get_stacked) for a range of indices. Reverts the counts if there is no batch.
pub(in crate::dataset) fn stacked<D>(dataset: &D, range: Range<u64>, cx: &mut Cx) -> GetStacked<D::Item>
where
    D: MapDataset<Item: Stack>,
{
    let count = range.end - range.start;
    if count == 0 || count > MOST_STACKED {
        return None;
    }
    cx.begin_chunk(count);
    let batch = dataset.bulk().and_then(|bulk| bulk.get_stacked(&range.collect::<Vec<_>>(), cx));
    if batch.is_none() {
        cx.undo_chunk();
    }
    // Discards a batch of the wrong length.
    batch.filter(|batch| batch.len as u64 == count)
}

/// Number of upcoming elements announced to the sources at a time.
const PIECE: usize = 1024;

/// See [`MapDatasetExt::batch`](super::MapDatasetExt::batch).
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Batch<D: MapDataset, M> {
    parent: D,
    size: usize,
    remainder: Remainder,
    make: M,
    parent_len: u64,
    len: u64,
    pace: Pace,
    /// Whether the parent may make batches without elements.
    stacks: bool,
    stage: StageId,
}

impl<D: MapDataset, M> Batch<D, M> {
    pub(super) fn new(parent: D, size: usize, remainder: Remainder, make: M) -> Self {
        let (stage, pace, stacks) = (stage_after(&[&parent]), Pace::of(&parent), (&parent as &dyn Stage).stacks());
        let parent_len = parent.len();
        let len = match (parent_len, size as u64) {
            (_, 0) => 0,
            (INFINITE.., _) => INFINITE,
            (len, size) if remainder == Remainder::Drop => len / size,
            (len, size) => len.div_ceil(size),
        };
        Self { parent, size, remainder, make, parent_len, len, pace, stacks, stage }
    }

    /// Returns the element indices of batch `index`; `None` if there is no such batch.
    fn places(&self, index: u64) -> Result<Option<Range<u64>>> {
        let Some((epoch, k)) = epochs::split(index, self.len) else { return Ok(None) };
        // Each epoch has its own last batch. No batch reaches into the next epoch.
        let size = self.size as u64;
        let start = epochs::join(k, size, 0)?;
        let count = if self.parent_len >= INFINITE { size } else { (self.parent_len - start).min(size) };
        let start = epochs::join(epoch, self.parent_len, start)?;
        let end = start.checked_add(count).ok_or_else(|| epochs::too_far(epoch, self.parent_len))?;
        Ok(Some(start..end))
    }

    /// Returns the batch of the parent's element at `index`.
    fn batch_of(&self, index: u64) -> Option<u64> {
        let (epoch, at) = epochs::split(index, self.parent_len)?;
        let k = Some(at.checked_div(self.size as u64)?).filter(|&k| k < self.len)?;
        epochs::join(epoch, self.len, k).ok()
    }

    /// Returns the elements at these indices.
    fn items(&self, mut rest: Range<u64>, cx: &mut Cx) -> Result<Vec<D::Item>> {
        // A mistyped size allocates no memory for elements that do not exist.
        let mut items = Vec::with_capacity((rest.end - rest.start).min(MOST_STACKED) as usize);
        while !rest.is_empty() {
            let chunk = |range, cx: &mut Cx| self.pace.get(&self.parent, range, cx);
            let mut at = rest.start;
            let mut slots = self.pace.chunk(&mut rest, cx, chunk).into_iter();
            while slots.len() > 0 {
                at += slots.run(usize::MAX, &mut items) as u64;
                if let Some(slot) = slots.next() {
                    slot?;
                    return Err(cx.blame(self.stage, "batch", hole(at)));
                }
            }
        }
        Ok(items)
    }
}

#[cold]
fn hole(at: u64) -> Error {
    Error::data(format!("element {at} was dropped before `batch`, whose rows have fixed positions")).help(HELP)
}

const HELP: &str = "batch the stream instead, which closes the gaps: `.to_iter().batch(n)`";

impl<D: MapDataset, M: MakeBatch<D::Item>> Stage for Batch<D, M> {
    fn node(&self) -> Node<'_> {
        let memory = Memory::elements(Held::AtMost(self.size as u64), Held::AtMost(1)).per_thread();
        Node {
            describe: self,
            is_native: self.make.only_stacks(),
            indices: Indices::Moved(self),
            memory: Some(memory),
            ..Node::new("batch", Role::Elementwise)
        }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D: MapDataset, M> Describe for Batch<D, M> {
    fn params(&self) -> String {
        format!("{}, remainder={}", self.size, self.remainder.as_str())
    }
    fn check(&self) -> Result<()> {
        if self.size == 0 {
            return Err(Error::config("the batch size is 0, and must be 1 or more"));
        }
        if (&self.parent as &dyn Stage).may_drop() {
            return Err(Error::config("batch on a map dataset cannot follow a stage that may drop elements").help(HELP));
        }
        Ok(())
    }
}

impl<D: MapDataset, M: MakeBatch<D::Item>> Moves for Batch<D, M> {
    fn looks_ahead(&self, parents: Option<u64>) -> Option<u64> {
        Some(parents?.div_ceil((self.size as u64).max(1)))
    }
    fn will_read(&self, next: Upcoming<'_>) {
        let parent: &dyn Stage = &self.parent;
        for &index in next.indices() {
            let Ok(Some(mut places)) = self.places(index) else { return };
            // In pieces, because batches may be of any size.
            while !places.is_empty() {
                let piece: Vec<u64> = places.by_ref().take(PIECE).collect();
                parent.will_read(next.at(&piece));
            }
        }
    }
    fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        self.batch_of((&self.parent as &dyn Stage).comes_at(record, epoch)?)
    }
    fn comes_to(&self, _: usize, index: u64) -> Comes {
        self.batch_of(index).into()
    }
}

impl<D: MapDataset, M: MakeBatch<D::Item>> MapDataset for Batch<D, M> {
    type Item = M::Batch;

    fn len(&self) -> u64 {
        self.len
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<M::Batch>> {
        let indices = self.places(index).map_err(|error| cx.blame(self.stage, "batch", error))?;
        let Some(indices) = indices else { return Ok(None) };
        if self.stacks
            && let Some(whole) = self.make.of_columns(&self.parent, indices.clone(), self.size, cx)
        {
            cx.produced(self.stage, 1, whole.bytes as u64);
            return Ok(Some(whole.batch));
        }
        let items = self.items(indices, cx)?;
        let bytes = self.make.nbytes(&items);
        match cx.timed_exactly(self.stage, || self.make.make(items, self.size)) {
            Ok(batch) => {
                cx.produced(self.stage, 1, bytes as u64);
                Ok(Some(batch))
            }
            Err(error) => Err(cx.blame(self.stage, "batch", error)),
        }
    }
}

impl<D: MapDataset + fmt::Debug, M> fmt::Debug for Batch<D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("parent", &self.parent).field("size", &self.size).finish_non_exhaustive()
    }
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

pub(in crate::dataset) const ENTRY: StageEntry = StageEntry::both(
    "batch",
    "Stacks consecutive elements into batches. The stage begins the stream, unless `to_iter` follows. Batches before \
     `to_iter` have random access, and cannot be padded.",
    &Behind(|ds: BoxMap<Element>, RebatchArgs { batch_size, remainder }: RebatchArgs, _| {
        Ok(ds.batch_with(batch_size.0, remainder).boxed())
    }),
    &Behind(|ds: BoxIter<Element>, args: BatchArgs, at| {
        Ok(match batching(args, at)? {
            (size, Batching::Stacked(remainder)) => ds.batch_with(size, remainder).boxed(),
            (size, Batching::Masked(padding)) => ds.batch_masked_with(size, padding).boxed(),
        })
    }),
)
.at_border(&Behind(|ds: Stream<BoxMap<Element>>, args: BatchArgs, at| {
    Ok(match batching(args, at)? {
        (size, Batching::Stacked(remainder)) => ds.batch_with(size, remainder).boxed(),
        (size, Batching::Masked(padding)) => ds.batch_masked_with(size, padding).boxed(),
    })
}))
.starts_stream();

/// Way in which elements are batched.
enum Batching {
    Stacked(Remainder),
    Masked(Padding),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::dataset::map::Range;
    use crate::element::{Array, Element};

    fn globals(len: i64) -> impl MapDataset<Item = u64> {
        Range::new(0, len).map_with_index(|i, _| i.global)
    }

    #[test]
    fn every_epoch_has_its_own_last_batch() {
        let ds = globals(5).batch(2);
        assert_eq!(ds.len(), 3);
        let mut cx = Cx::default();
        let seen: Vec<Vec<u64>> = (0..7).map(|i| ds.get(i, &mut cx).unwrap().unwrap()).collect();
        assert_eq!(seen, [vec![0, 1], vec![2, 3], vec![4], vec![5, 6], vec![7, 8], vec![9], vec![10, 11]]);
        let ds = globals(5).batch_with(2, Remainder::Drop);
        let seen: Vec<Vec<u64>> = (0..5).map(|i| ds.get(i, &mut cx).unwrap().unwrap()).collect();
        assert_eq!(seen, [[0, 1], [2, 3], [5, 6], [7, 8], [10, 11]]);
        assert_eq!(ds.node().describe.params(), "2, remainder=drop");
    }

    #[test]
    fn lengths_at_the_edges() {
        assert_eq!(globals(0).batch(2).len(), 0);
        assert_eq!(globals(1).batch_with(2, Remainder::Drop).get(0, &mut Cx::default()).unwrap(), None);
        assert_eq!(globals(1).batch(usize::MAX).collect().unwrap(), [[0]]);
        let forever = globals(3).repeat(None).batch_with(2, Remainder::Drop);
        assert_eq!(forever.len(), INFINITE);
        assert_eq!(forever.get(4, &mut Cx::default()).unwrap(), Some(vec![8, 9]));
        assert_eq!(forever.get(INFINITE - 1, &mut Cx::default()).unwrap().map(|b| b.len()), Some(2));
        assert!(globals(3).repeat(None).batch_with(3, Remainder::Drop).get(INFINITE - 1, &mut Cx::default()).is_err());
        let past = globals(5).batch(2).get(u64::MAX, &mut Cx::default()).unwrap_err();
        assert_eq!(past.stage_name(), Some("2 batch"));
    }

    #[test]
    fn elements_are_stacked_and_what_cannot_be_is_an_error() {
        let element = |x| Element::new().with("x", Array::from_vec(vec![x as i32; x as usize % 3]));
        let ds = Range::new(0, 9).slice_step(1.., 3).map(element).batch(2);
        let batch = ds.get(0, &mut Cx::default()).unwrap().unwrap();
        assert_eq!(batch.array("x").unwrap().as_slice::<i32>().unwrap(), [1, 4]);
        let error = Range::new(0, 9).map(element).batch(2).get(0, &mut Cx::default()).unwrap_err();
        assert_eq!(error.stage_name(), Some("2 batch"));
        let sums = Range::new(0, 5).batch_with_fn(2, Remainder::Keep, |items| Ok(items.iter().sum::<i64>()));
        assert_eq!(sums.collect().unwrap(), [1, 5, 4]);
    }

    #[test]
    fn what_may_drop_is_refused() {
        assert!(globals(4).batch(0).check().is_err());
        let filtered = globals(4).filter(|x| x % 2 == 0).map(|x| x).batch(2);
        let error = filtered.check().unwrap_err();
        assert_eq!(error.message(), "batch on a map dataset cannot follow a stage that may drop elements");
        assert!(error.help_text().unwrap().contains("to_iter"));
        assert!(filtered.get(0, &mut Cx::default()).is_err());
        assert!(globals(4).flat_map(2, |x| [x]).batch(2).check().is_err());
        assert!(globals(4).batch(2).batch(2).check().is_ok());
    }
}
