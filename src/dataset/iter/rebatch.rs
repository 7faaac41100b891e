use serde::{Deserialize, Serialize};

use super::DatasetIterator;
use super::batch::check_size;
use super::flow::{Flow, Flowing, Start};
use crate::cx::{Cx, StageId};
use crate::dataset::Remainder;
use crate::dataset::entry::prelude::*;
use crate::dataset::facts::Facts;
use crate::dataset::memory::{Held, Memory};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Role;
use crate::element::{Batch, Element};
use crate::error::{Error, Result};

/// See [`IterDatasetExt::rebatch`](super::IterDatasetExt::rebatch).
pub type IterRebatch<D> = Flowing<D, RebatchFlow>;

/// [`Flow`] of [`IterRebatch`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct RebatchFlow {
    pub(super) size: usize,
    pub(super) remainder: Remainder,
}

impl Facts for RebatchFlow {
    facts! { name: "rebatch", role: Role::Stateful }

    fn params(&self) -> String {
        format!("{}, remainder={}", self.size, self.remainder.as_str())
    }
    /// Returns the memory of two parent batches, which extend beyond the ends of the unfinished batch, and of two
    /// output batches: the views between the ends, and the joined batch.
    fn memory(&self) -> Option<Memory> {
        Some(Memory::elements(Held::AtMost(2), Held::AtMost(2)))
    }
    fn check(&self) -> Result<()> {
        check_size(self.size)
    }
}

impl<I: DatasetIterator<Item = Batch>> Flow<I> for RebatchFlow {
    type Pass = IterRebatchIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        let (size, remainder) = (self.size.max(1), self.remainder);
        Ok(IterRebatchIter { parent, size, remainder, open: None, parts: Vec::new(), part_rows: 0, held: None, stage })
    }
}

/// A pass over [`IterRebatch`].
#[doc(hidden)]
pub struct IterRebatchIter<I: DatasetIterator> {
    parent: I,
    size: usize,
    remainder: Remainder,
    open: Option<Open<I::State>>,
    /// Slices of the unfinished batch, with `part_rows` rows. They stay here after an error of the parent.
    parts: Vec<Element>,
    part_rows: usize,
    /// Position of the first row in `parts`.
    held: Option<RebatchState<I::State>>,
    stage: StageId,
}

/// The parent's batch that is being sliced.
struct Open<S> {
    before: S,
    batch: Element,
    rows: usize,
    next: usize,
}

/// Position of an [`IterRebatchIter`].
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebatchState<S> {
    /// The parent's position before the batch that is being sliced.
    pub parent: S,
    /// Next row of this batch.
    pub row: usize,
}

impl<I: DatasetIterator<Item = Batch>> IterRebatchIter<I> {
    /// Reads the parent's next batch. Returns `false` at the parent's end.
    fn open_next(&mut self, cx: &mut Cx) -> Result<bool> {
        let before = self.parent.state();
        let Some(batch) = self.parent.next(cx)? else { return Ok(false) };
        let rows = match batch.num_rows() {
            Ok(0) => Err(Error::data("cannot rebatch a batch of 0 rows")),
            other => other,
        };
        let rows = rows.map_err(|e| cx.blame(self.stage, "rebatch", e))?;
        self.open = Some(Open { before, batch, rows, next: 0 });
        Ok(true)
    }

    /// Slices off the rows that the unfinished batch still needs, or all remaining rows if fewer.
    fn cut(&mut self, cx: &mut Cx) -> Result<()> {
        if self.held.is_none() {
            self.held = Some(self.position());
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let end = open.rows.min(open.next + (self.size - self.part_rows));
        let part = open.batch.rows(open.next..end).map_err(|e| cx.blame(self.stage, "rebatch", e))?;
        self.part_rows += end - open.next;
        open.next = end;
        if open.next == open.rows {
            self.open = None;
        }
        self.parts.push(part);
        Ok(())
    }

    /// Returns the position of the next row to read.
    fn position(&self) -> RebatchState<I::State> {
        match &self.open {
            Some(open) => RebatchState { parent: open.before.clone(), row: open.next },
            None => RebatchState { parent: self.parent.state(), row: 0 },
        }
    }

    fn close(&mut self, cx: &mut Cx) -> Result<Option<Batch>> {
        let parts = std::mem::take(&mut self.parts);
        (self.part_rows, self.held) = (0, None);
        let batch = match parts.as_slice() {
            [only] => only.clone(),
            several => {
                let joined = cx.timed_exactly(self.stage, || Element::concat_rows(several));
                joined.map_err(|e| cx.blame(self.stage, "rebatch", e))?
            }
        };
        cx.produced(self.stage, 1, batch.nbytes() as u64);
        Ok(Some(batch))
    }
}

impl<I: DatasetIterator<Item = Batch>> DatasetIterator for IterRebatchIter<I> {
    type Item = Batch;
    type State = RebatchState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Batch>> {
        while self.part_rows < self.size {
            if self.open.is_none() && !self.open_next(cx)? {
                if self.remainder == Remainder::Drop {
                    (self.part_rows, self.held) = (0, None);
                    self.parts.clear();
                }
                return if self.parts.is_empty() { Ok(None) } else { self.close(cx) };
            }
            self.cut(cx)?;
        }
        self.close(cx)
    }

