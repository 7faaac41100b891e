use std::fmt;

use super::MapDataset;
use super::epochs;
use crate::cx::{Cx, StageId};
use crate::dataset::memory::{Held, Memory};
use crate::dataset::pace::Pace;
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::dataset::{INFINITE, Remainder};
use crate::element::Stack;
use crate::error::{Error, Result};

/// How [`MapDataset::batch`] makes a batch: by [`Stack::stack`].
pub type StackFn<T> = fn(Vec<T>) -> Result<<T as Stack>::Batch>;

/// See [`MapDataset::batch`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Batch<D: MapDataset, F> {
    parent: D,
    size: usize,
    remainder: Remainder,
    make: F,
    nbytes: fn(&[D::Item]) -> usize,
    parent_len: u64,
    len: u64,
    pace: Pace,
    /// Whether it is the crate that makes a batch.
    native: bool,
    stage: StageId,
}

impl<D: MapDataset<Item: Stack>> Batch<D, StackFn<D::Item>> {
    pub(super) fn stacked(parent: D, size: usize, remainder: Remainder) -> Self {
        let nbytes = |items: &[D::Item]| items.iter().map(Stack::nbytes).sum();
        Self { native: true, ..Self::build(parent, size, remainder, D::Item::stack, nbytes) }
    }
}

impl<D: MapDataset, F> Batch<D, F> {
    pub(super) fn new(parent: D, size: usize, remainder: Remainder, make: F) -> Self {
        Self::build(parent, size, remainder, make, |_| 0)
    }

    fn build(parent: D, size: usize, remainder: Remainder, make: F, nbytes: fn(&[D::Item]) -> usize) -> Self {
        let (stage, pace) = (stage_after(&[&parent]), Pace::of(&parent));
        let parent_len = parent.len();
        let len = match (parent_len, size as u64) {
            (_, 0) => 0,
            (INFINITE.., _) => INFINITE,
            (len, size) if remainder == Remainder::Drop => len / size,
            (len, size) => len.div_ceil(size),
        };
        Self { parent, size, remainder, make, nbytes, parent_len, len, pace, native: false, stage }
    }

    /// The elements of batch `index`, or `None` where there is none.
    fn items(&self, index: u64, cx: &mut Cx) -> Result<Option<Vec<D::Item>>> {
        let Some((epoch, k)) = epochs::split(index, self.len) else { return Ok(None) };
        // An epoch has its own last batch: none reaches into the next.
        let size = self.size as u64;
        let start = epochs::join(k, size, 0)?;
        let count = if self.parent_len >= INFINITE { size } else { (self.parent_len - start).min(size) };
        let start = epochs::join(epoch, self.parent_len, start)?;
        // A size that was mistyped costs no memory before its elements exist.
        let mut items = Vec::with_capacity(count.min(1 << 16) as usize);
        let mut rest = start..start.checked_add(count).ok_or_else(|| epochs::too_far(epoch, self.parent_len))?;
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
        Ok(Some(items))
    }
}

#[cold]
fn hole(at: u64) -> Error {
    Error::data(format!("element {at} was dropped below a batch of fixed places")).help(HELP)
}

const HELP: &str = "batch the stream instead, which closes the gaps: `.to_iter().batch(n)`";

impl<D: MapDataset, F> Stage for Batch<D, F> {
    fn name(&self) -> &'static str {
        "batch"
    }
    fn params(&self) -> String {
        format!("{}, remainder={}", self.size, self.remainder.as_str())
    }
    fn role(&self) -> Role {
        Role::Elementwise
    }
    fn is_native(&self) -> bool {
        self.native
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
    fn memory(&self) -> Option<Memory> {
        Some(Memory::elements(Held::AtMost(self.size as u64), Held::AtMost(1)).per_thread())
    }
    fn check(&self) -> Result<()> {
        if self.size == 0 {
            return Err(Error::config("a batch of 0 elements, and it must be 1 or more"));
        }
        if (&self.parent as &dyn Stage).may_drop() {
            return Err(Error::config("batch on a map dataset cannot follow a stage that may drop elements").help(HELP));
        }
        Ok(())
    }
}

impl<D, B, F> MapDataset for Batch<D, F>
where
    D: MapDataset,
    F: Fn(Vec<D::Item>) -> Result<B> + Send + Sync,
{
    type Item = B;

    fn len(&self) -> u64 {
        self.len
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<B>> {
        let Some(items) = self.items(index, cx)? else { return Ok(None) };
        let bytes = (self.nbytes)(&items);
        match cx.timed_exactly(self.stage, || (self.make)(items)) {
            Ok(batch) => {
                cx.produced(self.stage, 1, bytes as u64);
                Ok(Some(batch))
            }
            Err(error) => Err(cx.blame(self.stage, "batch", error)),
        }
    }
}

impl<D: MapDataset + fmt::Debug, F> fmt::Debug for Batch<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("parent", &self.parent).field("size", &self.size).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(ds.params(), "2, remainder=drop");
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
