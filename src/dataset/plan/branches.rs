//! Plans of several parents whose elements are interleaved.

use super::{Chain, Make, Member, PlanOf, PlanPass, Planning};
use crate::cx::{Cx, ElementId};
use crate::dataset::IterDataset;
use crate::dataset::iter::DatasetIterator;
use crate::dataset::run::siblings::offsets;
use crate::element::Name;
use crate::error::{Error, Result};
use crate::exec::Failed;

/// The makers of several parents. Each makes the elements that pass its parent's borders.
pub(in crate::dataset) struct Branches<T> {
    branches: Vec<Branch<T>>,
    /// The number of lengths that later stages request. The stage itself may have requested another.
    width: usize,
}

struct Branch<T> {
    make: Box<dyn Make<T>>,
    /// The number of the first border after the borders of the branch.
    end: u32,
    /// The stage id of its first stage.
    offset: usize,
}

/// The pass of each parent with the stage id of its first stage, the makers, and the chains of all parents.
type Planned<D> =
    (Vec<(PlanPass<StateOf<D>>, usize)>, Branches<<D as IterDataset>::Item>, Vec<Chain<<D as IterDataset>::Item>>);

type StateOf<D> = <<D as IterDataset>::Iter as DatasetIterator>::State;

impl<T> Branches<T> {
    /// Plans each of `parents`. Returns `None` if a parent has no plan, or plans rows of several elements.
    ///
    /// Stand-ins also have the length of the array `also`.
    pub(in crate::dataset) fn plan<D>(
        parents: &[D],
        planning: &Planning<'_>,
        also: Option<&str>,
    ) -> Result<Option<Planned<D>>>
    where
        D: IterDataset<Item = T>,
    {
        let width = planning.names.len();
        let also = also.filter(|also| planning.names.iter().all(|name| name.as_str() != *also));
        let names: Vec<Name> = planning.names.iter().cloned().chain(also.map(Name::new)).collect();
        let planning = planning.asking(&names);
        let (mut passes, mut branches, mut chains) = (Vec::new(), Vec::new(), Some(Vec::new()));
        for (parent, offset) in parents.iter().zip(offsets(parents)) {
            let planning = planning.offset(offset);
            let plan: Option<PlanOf<D>> = planning.of(parent)?;
            let Some(mut plan) = plan.filter(|plan| plan.single) else {
                planning
                    .refuse(parent, "makes rows of several elements, which can be planned for a single stream only");
                return Ok(None);
            };
            passes.push((plan.pass, offset));
            // Later stages need the chains of all parents. If a parent has none, the result is empty.
            chains = chains.filter(|_| !plan.chains.is_empty());
            chains.iter_mut().for_each(|chains| chains.append(&mut plan.chains));
            branches.push(Branch { make: plan.make, end: planning.next_border(), offset });
        }
        Ok(Some((passes, Self { branches, width }, chains.unwrap_or_default())))
    }

    /// Returns the branch that makes an element.
    fn at(&self, id: ElementId) -> usize {
        self.branches.partition_point(|branch| branch.end <= id.border)
    }

    fn of(&mut self, recipe: &[Member]) -> Option<&mut Branch<T>> {
        let at = self.at(recipe.first()?.id);
        self.branches.get_mut(at)
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

    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        let before = lens.len();
        self.branches.get(self.at(id)).ok_or_else(missing)?.make.lens(id, lens)?;
        lens.truncate(before + self.width);
        Ok(())
    }

    fn forget(&mut self) -> Result<()> {
        self.branches.iter_mut().try_for_each(|branch| branch.make.forget())
    }
}

#[cold]
fn missing() -> Error {
    Error::state("an element was planned for a parent that does not exist")
}