    fn state(&self) -> Self::State {
        self.held.clone().unwrap_or_else(|| self.position())
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        (self.open, self.part_rows, self.held) = (None, 0, None);
        self.parts.clear();
        self.parent.restore(state.parent, cx)?;
        if state.row == 0 {
            return Ok(());
        }
        let opened = self.open_next(cx)?;
        match self.open.as_mut().filter(|open| opened && state.row <= open.rows) {
            // States of Grain may be after the last row of a batch.
            Some(open) if open.rows == state.row => {
                self.open = None;
                Ok(())
            }
            Some(open) => {
                open.next = state.row;
                Ok(())
            }
            None => {
                let error = Error::state(format!("the checkpoint is at row {} of a batch that has fewer", state.row));
                Err(cx.blame(self.stage, "rebatch", error))
            }
        }
    }
}

debug_name!(IterRebatchIter<I: DatasetIterator>);

arguments! {
    pub(in crate::dataset) struct RebatchArgs(batch_size) {
        /// Number of rows in a batch.
        pub(in crate::dataset) batch_size: Positive<usize>,
        /// Policy for the last rows if they do not fill a batch: `keep` delivers a smaller batch, `drop` drops the rows.
        pub(in crate::dataset) remainder: Remainder = "keep",
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::iter(
    "rebatch",
    "Regroups the rows of batches into batches of `batch_size` rows. Rows from a single batch are not copied.\n\n\
     ConfigError: `batch_size` is 0.\n\n\
     DataError: Arrays of a batch differ in their number of rows.",
    &Behind(|ds: BoxIter<Element>, RebatchArgs { batch_size, remainder }: RebatchArgs, _| {
        Ok(ds.rebatch(batch_size.0, remainder).boxed())
    }),
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::{IterDataset, IterDatasetExt, laws};
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
    use crate::{Array, ErrorKind, MapDatasetExt};

    /// Returns batches of the given sizes, with rows numbered consecutively.
    fn batches(sizes: &[i64]) -> impl IterDataset<Item = Element> + use<> {
        let starts: Vec<(i64, i64)> = (0..sizes.len()).map(|k| (sizes[..k].iter().sum(), sizes[k])).collect();
        let batch = move |i: i64| {
            let (start, n) = starts[i as usize];
            Element::new().with("x", Array::from_vec((start..start + n).collect()))
        };
        Range::new(0, sizes.len() as i64).map(batch).to_iter()
    }

    fn rows(batches: &[Element]) -> Vec<Vec<i64>> {
        batches.iter().map(|b| b.array("x").unwrap().as_slice::<i64>().unwrap().to_vec()).collect()
    }

    #[test]
    fn cuts_and_joins_at_any_size() {
        for size in 1..9 {
            let all: Vec<i64> = (0..13).collect();
            let keep = batches(&[3, 1, 4, 5]).rebatch(size, Remainder::Keep);
            assert_eq!(rows(&laws::check(&keep)), all.chunks(size).map(<[_]>::to_vec).collect::<Vec<_>>());
            let drop = batches(&[3, 1, 4, 5]).rebatch(size, Remainder::Drop);
            assert_eq!(rows(&laws::check(&drop)), all.chunks_exact(size).map(<[_]>::to_vec).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rebatching_batches_is_batching() {
        let ds = || Range::new(0, 50).map(|x| Element::new().with("x", Array::scalar(x))).to_iter();
        let direct = ds().batch(8).collect().unwrap();
        assert_eq!(laws::check(&ds().batch(3).rebatch(8, Remainder::Keep)), direct);
    }

    #[test]
    fn bad_batches_are_data_errors() {
        let error = batches(&[2, 0, 2]).rebatch(3, Remainder::Keep).collect().unwrap_err();
        assert_eq!(error.to_string(), "stage 3 rebatch: cannot rebatch a batch of 0 rows");
        let scalars = Range::new(0, 5).map(|x| Element::new().with("x", Array::scalar(x))).to_iter();
        let error = scalars.rebatch(3, Remainder::Keep).collect().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert_eq!(batches(&[1]).rebatch(0, Remainder::Keep).collect().unwrap_err().kind(), ErrorKind::Config);
    }

    #[test]
    fn a_row_that_is_not_there_is_a_state_error() {
        let ds = batches(&[2, 2]).rebatch(3, Remainder::Keep);
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let state = RebatchState { row: 3, ..iter.state() };
        assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
    }
}
