//! Lanes that worker processes read: the side of the parent process and the side of the worker.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::evaluate::{Ending, LaneChunk, LaneEvaluator, OpenLanes, Wanted, open_lane, share};
use super::lane::{LaneIter, LaneMark, LanePosition, Marked, Step};
use super::{ItemOf, Shared, StateOf};
use crate::cx::{Cx, StageId, ThreadWaits};
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::run::evaluate::{Aim, Incoming, Outgoing, channel};
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::exec::remote::{Border, Deliver, Delivery, Evaluated, How, Point, Remote, Segment, ServeLanes, Served};
use crate::wire::{ChunkWriter, Crossing, Full, LaneEnd, LaneSlots, crossing, needed, read_lane};

/// Returns the reader for the parent process: `workers` read the lanes.
pub(super) fn on_workers<L: OpenLane>(
    run: &Runtime,
    workers: &Arc<dyn Remote>,
    stage: StageId,
) -> Result<Box<dyn LaneEvaluator<ItemOf<L>, StateOf<L>>>> {
    let (workers, border) = (workers.clone(), run.border(stage));
    let item = crossing_of_items::<L>()?;
    Ok(Box::new(OnWorkers::<L> { workers, border, item, lanes: PhantomData }))
}

pub(super) fn crossing_of_items<L: OpenLane>() -> Result<Crossing<ItemOf<L>>> {
    needed("inside the lanes")
}

/// Registers the lanes in a worker, which reads them for the parent process.
pub(super) fn serve<L: OpenLane>(shared: &Arc<Shared<L>>, run: &Runtime, served: &Served) {
    if let Some(item) = crossing::<ItemOf<L>>() {
        let lanes = Lanes { shared: shared.clone(), item, open: OpenLanes::new(MOST_OPEN) };
        served.add_lanes(run.border(shared.stage), Arc::new(lanes));
    }
}

struct OnWorkers<L: OpenLane> {
    workers: Arc<dyn Remote>,
    border: Border,
    item: Crossing<ItemOf<L>>,
    lanes: PhantomData<fn() -> L>,
}

impl<L: OpenLane> LaneEvaluator<ItemOf<L>, StateOf<L>> for OnWorkers<L> {
    fn aim(&self, lanes: usize) -> Aim {
        // As for ranges: slightly less than the available room.
        let time = share(Duration::from_millis(5), self.workers.window(), lanes);
        Aim { time, slots: 1 << 14, bytes: self.workers.lane_bytes(lanes) / 8 * 7 }
    }

    fn submit(&self, wanted: Wanted<StateOf<L>>) -> Incoming<LaneChunk<ItemOf<L>, StateOf<L>>> {
        let (outgoing, incoming) = channel();
        let LanePosition { given, mark, skip } = wanted.from;
        let item = self.item;
        match text_of(&*mark) {
            Ok(state) => {
                let at = Point { state: state.into(), skip };
                let from = Segment { lane: wanted.lane, after: wanted.after, at };
                let range = given..given.saturating_add(wanted.quota);
                let decode = Decode::<ItemOf<L>, StateOf<L>> { outgoing, item, mark: None, skip };
                self.workers.submit(self.border, range, How::Lane { from, due: wanted.due }, Box::new(decode));
            }
            Err(error) => {
                let _ = outgoing.chunks.send(Err(error));
            }
        }
        incoming
    }
}

/// Returns a mark as text, as sent to a worker.
fn text_of<S: serde::Serialize>(mark: &LaneMark<S>) -> Result<String> {
    serde_json::to_string(mark).map_err(|e| Error::state(format!("the state of a lane cannot be written: {e}")))
}

/// Decodes elements from shared memory.
struct Decode<T, S> {
    outgoing: Outgoing<LaneChunk<T, S>>,
    item: Crossing<T>,
    /// Last mark of the current part. `skip` counts the elements since the last mark of all parts.
    mark: Option<Box<str>>,
    skip: u64,
}

