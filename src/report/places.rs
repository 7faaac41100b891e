//! Tests of the place that a report gives for each stage.

use super::{Place, Report};
use crate::cx::{Cx, StageId};
use crate::dataset::iter::Cut;
use crate::dataset::map::Range;
use crate::dataset::{Node, Role, Stage, stage_after};
use crate::{Executor, Load, MapDataset, MapDatasetExt, Result, Runtime};

/// A stage that keeps a core busy for `us` microseconds and runs in either part of a cut prefix, as Python's stages do.
struct Slow<D> {
    parent: D,
    us: u64,
    stage: StageId,
}

impl<D: MapDataset> Slow<D> {
    fn new(parent: D, us: u64) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, us, stage }
    }
}

impl<D: MapDataset> Stage for Slow<D> {
    fn node(&self) -> Node<'_> {
        Node::new("map", Role::Elementwise)
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D: MapDataset> MapDataset for Slow<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let element = self.parent.get(index, cx)?;
        let work = || {
            let start = std::time::Instant::now();
            while start.elapsed().as_micros() < u128::from(self.us) {
                std::hint::spin_loop();
            }
        };
        cx.timed(self.stage, work);
        Ok(element)
    }

    fn for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<Self>> {
        Some(self.parent.for_pass(run, border)?.map(|parent| Self { parent, ..*self }))
    }
}

/// Returns the report of a pipeline whose prefix is cut after its first map. The map after the cut takes most of the time.
fn report(executor: Executor) -> Report {
    let ds = Slow::new(Cut::new(Slow::new(Range::new(0, 400), 20)), 300).to_iter().batch(4);
    let mut loader = ds.loader().executor(executor).build().unwrap();
    assert_eq!(loader.by_ref().collect::<Result<Vec<_>>>().unwrap().len(), 100);
    loader.report()
}

#[test]
fn what_is_behind_a_cut_runs_where_the_stream_is_read() {
    for (executor, ahead, behind) in
        [(Executor::Threads(2), Place::Threads, Place::Suffix), (Executor::Inline, Place::Consumer, Place::Consumer)]
    {
        let report = report(executor);
        let places: Vec<_> = report.stages.iter().map(|stage| (stage.name.as_str(), stage.place)).collect();
        assert_eq!(places[..3], [("range", ahead), ("map", ahead), ("map", behind)], "{report}");
    }
}

/// More threads would not speed up such a stage: see the scenes of a stage after `mp_prefetch`.
#[test]
fn a_stage_is_behind_the_executor_if_it_is_behind_a_cut() {
    for executor in [Executor::Threads(2), Executor::Inline] {
        let report = report(executor);
        let behind: Vec<_> = report.stages.iter().map(|stage| stage.traits.is_behind).collect();
        assert_eq!(behind[..3], [false, false, true], "{report}");
    }
}
