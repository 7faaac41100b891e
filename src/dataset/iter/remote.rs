//! A border whose elements are evaluated in worker processes: its end in the parent, and its end in a worker.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::evaluate::{self, Chunk, Evaluator, Incoming, Outgoing, Wanted, channel, evaluate};
use crate::cx::StageId;
use crate::dataset::map::MapDataset;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Runtime;
use crate::exec::remote::{Border, Deliver, Evaluated, Part, Remote, Serve, Served};
use crate::workers::wire::{ChunkWriter, Crossing, crossing, read_with};

/// In the parent: elements come from `workers`.
pub(super) fn on_workers<T: Send + 'static, W: Send + 'static>(
    run: &Runtime,
    workers: &Arc<dyn Remote>,
    stage: StageId,
) -> Box<dyn Evaluator<T, W>> {
    match crossing::<T>() {
        Some(crossing) => Box::new(OnWorkers { workers: workers.clone(), border: run.border(stage), crossing }),
        None => Box::new(Stuck { what: std::any::type_name::<T>() }),
    }
}

/// In a worker: how elements of `dataset` are evaluated is told to those who serve the parent.
pub(super) fn serve<D>(dataset: &Arc<D>, run: &Runtime, served: &Served, stage: StageId)
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    if let Some(crossing) = crossing::<D::Item>() {
        served.add(run.border(stage), Arc::new(Prefix { dataset: dataset.clone(), run: run.clone(), crossing }));
    }
}

struct OnWorkers<T> {
    workers: Arc<dyn Remote>,
    border: Border,
    crossing: Crossing<T>,
}

impl<T: Send + 'static, W: Send + 'static> Evaluator<T, W> for OnWorkers<T> {
    fn window(&self) -> usize {
        self.workers.window()
    }

    fn gathers(&self) -> bool {
        false
    }

    fn submit(&self, Wanted { range, .. }: Wanted) -> Incoming<T, W> {
        let (outgoing, incoming) = channel();
        self.workers.submit(self.border, range, Box::new(Decode { outgoing, crossing: self.crossing }));
        incoming
    }
}

/// Makes elements of what lies in shared memory.
struct Decode<T, W> {
    outgoing: Outgoing<T, W>,
    crossing: Crossing<T>,
}

impl<T: Send + 'static, W: Send + 'static> Deliver for Decode<T, W> {
    fn wanted(&self) -> bool {
        self.outgoing.is_wanted()
    }

    fn part(&mut self, part: &Part) -> Result<()> {
        let slots = read_with(&part.bytes, part.used, self.crossing)?;
        if slots.len() as u64 != part.slots {
            return Err(Error::data(format!("{} slots where {} were announced", slots.len(), part.slots)));
        }
        let _ = self.outgoing.chunks.send(Ok(Chunk { parts: vec![evaluate::Part::Slots(slots)], took: part.took }));
        Ok(())
    }

    fn skip(&mut self) {
        let _ = self
            .outgoing
            .chunks
            .send(Ok(Chunk { parts: vec![evaluate::Part::Slots(vec![Ok(None)])], took: Duration::ZERO }));
    }

    fn fail(&mut self, error: Error) {
        let _ = self.outgoing.chunks.send(Err(error));
    }
}

/// Elements that cannot leave a worker.
struct Stuck {
    what: &'static str,
}

impl<T: Send + 'static, W: Send + 'static> Evaluator<T, W> for Stuck {
    fn window(&self) -> usize {
        1
    }

    fn gathers(&self) -> bool {
        false
    }

    fn submit(&self, _: Wanted) -> Incoming<T, W> {
        let (outgoing, incoming) = channel();
        let error = Error::new(ErrorKind::Config, format!("elements of type {} cannot leave a worker process", self.what))
            .help("make an `Element` of each before `to_iter` (numbers, text, lists and pairs of them travel too), or use threads");
        let _ = outgoing.chunks.send(Err(error));
        incoming
    }
}

/// The elementwise prefix of a border, in a worker.
struct Prefix<D: MapDataset> {
    dataset: Arc<D>,
    run: Runtime,
    crossing: Crossing<D::Item>,
}

impl<D: MapDataset> Serve for Prefix<D> {
    fn evaluate(&self, range: Range<u64>, extent: &mut [u8]) -> Result<Evaluated> {
        if range.end > self.dataset.len() {
            return Err(Error::new(
                ErrorKind::Worker,
                format!("indices {range:?} of a dataset of {}", self.dataset.len()),
            ));
        }
        let mut cx = self.run.cx_ahead();
        let (mut writer, mut need) = (ChunkWriter::new(extent), None);
        for index in range {
            let slot = evaluate(&*self.dataset, index, &mut cx);
            if let Err(full) = writer.push_with(&slot, self.crossing) {
                need = Some(full.need);
                break;
            }
        }
        let written = writer.finish();
        Ok(Evaluated { slots: written.slots, used: written.used, need })
    }
}

impl<D: MapDataset> fmt::Debug for Prefix<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefix").field("len", &self.dataset.len()).finish_non_exhaustive()
    }
}
