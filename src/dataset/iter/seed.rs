use super::{IterDataset, PartPassOf};
use crate::dataset::map::Seed;
use crate::dataset::plan::{PlanOf, Planning};
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::Part;

impl<D: IterDataset> IterDataset for Seed<D> {
    type Item = D::Item;
    type Iter = D::Iter;

    fn iter(&self, run: &Runtime) -> Result<D::Iter> {
        self.parent.iter(run)
    }

    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<D>>> {
        self.parent.iter_part(run, part)
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<D>>> {
        self.parent.plan(planning)
    }
}