impl<T: Send + 'static, S: serde::de::DeserializeOwned + Send + Sync + 'static> Decode<T, S> {
    /// Parses the marks and checks their places. A worker sets marks only in the places in which any reader sets them.
    fn marked(&mut self, slots: Vec<(Result<T>, Option<String>)>) -> Result<Vec<Marked<T, S>>> {
        let (mut last, mut skip) = (None, self.skip);
        let mut marked = Vec::with_capacity(slots.len());
        for (slot, text) in slots {
            if text.is_some() != LanePosition::<S>::is_due(skip, slot.is_err()) {
                let what = if text.is_some() { "unexpected" } else { "missing" };
                return Err(Error::data(format!("a mark {skip} elements after the last is {what}")));
            }
            skip += 1;
            let mark = text.as_deref().map(serde_json::from_str::<LaneMark<S>>).transpose();
            let mark = mark.map_err(|e| Error::data(format!("a mark cannot be read: {e}")))?;
            if let Some(text) = text {
                (last, skip) = (Some(text), 0);
            }
            marked.push((slot, mark.map(Arc::new)));
        }
        (self.mark, self.skip) = (last.map(Into::into), skip);
        Ok(marked)
    }
}

impl<T: Send + 'static, S: serde::de::DeserializeOwned + Send + Sync + 'static> Deliver for Decode<T, S> {
    fn wanted(&self) -> bool {
        self.outgoing.is_wanted()
    }

    fn ungroup(&mut self) {}

    fn part(&mut self, delivery: &Delivery) -> Result<Option<Point>> {
        let Evaluated { indices, used, last, .. } = delivery.evaluated;
        let LaneSlots { slots, end } = read_lane(&delivery.bytes, used, self.item)?;
        if slots.len() as u64 != indices || last == matches!(end, LaneEnd::Open) {
            let len = slots.len();
            return Err(Error::data(format!("{len} elements and then {end:?}, but {indices} elements were announced")));
        }
        let slots = self.marked(slots)?;
        let ending = match end {
            LaneEnd::Open => Ending::Open,
            LaneEnd::Ended => Ending::Ended,
            LaneEnd::Failed(error) => Ending::Failed(error),
        };
        let chunk = LaneChunk { slots, ending, made: delivery.made, after: delivery.task };
        let _ = self.outgoing.chunks.send(Ok(chunk));
        Ok(self.mark.take().map(|state| Point { state, skip: self.skip }))
    }

    fn skip(&mut self) {}

    fn fail(&mut self, error: Error) {
        let _ = self.outgoing.chunks.send(Err(error));
    }
}

/// Limit of lanes that stay open in a worker.
const MOST_OPEN: usize = 256;
/// Largest slot, in bytes, that always stays with its lane if it did not fit into its extent. A larger slot stays with
/// at most one lane at a time, because the worker needs its memory for other things.
const LARGEST_UNFIT: usize = 256 << 10;

/// The lanes of a pass, in a worker.
struct Lanes<L: OpenLane> {
    shared: Arc<Shared<L>>,
    item: Crossing<ItemOf<L>>,
    open: OpenLanes<Open<L>>,
}

/// A lane between two tasks, and the slot that did not fit into the last extent.
struct Open<L: OpenLane> {
    iter: LaneIter<L>,
    unfit: Option<Slot<L>>,
}

/// An element or an error, and the mark after it as text.
type Slot<L> = (Result<ItemOf<L>>, Option<String>);

/// The reason why the writing of a segment stopped.
enum Stop<L: OpenLane> {
    /// The segment is complete, or the extent is full.
    Open(Open<L>, Option<Full>),
    /// The lane is closed. Contains `Full` if its end did not fit.
    Closed(Option<Full>),
}

