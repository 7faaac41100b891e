//! Samples of the first elements of a dataset, for their sizes.

use std::any::Any;
use std::time::{Duration, Instant};

use super::INFINITE;
use super::iter::{DatasetIterator, IterDataset};
use super::map::MapDataset;
use super::memory::Sample;
use super::stage::Stage;
use crate::cx::{Cx, Recorder, StageTally};
use crate::element::Element;
use crate::exec::{Executor, Runtime};

/// Time limit for a sample: no element is started later.
const TIME: Duration = Duration::from_secs(1);

/// Counts the elements of a sample and their bytes.
struct Meter {
    elements: u64,
    bytes: u64,
    start: Instant,
}

impl Meter {
    fn start() -> Self {
        Self { elements: 0, bytes: 0, start: Instant::now() }
    }

    fn goes_on(&self) -> bool {
        self.elements < Sample::MOST && self.start.elapsed() < TIME
    }

    /// Adds an element; `None` if its type is not [`Element`].
    fn add<T: 'static>(&mut self, element: &T) -> Option<()> {
        self.bytes += (element as &dyn Any).downcast_ref::<Element>()?.nbytes() as u64;
        self.elements += 1;
        Some(())
    }

    /// Returns the sample; `None` if there was no element to measure.
    fn sample(&self, fan_out: f64, pass: Option<u64>) -> Option<Sample> {
        let &Self { elements, bytes, .. } = self;
        (elements > 0 || pass == Some(0)).then_some(Sample { elements, bytes, fan_out, pass })
    }
}

/// Samples a dataset. Skips elements that cannot be read: the pipeline reports their errors when it runs.
pub(super) fn of_map<D: MapDataset<Item: 'static>>(dataset: &D) -> Option<Sample> {
    let (mut meter, mut cx) = (Meter::start(), Cx::default());
    let mut indices = 0..dataset.len();
    while meter.goes_on()
        && let Some(index) = indices.next()
    {
        if let Ok(Some(element)) = dataset.get(index, &mut cx) {
            meter.add(&element)?;
        }
    }
    meter.sample(1.0, Some(dataset.len()).filter(|&len| len < INFINITE))
}

/// Samples a stream.
pub(super) fn of_stream<D: IterDataset>(dataset: &D) -> Option<Sample> {
    let stage: &dyn Stage = dataset;
    stage.check_all().ok()?;
    let recorder = Recorder::new(stage.count());
    let run = Runtime::new(Executor::Inline, Some(recorder.clone())).ok()?;
    let (mut iter, mut cx) = (dataset.iter(&run).ok()?, run.cx());
    let (mut meter, mut ended) = (Meter::start(), false);
    while meter.goes_on() && !ended {
        match iter.next(&mut cx) {
            Ok(Some(element)) => meter.add(&element)?,
            Ok(None) => ended = true,
            Err(_) => break,
        }
    }
    drop(cx);
    let pass = ended.then_some(meter.elements);
    meter.sample(fan_out(stage, &recorder.totals(), meter.elements), pass)
}

/// Returns the number of output elements per element of the earlier stage with the fewest elements.
fn fan_out(stage: &dyn Stage, totals: &[StageTally], elements: u64) -> f64 {
    let mut fewest = elements;
    let mut parents = stage.parents();
    // In post-order, an only parent comes directly before its stage.
    for tally in totals.iter().rev().skip(1) {
        let [parent] = parents.as_slice() else { break };
        // The `seed` stage of a stream passes elements on without counting them.
        if parent.node().seed_root.is_none() {
            fewest = fewest.min(tally.counts.elements);
        }
        parents = parent.parents();
    }
    elements as f64 / fewest.max(1) as f64
}
