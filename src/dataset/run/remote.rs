//! The parent's side of a border whose elements are evaluated in worker processes. The worker's side is in `serve`.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::evaluate::{Aim, Chunk, Evaluator, Gather, Incoming, Outgoing, Wanted, channel};
use crate::cx::{Evaluation, StageId};
use crate::dataset::stage::Stage;
use crate::element::Part;
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::exec::remote::{Border, Deliver, Delivery, Evaluated, How, Point, Remote};
use crate::wire::{Crossing, crossing, needed, read_parts};

/// Returns the evaluator that receives elements from `workers`. It also receives groups if their type can cross
/// processes.
pub(super) fn on_workers<T: Send + 'static, G: Gather<T>>(
    gather: Option<&Arc<G>>,
    run: &Runtime,
    workers: &Arc<dyn Remote>,
    stage: StageId,
    ranges: Ranges,
    listed: Listed,
) -> Result<Box<dyn Evaluator<T, G::Whole>>> {
    let item = crossing_of_items()?;
    let groups = gather.and_then(|gather| Some(Groups { size: gather.size(), whole: crossing()? }));
    Ok(Box::new(OnWorkers {
        workers: workers.clone(),
        border: run.border(stage),
        item,
        groups,
        ranges,
        listed,
        apart: Arc::default(),
    }))
}

fn crossing_of_items<T: 'static>() -> Result<Crossing<T>> {
    needed("before `to_iter`")
}

/// Checks that the items of `prefix` can leave a worker process. In a cut prefix, the items at the cut leave instead.
/// The start of a pass checks them.
pub(in crate::dataset) fn check_crossing<T: 'static>(prefix: &dyn Stage) -> Result<()> {
    if prefix.any_cut() { Ok(()) } else { crossing_of_items::<T>().map(drop) }
}

/// The factor that determines the length of ranges.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ranges {
    /// The cost of dispatching a range.
    Plain,
    /// The round trip to a remote store: the elements of a range arrive together after a round trip.
    Far,
    /// Data that is decoded once for this number of elements. A worker sees no elements outside its range, so a range
    /// has about this length. A result larger than a part is delivered in several parts, one after the other. Short
    /// ranges take long per element, and a tight time limit would keep them short.
    Sharing(u64),
}

/// See [`Moves::listed`](crate::dataset::Moves::listed).
pub(super) type Listed = Box<dyn Fn(Range<u64>) -> Option<Vec<u64>> + Send>;

/// Groups that arrive as a single value.
struct Groups<W> {
    size: u64,
    whole: Crossing<W>,
}

clone_as!(<W> Groups<W>, |self| *self);

impl<W> Copy for Groups<W> {}

struct OnWorkers<T, W> {
    workers: Arc<dyn Remote>,
    border: Border,
    item: Crossing<T>,
    groups: Option<Groups<W>>,
    ranges: Ranges,
    /// Returns the listed indices of a range, if only this process has the list.
    listed: Listed,
    /// True if groups are too large to arrive as a single value. Their elements then arrive one by one.
    apart: Arc<AtomicBool>,
}

impl<T: Send + 'static, W: Send + 'static> Evaluator<T, W> for OnWorkers<T, W> {
    fn window(&self) -> usize {
        self.workers.window()
    }

    fn aim(&self) -> Aim {
        // Slightly less than a part. Otherwise each range would leave a slot or two for another part.
        let part = self.workers.part_bytes() / 8 * 7;
        let (long, very_long, slots) = (Duration::from_millis(500), Duration::from_secs(5), 1 << 14);
        match self.ranges {
            Ranges::Plain => Aim { time: self.workers.range_time(), slots, bytes: part },
            Ranges::Far => Aim { time: long, slots, bytes: part },
            Ranges::Sharing(elements) => {
                // A worker's memory for decoded data is shared by the ranges of all its threads.
                let elements = elements / (self.workers.parallel_each() as u64).max(1);
                Aim { time: very_long, slots: slots.min(elements).max(1), bytes: usize::MAX }
            }
        }
    }

    fn aligns(&self) -> bool {
        self.workers.is_shared()
    }

    fn gathers(&self) -> bool {
        self.groups.is_some() && !self.apart.load(Ordering::Relaxed)
    }

    fn submit(&self, Wanted { range, grouped }: Wanted) -> Incoming<Chunk<T, W>> {
        let (outgoing, incoming) = channel();
        let groups = self.groups.filter(|_| grouped);
        let (item, convert) = (self.item, std::convert::identity as fn(_) -> _);
        let decode = Decode { outgoing, item, convert, groups, apart: self.apart.clone() };
        let how = match ((self.listed)(range.clone()), groups) {
            (Some(indices), _) if indices.len() as u64 == range.end - range.start => How::Listed(indices.into()),
            (Some(_), _) => {
                let _ = decode.outgoing.chunks.send(Err(Error::state(format!("indices {range:?} are not planned"))));
                return incoming;
            }
            (None, Some(groups)) => How::Groups(groups.size),
            (None, None) => How::Slots,
        };
        self.workers.submit(self.border, range, how, Box::new(decode));
        incoming
    }
}

/// Decodes elements from shared memory.
///
/// Elements arrive as type `T` and are delivered as type `U`.
pub(in crate::dataset) struct Decode<T, W, U = T> {
    outgoing: Outgoing<Chunk<U, W>>,
    item: Crossing<T>,
    convert: fn(Part<T, W>) -> Part<U, W>,
    groups: Option<Groups<W>>,
    apart: Arc<AtomicBool>,
}

impl<T: Send + 'static, U: Send + 'static> Decode<T, Infallible, U> {
    /// Creates a decoder for elements that arrive one by one.
    pub(in crate::dataset) fn of_slots(
        outgoing: Outgoing<Chunk<U, Infallible>>,
        item: Crossing<T>,
        convert: fn(Part<T, Infallible>) -> Part<U, Infallible>,
    ) -> Self {
        Self { outgoing, item, convert, groups: None, apart: Arc::default() }
    }
}

impl<T: Send + 'static, W: Send + 'static, U: Send + 'static> Decode<T, W, U> {
    fn send(&self, parts: Vec<Part<U, W>>, made: Evaluation) {
        let _ = self.outgoing.chunks.send(Ok(Chunk { parts, made }));
    }
}

impl<T: Send + 'static, W: Send + 'static, U: Send + 'static> Deliver for Decode<T, W, U> {
    fn wanted(&self) -> bool {
        self.outgoing.is_wanted()
    }

    fn ungroup(&mut self) {
        self.apart.store(true, Ordering::Relaxed);
    }

    fn part(&mut self, delivery: &Delivery) -> Result<Option<Point>> {
        let Evaluated { indices: announced, used, .. } = delivery.evaluated;
        let parts = read_parts(&delivery.bytes, used, self.item, self.groups.map(|groups| groups.whole))?;
        let size = self.groups.map_or(0, |groups| groups.size);
        let len = |part: &Part<T, W>| match part {
            Part::Whole(_, len) if !(1..=size).contains(len) => None,
            part => Some(part.len()),
        };
        let indices = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(len(part)?));
        if indices != Some(announced) {
            return Err(Error::data(format!("{indices:?} elements, but {announced} were announced")));
        }
        self.send(parts.into_iter().map(self.convert).collect(), delivery.made);
        Ok(None)
    }

    fn skip(&mut self) {
        self.send(vec![Part::Slots([Ok(None)].into_iter().collect())], Evaluation::now(Duration::ZERO));
    }

    fn fail(&mut self, error: Error) {
        let _ = self.outgoing.chunks.send(Err(error));
    }
}
