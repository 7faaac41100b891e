//! A custom stage, defined outside the crate: keeps every n-th element of a stream and resumes at any position.
//!
//!     cargo run --release --example custom_stage

use gristmill::cx::StageId;
use gristmill::dataset::{Node, Role, map::Range, plan::PlanOf, plan::Planning, stage_after};
use gristmill::prelude::*;
use gristmill::{Cx, Result, Runtime};

struct EveryNth<D> {
    parent: D,
    n: u64,
    stage: StageId,
}

fn every_nth<D: Stage>(n: u64) -> impl FnOnce(D) -> EveryNth<D> {
    move |parent| EveryNth { stage: stage_after(&[&parent]), parent, n }
}

/// Facts for the report, the fingerprint and the errors.
impl<D: Stage> Stage for EveryNth<D> {
    fn node(&self) -> Node<'_> {
        Node { describe: &self.n, ..Node::new("every_nth", Role::Stateful) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D: IterDataset> IterDataset for EveryNth<D> {
    type Item = D::Item;
    type Iter = Pass<D::Iter>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        Ok(Pass { parent: self.parent.iter(run)?, n: self.n, seen: 0, stage: self.stage })
    }

    /// Elements are kept by number alone, so a host can plan the kept elements without evaluating them.
    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        let Some(plan) = planning.of(&self.parent)? else { return Ok(None) };
        plan.through(|parent| Ok(Pass { parent, n: self.n, seen: 0, stage: self.stage }))
    }
}

struct Pass<I> {
    parent: I,
    n: u64,
    seen: u64,
    stage: StageId,
}

impl<I: DatasetIterator> DatasetIterator for Pass<I> {
    type Item = I::Item;
    /// Positions, never elements: the parent's state, and the number of its elements seen.
    type State = (I::State, u64);

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        while let Some(element) = self.parent.next(cx)? {
            self.seen += 1;
            if cx.consumed(self.stage, || self.seen.is_multiple_of(self.n)) {
                cx.produced(self.stage, 1, 0);
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    fn state(&self) -> Self::State {
        (self.parent.state(), self.seen)
    }

    fn restore(&mut self, (parent, seen): Self::State, cx: &mut Cx) -> Result<()> {
        self.seen = seen;
        self.parent.restore(parent, cx)
    }
}

fn main() -> Result<()> {
    let pipeline = || Range::new(0, 30).shuffle(3).to_iter().pipe(every_nth(4));
    let mut loader = pipeline().loader().threads(2).build()?;
    let first: Vec<_> = loader.by_ref().take(3).collect::<Result<_>>()?;
    let rest = pipeline().loader().resume(loader.state()?).build()?;
    println!("{first:?}, then {:?}", rest.collect::<Result<Vec<_>>>()?);
    Ok(())
}
