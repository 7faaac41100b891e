//! Passes over several parents of a single type, each with the offset of its stage ids.

use crate::cx::Cx;
use crate::dataset::iter::{DatasetIterator, IterDataset};
use crate::dataset::stage::Stage;
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// Returns the first stage id of each parent, relative to the first stage id of the first parent.
pub(in crate::dataset) fn offsets<D: Stage>(parents: &[D]) -> impl Iterator<Item = usize> {
    parents.iter().scan(0, |next, parent| {
        let offset = *next;
        *next += (parent as &dyn Stage).count();
        Some(offset)
    })
}

/// Passes over several parents.
pub(in crate::dataset) struct Siblings<I>(Vec<(I, usize)>);

impl<I: DatasetIterator> Siblings<I> {
    pub(in crate::dataset) fn start<D: IterDataset<Iter = I>>(parents: &[D], run: &Runtime) -> Result<Self> {
        let passes = parents.iter().zip(offsets(parents));
        passes.map(|(parent, offset)| Ok((parent.iter(&run.offset(offset))?, offset))).collect::<Result<_>>().map(Self)
    }

    /// Creates siblings from started passes, each with its first stage id.
    pub(in crate::dataset) fn of(passes: Vec<(I, usize)>) -> Self {
        Self(passes)
    }

    pub(in crate::dataset) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::dataset) fn next(&mut self, k: usize, cx: &mut Cx) -> Result<Option<I::Item>> {
        let (parent, offset) = &mut self.0[k];
        cx.within(*offset, |cx| parent.next(cx))
    }

    pub(in crate::dataset) fn states(&self) -> Vec<I::State> {
        self.0.iter().map(|(parent, _)| parent.state()).collect()
    }

    pub(in crate::dataset) fn restore(&mut self, states: Vec<I::State>, cx: &mut Cx) -> Result<()> {
        self.restore_first(states, self.0.len(), cx)
    }

    /// Restores the parents for which there are states, the first `least` or more. The others stay at their positions.
    pub(in crate::dataset) fn restore_first(&mut self, states: Vec<I::State>, least: usize, cx: &mut Cx) -> Result<()> {
        if !(least..=self.0.len()).contains(&states.len()) {
            let text = format!("the state has {} datasets, but the pipeline has {}", states.len(), self.0.len());
            return Err(Error::state(text));
        }
        for ((parent, offset), state) in self.0.iter_mut().zip(states) {
            cx.within(*offset, |cx| parent.restore(state, cx))?;
        }
        Ok(())
    }

    /// Restores parent `k`.
    pub(in crate::dataset) fn restore_one(&mut self, k: usize, state: I::State, cx: &mut Cx) -> Result<()> {
        let (parent, offset) = &mut self.0[k];
        cx.within(*offset, |cx| parent.restore(state, cx))
    }
}