impl<L: OpenLane> ServeLanes for Lanes<L> {
    fn read_on(&self, task: u64, range: Range<u64>, from: &Segment, extent: &mut [u8]) -> Result<Evaluated> {
        let (mut cx, before) = (self.shared.run.cx_ahead(), ThreadWaits::here());
        let mut writer = ChunkWriter::new(extent);
        let start = Instant::now();
        let open = match self.open.take(from.lane, from.after) {
            Some(open) => Ok(open),
            None => self.open_at(range.start, from, &mut cx).map(|iter| Open { iter, unfit: None }),
        };
        let opened = start.elapsed();
        let stop = match open {
            Ok(open) => self.write(open, range, &mut writer, &mut cx),
            Err(error) => Stop::Closed(writer.push_end(Some(&error)).err()),
        };
        let written = writer.finish();
        let (last, full) = match stop {
            Stop::Closed(full) => (full.is_none(), full),
            Stop::Open(open, full) => {
                self.keep(from.lane, task, open, full);
                (false, full)
            }
        };
        let need = full.map(|full| full.need);
        let (indices, used, off) = (written.indices, written.used, ThreadWaits::here().since(before));
        Ok(Evaluated { indices, used, need, last, opened, off, ..Evaluated::default() })
    }
}

impl<L: OpenLane> Lanes<L> {
    fn open_at(&self, given: u64, from: &Segment, cx: &mut Cx) -> Result<LaneIter<L>> {
        let mark = serde_json::from_str(&from.at.state)
            .map_err(|e| Error::state(format!("the state of lane {} cannot be read: {e}", from.lane)))?;
        open_lane(&self.shared, None, LanePosition { given, mark: Arc::new(mark), skip: from.at.skip }, cx)
    }

    fn write(&self, mut open: Open<L>, range: Range<u64>, writer: &mut ChunkWriter<'_>, cx: &mut Cx) -> Stop<L> {
        for _ in range {
            let slot = match open.unfit.take() {
                Some(slot) => Ok(slot),
                None => match open.iter.step(cx) {
                    Step::Next((slot, mark)) => with_text(slot, mark.as_deref()),
                    Step::Ended => {
                        // The next step of the lane returns the end again.
                        return match writer.push_end(None) {
                            Ok(()) => Stop::Closed(None),
                            Err(full) => Stop::Open(open, Some(full)),
                        };
                    }
                    Step::Failed(error) => Err(error),
                },
            };
            match slot.and_then(|slot| self.push(slot, &mut open.iter, writer)) {
                Ok(None) => {}
                Ok(Some((slot, full))) => {
                    open.unfit = Some(slot);
                    return Stop::Open(open, Some(full));
                }
                Err(error) => return Stop::Closed(writer.push_end(Some(&error)).err()),
            }
        }
        Stop::Open(open, None)
    }

    /// Writes a slot. Returns the slot if it does not fit.
    fn push(
        &self,
        slot: Slot<L>,
        iter: &mut LaneIter<L>,
        writer: &mut ChunkWriter<'_>,
    ) -> Result<Option<(Slot<L>, Full)>> {
        let written = writer.push_lane(&slot.0, slot.1.as_deref(), self.item);
        let (slot, written) = match written {
            Ok(written) => (slot, written),
            // The element cannot be written anywhere, but its error can.
            Err(error) => {
                let slot = with_text(Err(error), Some(iter.mark()))?;
                let written = writer.push_lane(&slot.0, slot.1.as_deref(), self.item)?;
                (slot, written)
            }
        };
        Ok(written.err().map(|full| (slot, full)))
    }

    fn keep(&self, lane: u64, task: u64, open: Open<L>, full: Option<Full>) {
        if full.is_none_or(|full| full.need <= LARGEST_UNFIT) || !self.open.any(|open| open.unfit.is_some()) {
            self.open.keep(lane, task, open);
        }
    }
}

/// Returns a slot with its mark as text.
fn with_text<T, S: serde::Serialize>(
    slot: Result<T>,
    mark: Option<&LaneMark<S>>,
) -> Result<(Result<T>, Option<String>)> {
    Ok((slot, mark.map(text_of).transpose()?))
}

debug_as!(<L: OpenLane> Lanes<L>, |self, f| {
    f.debug_struct("Lanes").field("count", &self.shared.count).finish_non_exhaustive()
});
