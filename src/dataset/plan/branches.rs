//! Plans of several parents whose elements come in turn.

use super::{Leaf, Make, Member, PlanOf, PlanPass, Planning};
use crate::cx::Cx;
use crate::dataset::IterDataset;
use crate::dataset::iter::DatasetIterator;
use crate::dataset::run::siblings::offsets;
use crate::error::{Error, Result};
use crate::exec::Failed;

/// Makers of several parents: each makes what passes borders of its own.
pub(in crate::dataset) struct Branches<T>(Vec<Branch<T>>);

struct Branch<T> {
    make: Box<dyn Make<T>>,
    /// The number of the first border behind its own.
    end: u32,
    /// The stage id of its first stage.
    offset: usize,
}

/// The passes of parents, each with the stage id of its first stage, the maker of what they plan, and their leaves.
type Planned<D> =
    (Vec<(PlanPass<StateOf<D>>, usize)>, Branches<<D as IterDataset>::Item>, Vec<Leaf<<D as IterDataset>::Item>>);

type StateOf<D> = <<D as IterDataset>::Iter as DatasetIterator>::State;

impl<T> Branches<T> {
    /// Plans each of `parents`; `None` where one of them cannot be planned, or does not give single elements.
    pub(in crate::dataset) fn plan<D>(parents: &[D], planning: &Planning<'_>) -> Result<Option<Planned<D>>>
    where
        D: IterDataset<Item = T>,
    {
        let (mut passes, mut branches, mut leaves) = (Vec::new(), Vec::new(), Some(Vec::new()));
        for (parent, offset) in parents.iter().zip(offsets(parents)) {
            let planning = planning.offset(offset);
            let plan: Option<PlanOf<D>> = planning.of(parent)?;
            let Some(mut plan) = plan.filter(|plan| plan.single) else {
                planning.refuse(parent, "makes rows of several elements, and those are planned of one stream alone");
                return Ok(None);
            };
            passes.push((plan.pass, offset));
            // Stages behind it know the records of all, or of none.
            leaves = leaves.filter(|_| !plan.leaves.is_empty());
            leaves.iter_mut().for_each(|leaves| leaves.append(&mut plan.leaves));
            branches.push(Branch { make: plan.make, end: planning.next_leaf(), offset });
        }
        Ok(Some((passes, Self(branches), leaves.unwrap_or_default())))
    }

    /// The branch of an element.
    fn at(&self, member: &Member) -> usize {
        self.0.partition_point(|branch| branch.end <= member.leaf)
    }

    fn of(&mut self, recipe: &[Member]) -> Option<&mut Branch<T>> {
        let at = self.at(recipe.first()?);
        self.0.get_mut(at)
    }
}

impl<T> Make<T> for Branches<T> {
    fn expect(&mut self, recipe: &[Member]) {
        if let Some(branch) = self.of(recipe) {
            branch.make.expect(recipe);
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<T>> {
        let Some(Branch { make, offset, .. }) = self.of(recipe) else {
            return Err(missing());
        };
        cx.within(*offset, |cx| make.make(recipe, failed, cx))
    }

    fn sample(&mut self, recipe: &[Member]) -> Result<Option<T>> {
        self.of(recipe).ok_or_else(missing)?.make.sample(recipe)
    }

    fn lens(&self, member: &Member, lens: &mut Vec<u32>) -> Result<()> {
        self.0.get(self.at(member)).ok_or_else(missing)?.make.lens(member, lens)
    }

    fn forget(&mut self) -> Result<()> {
        self.0.iter_mut().try_for_each(|branch| branch.make.forget())
    }
}

#[cold]
fn missing() -> Error {
    Error::state("an element was planned of a parent that is not there")
}
