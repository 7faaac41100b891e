//! Functions that worker processes apply to elements of a stream: the side of the parent process and of the worker.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::Work;
use super::evaluator::{Apply, applied};
use crate::cx::{Cx, StageId, ThreadWaits, Watch};
use crate::dataset::run::ahead::Open;
use crate::dataset::run::evaluate::{Aim, Chunk, Incoming, channel};
use crate::dataset::run::remote::Decode;
use crate::element::{Buffer, Owner, Part};
use crate::error::Result;
use crate::exec::Runtime;
use crate::exec::remote::{Border, Evaluated, Fed, How, Remote, ServeFed, Served};
use crate::wire::{ChunkWriter, Crossing, crossing, read_parts};

/// Limit of bytes in the elements of a task. More elements are sent in several tasks.
const MOST_BYTES: usize = 1 << 20;
/// Limit of bytes in an element that is sent. Larger elements stay in the parent process.
const LARGEST: usize = 32 << 20;

/// Returns the evaluator for the parent process: `workers` apply the function.
///
/// Returns `None` if elements or results cannot be sent between processes.
pub(super) fn on_workers<T: Send + 'static, W: Work<T>>(
    work: &Arc<W>,
    workers: &Arc<dyn Remote>,
    run: &Runtime,
    stage: StageId,
) -> Option<Box<dyn Apply<T, W::Out>>> {
    let (item, made, border) = (crossing::<T>()?, crossing::<W::Sent>()?, run.border(stage));
    let (work, workers, run) = (work.clone(), workers.clone(), run.clone());
    Some(Box::new(OnWorkers { work, workers, run, stage, border, item, made }))
}

/// Registers the function in a worker, which applies it for the parent process.
pub(super) fn serve<T: Send + 'static, W: Work<T>>(work: &Arc<W>, run: &Runtime, served: &Served, stage: StageId) {
    if let (Some(item), Some(made)) = (crossing::<T>(), crossing::<W::Sent>()) {
        let applied = Applied { work: work.clone(), run: run.clone(), stage, item, made };
        served.add_fed(run.border(stage), Arc::new(applied));
    }
}

struct OnWorkers<T, W: Work<T>> {
    work: Arc<W>,
    workers: Arc<dyn Remote>,
    run: Runtime,
    stage: StageId,
    border: Border,
    item: Crossing<T>,
    made: Crossing<W::Sent>,
}

type Coming<U> = Incoming<Chunk<U, Infallible>>;

impl<T: Send + 'static, W: Work<T>> Apply<T, W::Out> for OnWorkers<T, W> {
    fn window(&self) -> usize {
        self.workers.window()
    }

    fn aim(&self) -> Aim {
        Aim { time: self.workers.range_time(), slots: 1 << 14, bytes: self.workers.part_bytes() / 8 * 7 }
    }

    /// Covers the writing and reading of an element and of its result, some microseconds in all.
    fn least_time(&self) -> Duration {
        Duration::from_micros(20)
    }

    fn submit(&self, first: u64, elements: Vec<T>) -> Vec<(Coming<W::Out>, usize)> {
        let (mut elements, mut first, mut room) = (elements.into_iter().peekable(), first, MOST_BYTES);
        let mut all = Vec::new();
        while elements.peek().is_some() {
            let mut bytes = vec![0; room];
            let mut writer = ChunkWriter::new(&mut bytes);
            let mut stays = false;
            room = MOST_BYTES;
            while let Some(element) = elements.peek() {
                match writer.push_item(element, self.item) {
                    Ok(Ok(())) => drop(elements.next()),
                    Ok(Err(full)) => {
                        stays = full.need > LARGEST;
                        room = full.need.max(MOST_BYTES);
                        break;
                    }
                    // The element cannot be sent.
                    Err(_) => {
                        stays = true;
                        break;
                    }
                }
            }
            let written = writer.finish();
            bytes.truncate(written.used);
            if written.indices > 0 {
                all.push((self.send(first, written.indices, bytes), written.indices as usize));
                first += written.indices;
            }
            if let Some(element) = elements.next_if(|_| stays) {
                all.push((self.apply_here(first, element), 1));
                (first, room) = (first + 1, MOST_BYTES);
            }
        }
        all
    }
}

impl<T: Send + 'static, W: Work<T>> OnWorkers<T, W> {
    fn send(&self, first: u64, count: u64, bytes: Vec<u8>) -> Coming<W::Out> {
        let (outgoing, incoming) = channel();
        let fed = Fed { first, bytes: bytes.into() };
        let deliver = Box::new(Decode::of_slots(outgoing, self.made, W::receive));
        self.workers.submit(self.border, first..first.saturating_add(count), How::Fed(fed), deliver);
        incoming
    }

    fn apply_here(&self, index: u64, element: T) -> Coming<W::Out> {
        let ((outgoing, incoming), watch) = (channel(), Watch::start());
        let slot = applied(&*self.work, index, element, self.stage, &mut self.run.cx(), |made, _| made);
        let parts = vec![Part::Slots([slot].into_iter().collect())];
        let _ = outgoing.chunks.send(Ok(Chunk { parts, made: watch.end(None) }));
        incoming
    }
}

/// The function of a stage, in a worker.
struct Applied<T, W: Work<T>> {
    work: Arc<W>,
    run: Runtime,
    stage: StageId,
    item: Crossing<T>,
    made: Crossing<W::Sent>,
}

impl<T: Send + 'static, W: Work<T>> ServeFed for Applied<T, W> {
    fn apply(&self, range: Range<u64>, fed: &Fed, extent: &mut [u8]) -> Result<Evaluated> {
        let (mut cx, before) = (self.run.cx_ahead(), ThreadWaits::here());
        let owner: Arc<dyn Owner> = Arc::new(Sent(Buffer::copy_from(&fed.bytes)));
        let parts = read_parts::<T, Infallible>(&owner, fed.bytes.len(), self.item, None)?;
        let slots = parts.into_iter().flat_map(Open::of);
        let mut writer = ChunkWriter::new(extent);
        let mut need = None;
        for (index, slot) in (fed.first..range.end).zip(slots).skip_while(|(index, _)| *index < range.start) {
            let send = |made, cx: &mut Cx| W::send(made, self.stage, cx);
            let made =
                slot?.map_or(Ok(None), |element| applied(&*self.work, index, element, self.stage, &mut cx, send));
            if let Err(full) = writer.push_with(&made, self.made) {
                need = Some(full.need);
                break;
            }
        }
        let written = writer.finish();
        let (indices, used, off) = (written.indices, written.used, ThreadWaits::here().since(before));
        Ok(Evaluated { indices, used, need, off, ..Evaluated::default() })
    }
}

/// Elements as sent, in memory that aligns their arrays.
struct Sent(Buffer);

impl Owner for Sent {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

debug_as!(<T, W: Work<T>> Applied<T, W>, |self, f| {
    f.debug_struct("Applied").field("stage", &self.stage).finish_non_exhaustive()
});
