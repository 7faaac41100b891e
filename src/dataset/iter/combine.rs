//! Stages that combine several streams. [`IterCombined`] makes a stage of an [`IterCombine`].

use std::sync::Arc;

use super::open_lane::OpenLane;
use super::{DatasetIterator, IterDataset};
use crate::cx::StageId;
use crate::dataset::memory::Memory;
use crate::dataset::node::{Describe, Node};
use crate::dataset::plan::{PlanBy, PlanOf, Planning};
use crate::dataset::run::siblings::{Pair, Siblings, offsets};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::Result;
use crate::exec::Runtime;

/// The parents of a stage: a list, two streams of different types, or streams that open when their turn comes.
#[doc(hidden)]
pub trait Parents: Send + Sync {
    /// Type of the passes over all parents.
    type Passes;

    /// Returns the parents, first to last.
    fn stages(&self) -> Vec<&dyn Stage>;

    /// Starts the passes at their beginnings.
    ///
    /// # Errors
    /// Errors of [`IterDataset::iter`].
    fn start(&self, run: &Runtime) -> Result<Self::Passes>;

    /// Returns the memory of the parents that no stage declares; `None` if unknown.
    fn memory(&self) -> Option<Memory> {
        Some(Memory::NOTHING)
    }
}

impl<D: IterDataset> Parents for Vec<D> {
    type Passes = Siblings<D::Iter>;

    fn stages(&self) -> Vec<&dyn Stage> {
        self.iter().map(|parent| parent as &dyn Stage).collect()
    }
    fn start(&self, run: &Runtime) -> Result<Self::Passes> {
        let passes = self.iter().zip(offsets(self));
        let passes = passes.map(|(parent, offset)| Ok((parent.iter(&run.offset(offset))?, offset)));
        passes.collect::<Result<_>>().map(Siblings::of)
    }
}

impl<A: IterDataset, B: IterDataset> Parents for (A, B) {
    type Passes = Pair<A::Iter, B::Iter>;

    fn stages(&self) -> Vec<&dyn Stage> {
        vec![&self.0, &self.1]
    }
    fn start(&self, run: &Runtime) -> Result<Self::Passes> {
        let offset = (&self.0 as &dyn Stage).count();
        Ok(Pair { first: self.0.iter(run)?, second: self.1.iter(&run.offset(offset))?, offset })
    }
}

impl<L: OpenLane> Parents for Arc<L> {
    type Passes = (Self, Runtime);

    fn stages(&self) -> Vec<&dyn Stage> {
        self.nodes()
    }
    fn start(&self, run: &Runtime) -> Result<Self::Passes> {
        if run.is_serving() {
            self.open_all(run)?;
        }
        Ok((self.clone(), run.clone()))
    }
    fn memory(&self) -> Option<Memory> {
        OpenLane::memory(&**self)
    }
}

/// A transformation of several streams: makes a pass over the output from the passes over the parents.
#[doc(hidden)]
pub trait IterCombine<P: Parents>: Send + Sync {
    /// Type of a pass over the output.
    type Pass: DatasetIterator<Item: Send + 'static> + 'static;

    /// Returns the name of the stage: see [`Node::name`].
    fn name(&self) -> &'static str;

    /// Returns the arguments that shape the stream: see [`Describe::params`].
    fn params(&self) -> String;

    /// Returns the names of `count` parents, if the report counts their elements.
    fn components(&self, _count: usize) -> Vec<String> {
        Vec::new()
    }

    /// Checks the arguments for `count` parents: see [`Describe::check`].
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the value and the limit.
    fn check(&self, count: usize) -> Result<()>;

    /// Starts a pass of `run` over started parents. The report counts its work for `stage`.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    fn start(&self, parents: P::Passes, stage: StageId, run: &Runtime) -> Result<Self::Pass>;

    /// Plans the stage from keys: see [`IterDataset::plan`].
    ///
    /// # Errors
    /// As [`start`](Self::start), and errors of opening keys.
    fn plan(&self, _parents: &P, _stage: StageId, _planning: &Planning<'_>) -> Result<Option<PlanBy<Self::Pass>>> {
        Ok(None)
    }
}

/// The elements of several streams `P`, combined by `C`: `mix`, `zip` and `interleave`.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct IterCombined<P, C> {
    parents: P,
    pub(super) combine: C,
    stage: StageId,
}

impl<P: Parents, C> IterCombined<P, C> {
    pub(super) fn new(parents: P, combine: C) -> Self {
        Self { stage: stage_after(&parents.stages()), parents, combine }
    }
}

impl<P: Parents, C: IterCombine<P>> Stage for IterCombined<P, C> {
    fn node(&self) -> Node<'_> {
        let memory = self.parents.memory();
        Node { describe: self, memory, ..Node::new(self.combine.name(), Role::Stateful) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.parents.stages()
    }
}

impl<P: Parents, C: IterCombine<P>> Describe for IterCombined<P, C> {
    fn params(&self) -> String {
        self.combine.params()
    }
    fn components(&self) -> Vec<String> {
        self.combine.components(self.parents.stages().len())
    }
    fn check(&self) -> Result<()> {
        self.combine.check(self.parents.stages().len())
    }
}

impl<P: Parents, C: IterCombine<P>> IterDataset for IterCombined<P, C> {
    type Item = <C::Pass as DatasetIterator>::Item;
    type Iter = C::Pass;

    fn iter(&self, run: &Runtime) -> Result<C::Pass> {
        self.combine.start(self.parents.start(run)?, self.stage, run)
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        self.combine.plan(&self.parents, self.stage, planning)
    }
}
