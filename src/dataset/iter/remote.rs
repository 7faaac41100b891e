//! A border whose elements are evaluated in worker processes: its end in the parent, and its end in a worker.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::evaluate::{self, Aim, Chunk, Evaluator, Incoming, Outgoing, Slot, Wanted, channel, evaluate};
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
        let (dataset, run, unfit) = (dataset.clone(), run.clone(), Mutex::default());
        served.add(run.border(stage), Arc::new(Prefix { dataset, run, crossing, unfit }));
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

    fn aim(&self) -> Aim {
        // Somewhat less than a part, or each would leave a slot or two for another. It takes longer than between threads
        // to hand one over: several wake-ups, and messages between processes.
        Aim { time: Duration::from_millis(5), slots: 1 << 14, bytes: self.workers.part_bytes() / 8 * 7 }
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
        let (parts, bytes) = (vec![evaluate::Part::Slots(slots)], part.used);
        let _ = self.outgoing.chunks.send(Ok(Chunk { parts, took: part.took, bytes }));
        Ok(())
    }

    fn skip(&mut self) {
        let parts = vec![evaluate::Part::Slots(vec![Ok(None)])];
        let _ = self.outgoing.chunks.send(Ok(Chunk { parts, took: Duration::ZERO, bytes: 0 }));
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

    fn aim(&self) -> Aim {
        Aim { time: Duration::ZERO, slots: 1, bytes: 0 }
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
    unfit: Mutex<Unfit<D::Item>>,
}

/// Slots that did not fit where they should go, by index: they are asked for next, most likely here.
type Unfit<T> = VecDeque<(u64, Slot<T>)>;

/// So many are kept, and none of more bytes: a worker's memory is needed for other things.
const MOST_UNFIT: usize = 4;
const LARGEST_UNFIT: usize = 2 << 20;

impl<D: MapDataset> Prefix<D> {
    fn unfit(&self) -> MutexGuard<'_, Unfit<D::Item>> {
        self.unfit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_unfit(&self, index: u64) -> Option<Slot<D::Item>> {
        let mut unfit = self.unfit();
        let at = unfit.iter().position(|(kept, _)| *kept == index)?;
        Some(unfit.swap_remove_back(at)?.1)
    }

    fn keep_unfit(&self, index: u64, slot: Slot<D::Item>, bytes: usize) {
        if bytes > LARGEST_UNFIT {
            return;
        }
        let mut unfit = self.unfit();
        // One that is still there after so many others is wanted elsewhere, or not at all.
        let old = if unfit.len() < MOST_UNFIT { None } else { unfit.pop_front() };
        unfit.push_back((index, slot));
        drop(unfit);
        drop(old);
    }
}

impl<D: MapDataset> Serve for Prefix<D>
where
    D::Item: Send,
{
    fn evaluate(&self, range: Range<u64>, extent: &mut [u8]) -> Result<Evaluated> {
        if range.end > self.dataset.len() {
            return Err(Error::new(
                ErrorKind::Worker,
                format!("indices {range:?} of a dataset of {}", self.dataset.len()),
            ));
        }
        let mut cx = self.run.cx_ahead();
        let (mut writer, mut need) = (ChunkWriter::new(extent), None);
        let mut unfit = self.take_unfit(range.start);
        for index in range {
            let slot = unfit.take().unwrap_or_else(|| evaluate(&*self.dataset, index, &mut cx));
            if let Err(full) = writer.push_with(&slot, self.crossing) {
                need = Some(full.need);
                self.keep_unfit(index, slot, full.need);
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
