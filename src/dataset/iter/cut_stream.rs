//! The cut of a stream: workers evaluate the functions before it, and this process evaluates the later functions.

use super::{IterDataset, PartPassOf};
use crate::dataset::node::Node;
use crate::dataset::plan::{PlanOf, Planning};
use crate::dataset::stage::Stage;
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::Part;

/// A stream that ends with the last stage in workers. The process that reads the stream applies later functions.
pub(crate) struct CutStream<D>(D);

impl<D> CutStream<D> {
    pub(crate) fn new(front: D) -> Self {
        Self(front)
    }
}

impl<D: Stage> Stage for CutStream<D> {
    fn node(&self) -> Node<'_> {
        Node { is_cut: true, ..self.0.node() }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.0.parents()
    }
}

impl<D: IterDataset> IterDataset for CutStream<D> {
    type Item = D::Item;
    type Iter = D::Iter;

    fn iter(&self, run: &Runtime) -> Result<D::Iter> {
        self.0.iter(run)
    }

    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>> {
        self.0.iter_part(run, part)
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        self.0.plan(planning)
    }
}
