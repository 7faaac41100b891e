//! A border whose elements are evaluated in worker processes: its end in the parent, and its end in a worker.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::evaluate::{
    Aim, Chunk, Evaluator, Gather, Incoming, Outgoing, Wanted, caught, channel, evaluate_chunk, evaluate_range,
    of_columns,
};
use crate::cx::{Cx, StageId};
use crate::dataset::map::{Many, MapDataset};
use crate::dataset::run::foresight::Foresight;
use crate::dataset::run::pace::Pace;
use crate::element::{Part, Slot};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Runtime;
use crate::exec::remote::{Border, Deliver, Delivery, Evaluated, How, Point, Remote, Serve, Served};
use crate::sync::Locked;
use crate::wire::{ChunkWriter, Crossing, Full, crossing, read_parts};

/// In the parent: elements come from `workers`, and what is gathered of them, if it can.
pub(super) fn on_workers<T: Send + 'static, G: Gather<T>>(
    gather: Option<&Arc<G>>,
    run: &Runtime,
    workers: &Arc<dyn Remote>,
    stage: StageId,
    ranges: Ranges,
) -> Box<dyn Evaluator<T, G::Whole>> {
    let Some(item) = crossing::<T>() else { return Box::new(Stuck { what: std::any::type_name::<T>() }) };
    let groups = gather.and_then(|gather| Some(Groups { size: gather.size(), whole: crossing()? }));
    Box::new(OnWorkers {
        workers: workers.clone(),
        border: run.border(stage),
        item,
        groups,
        ranges,
        apart: Arc::default(),
    })
}

/// In a worker: how elements of `dataset` are evaluated, and gathered, is told to those who serve the parent.
pub(super) fn serve<D, G>(dataset: &Arc<D>, gather: Option<&Arc<G>>, run: &Runtime, served: &Served, stage: StageId)
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
    G: Gather<D::Item>,
{
    if let Some(item) = crossing::<D::Item>() {
        let gather = gather.and_then(|gather| Some((gather.clone(), crossing()?)));
        let (dataset, run, unfit) = (dataset.clone(), run.clone(), Mutex::default());
        let (pace, large) = (Pace::of(&dataset), AtomicUsize::default());
        served.add(run.border(stage), Arc::new(Prefix { dataset, gather, run, item, unfit, pace, large }));
    }
}

/// Reasons for the length of ranges.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ranges {
    /// The cost of handing one over.
    Plain,
    /// Elements come from far away: those of a range come all at once, after the way there and back.
    Far,
    /// Elements share what is decoded for them, so many of them at a time: a worker knows no more of them than its range. What is more
    /// than a part comes in several, one after the other. Short ones take long for each element, which must not keep them short.
    Sharing(u64),
}

/// Groups that come as one.
struct Groups<W> {
    size: u64,
    whole: Crossing<W>,
}

impl<W> Clone for Groups<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Groups<W> {}

struct OnWorkers<T, W> {
    workers: Arc<dyn Remote>,
    border: Border,
    item: Crossing<T>,
    groups: Option<Groups<W>>,
    ranges: Ranges,
    /// Set once groups turn out to be too large.
    apart: Arc<AtomicBool>,
}

impl<T: Send + 'static, W: Send + 'static> Evaluator<T, W> for OnWorkers<T, W> {
    fn window(&self) -> usize {
        self.workers.window()
    }

    fn aim(&self) -> Aim {
        // Somewhat less than a part, or each would leave a slot or two for another.
        let part = self.workers.part_bytes() / 8 * 7;
        let (long, very_long, slots) = (Duration::from_millis(500), Duration::from_secs(5), 1 << 14);
        match self.ranges {
            // It takes longer than between threads to hand one over: several wake-ups, and messages between processes.
            Ranges::Plain => Aim { time: Duration::from_millis(5), slots, bytes: part },
            Ranges::Far => Aim { time: long, slots, bytes: part },
            Ranges::Sharing(elements) => {
                // What a worker decodes has room for the ranges of all of its threads together.
                let elements = elements / (self.workers.parallel_each() as u64).max(1);
                Aim { time: very_long, slots: slots.min(elements).max(1), bytes: usize::MAX }
            }
        }
    }

    fn gathers(&self) -> bool {
        self.groups.is_some() && !self.apart.load(Ordering::Relaxed)
    }

    fn submit(&self, Wanted { range, grouped }: Wanted) -> Incoming<Chunk<T, W>> {
        let (outgoing, incoming) = channel();
        let groups = self.groups.filter(|_| grouped);
        let decode = Decode { outgoing, item: self.item, groups, apart: self.apart.clone() };
        let how = groups.map_or(How::Slots, |groups| How::Groups(groups.size));
        self.workers.submit(self.border, range, how, Box::new(decode));
        incoming
    }
}

/// Makes elements of what lies in shared memory.
struct Decode<T, W> {
    outgoing: Outgoing<Chunk<T, W>>,
    item: Crossing<T>,
    groups: Option<Groups<W>>,
    apart: Arc<AtomicBool>,
}

impl<T: Send + 'static, W: Send + 'static> Decode<T, W> {
    fn send(&self, parts: Vec<Part<T, W>>, took: Duration, bytes: usize) {
        let _ = self.outgoing.chunks.send(Ok(Chunk { parts, took, bytes }));
    }
}

impl<T: Send + 'static, W: Send + 'static> Deliver for Decode<T, W> {
    fn wanted(&self) -> bool {
        self.outgoing.is_wanted()
    }

    fn ungroup(&mut self) {
        self.apart.store(true, Ordering::Relaxed);
    }

    fn part(&mut self, delivery: &Delivery) -> Result<Option<Point>> {
        let parts = read_parts(&delivery.bytes, delivery.used, self.item, self.groups.map(|groups| groups.whole))?;
        let size = self.groups.map_or(0, |groups| groups.size);
        let len = |part: &Part<T, W>| match part {
            Part::Whole(_, len) if !(1..=size).contains(len) => None,
            part => Some(part.len()),
        };
        let indices = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(len(part)?));
        if indices != Some(delivery.indices) {
            return Err(Error::data(format!("{indices:?} elements where {} were announced", delivery.indices)));
        }
        self.send(parts, delivery.took, delivery.used);
        Ok(None)
    }

    fn skip(&mut self) {
        self.send(vec![Part::Slots([Ok(None)].into_iter().collect())], Duration::ZERO, 0);
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

    fn submit(&self, _: Wanted) -> Incoming<Chunk<T, W>> {
        let (outgoing, incoming) = channel();
        let error = Error::new(ErrorKind::Config, format!("elements of type {} cannot leave a worker process", self.what))
            .help("make an `Element` of each before `to_iter` (numbers, text, lists and pairs of them travel too), or use threads");
        let _ = outgoing.chunks.send(Err(error));
        incoming
    }
}

/// The elementwise prefix of a border, in a worker.
struct Prefix<D: MapDataset, G: Gather<D::Item>> {
    dataset: Arc<D>,
    gather: Option<(Arc<G>, Crossing<G::Whole>)>,
    run: Runtime,
    item: Crossing<D::Item>,
    unfit: Mutex<Kept<D::Item, G::Whole>>,
    pace: Pace,
    /// Bytes that a large slot takes, of those that came last.
    large: AtomicUsize,
}

/// By index.
type Kept<T, W> = VecDeque<(u64, Unfit<T, W>)>;

/// A value that did not fit where it should go: it is asked for next, most likely here.
enum Unfit<T, W> {
    Slot(Slot<T>),
    /// The elements of a group of so many indices, or what it has become.
    Items(Vec<T>),
    Whole(Result<W>, u64),
}

/// The most that are kept, and the bytes of the largest: a worker's memory is needed for other things.
const MOST_UNFIT: usize = 4;
const LARGEST_UNFIT: usize = 2 << 20;

impl<D, G> Serve for Prefix<D, G>
where
    D: MapDataset<Item: Send>,
    G: Gather<D::Item>,
{
    fn evaluate(&self, range: Range<u64>, groups_from: Option<u64>, extent: &mut [u8]) -> Result<Evaluated> {
        if range.end > self.dataset.len() {
            return Err(Error::new(
                ErrorKind::Worker,
                format!("indices {range:?} of a dataset of {}", self.dataset.len()),
            ));
        }
        let mut cx = self.run.cx_ahead();
        let mut writer = ChunkWriter::new(extent);
        let full = self.write(range, groups_from, &mut writer, &mut cx).err();
        let written = writer.finish();
        Ok(Evaluated {
            indices: written.indices,
            used: written.used,
            need: full.map(|full| full.need),
            ..Evaluated::default()
        })
    }
}

impl<D, G> Prefix<D, G>
where
    D: MapDataset,
    G: Gather<D::Item>,
{
    fn write(
        &self,
        range: Range<u64>,
        groups_from: Option<u64>,
        writer: &mut ChunkWriter<'_>,
        cx: &mut Cx,
    ) -> Result<(), Full> {
        let (mut at, mut group_bytes) = (range.start, 0);
        let mut unfit = self.take_unfit(at);
        let mut foresight = Foresight::of(&self.dataset);
        while at < range.end {
            foresight.iter_mut().for_each(|foresight| foresight.tell(&self.dataset, at, range.end));
            let Some(group) = self.group_at(at, range.end, groups_from) else {
                let slots = match unfit.take() {
                    Some(Unfit::Slot(slot)) => [slot].into_iter().collect(),
                    _ => self.slots(at..self.next_group(at, range.end, groups_from), writer.room(), cx),
                };
                let mut large = 0;
                for slot in slots {
                    let taken = writer.taken();
                    if let Err(full) = writer.push_with(&slot, self.item) {
                        self.learn_bytes(full.need);
                        // What lies in the extent itself cannot outlive this task.
                        if !writer.has_foreign() {
                            self.keep_unfit(at, Unfit::Slot(slot), full);
                        }
                        return Err(full);
                    }
                    large = large.max((writer.taken() - taken) as usize);
                    at += 1;
                }
                self.learn_bytes(large);
                continue;
            };
            let room = writer.room();
            if group_bytes > room {
                // Groups are much of a size: the next would be evaluated for nothing.
                return Err(Full { need: group_bytes });
            }
            self.write_group(&group, unfit.take(), writer, cx)?;
            (at, group_bytes) = (group.range.end, room - writer.room());
        }
        Ok(())
    }

    /// The slots at the start of `range`: a chunk of them, but no more than there is room for if all are large.
    fn slots(&self, mut range: Range<u64>, room: usize, cx: &mut Cx) -> Many<D::Item> {
        let large = self.large.load(Ordering::Relaxed);
        let most = room.checked_div(large).map_or(u64::MAX, |most| most.max(1) as u64);
        range.end = range.end.min(range.start.saturating_add(most));
        self.pace.chunk(&mut range, cx, |chunk, cx| evaluate_chunk(&*self.dataset, chunk, &self.pace, cx))
    }

    /// A slot of a chunk has taken, or would have taken, so many bytes. Large ones are forgotten where none came for a while.
    fn learn_bytes(&self, bytes: usize) {
        let large = self.large.load(Ordering::Relaxed);
        let next = bytes.max(large - large / 16);
        if next != large {
            self.large.store(next, Ordering::Relaxed);
        }
    }

    /// Finds where the next group may begin behind `at`, or `end`.
    fn next_group(&self, at: u64, end: u64, groups_from: Option<u64>) -> u64 {
        let size = self.gather.as_ref().map(|(gather, _)| gather.size());
        let next = groups_from.zip(size).and_then(|(from, size)| {
            let past = at.saturating_add(1).saturating_sub(from);
            from.checked_add(past.checked_next_multiple_of(size)?)
        });
        next.map_or(end, |next| next.min(end))
    }

    /// The group that begins at `at`, if one does and is whole.
    fn group_at(&self, at: u64, end: u64, groups_from: Option<u64>) -> Option<Group<'_, G, G::Whole>> {
        let (gather, whole) = self.gather.as_ref()?;
        let size = gather.size();
        let begins = at.checked_sub(groups_from?)?.checked_rem(size)? == 0;
        let group_end = at.saturating_add(size).min(self.dataset.len());
        let is_whole = begins && group_end <= end && gather.takes(group_end - at);
        is_whole.then_some(Group { gather, whole: *whole, range: at..group_end })
    }

    /// Writes what a group becomes, a batch of elements stacked in its place; or its slots, if it has no element somewhere.
    fn write_group(
        &self,
        group: &Group<'_, G, G::Whole>,
        unfit: Option<Unfit<D::Item, G::Whole>>,
        writer: &mut ChunkWriter<'_>,
        cx: &mut Cx,
    ) -> Result<(), Full> {
        let Group { gather, whole: crossing, ref range } = *group;
        let indices = range.end - range.start;
        let whole = match unfit {
            Some(Unfit::Whole(whole, len)) if len == indices => whole,
            unfit => 'whole: {
                if unfit.is_none()
                    && let Some(whole) = of_columns(&*self.dataset, gather, range.clone(), cx)
                {
                    break 'whole Ok(whole);
                }
                let items = match unfit {
                    Some(Unfit::Items(items)) if items.len() as u64 == indices => Ok(items),
                    _ => evaluate_range(&*self.dataset, range.clone(), &self.pace, cx, &|| true).dense(),
                };
                let items = match items {
                    Ok(items) => items,
                    Err(slots) => return slots.into_iter().try_for_each(|slot| writer.push_with(&slot, self.item)),
                };
                let mut pushed = Ok(());
                let stacked = gather.stack(&items, cx, &mut |elements| {
                    pushed = writer.push_stacked(elements)?;
                    Ok(pushed.is_ok())
                });
                match (stacked, pushed) {
                    (Some(Ok(_)), Ok(())) => return Ok(()),
                    (Some(Ok(_)), Err(full)) => {
                        self.keep_unfit(range.start, Unfit::Items(items), full);
                        return Err(full);
                    }
                    (Some(Err(error)), _) => Err(error),
                    (None, _) => caught(|| gather.gather(items, cx)),
                }
            }
        };
        writer.push_whole(&whole, indices, crossing).inspect_err(|full| {
            self.keep_unfit(range.start, Unfit::Whole(whole, indices), *full);
        })
    }

    fn unfit(&self) -> MutexGuard<'_, Kept<D::Item, G::Whole>> {
        self.unfit.locked()
    }

    fn take_unfit(&self, index: u64) -> Option<Unfit<D::Item, G::Whole>> {
        let mut unfit = self.unfit();
        let at = unfit.iter().position(|(kept, _)| *kept == index)?;
        Some(unfit.swap_remove_back(at)?.1)
    }

    fn keep_unfit(&self, index: u64, what: Unfit<D::Item, G::Whole>, full: Full) {
        if full.need > LARGEST_UNFIT {
            return;
        }
        let mut unfit = self.unfit();
        // One that is still there after so many others is wanted elsewhere, or not at all.
        let old = if unfit.len() < MOST_UNFIT { None } else { unfit.pop_front() };
        unfit.push_back((index, what));
        drop(unfit);
        drop(old);
    }
}

/// Indices that become one.
struct Group<'a, G, W> {
    gather: &'a G,
    whole: Crossing<W>,
    range: Range<u64>,
}

impl<D: MapDataset, G: Gather<D::Item>> fmt::Debug for Prefix<D, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefix").field("len", &self.dataset.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::IterDataset;
    use crate::dataset::Remainder;
    use crate::dataset::map::Range as Numbers;
    use crate::element::{Array, BufferMut, Element, Owner, Stack};
    use crate::exec::Engine;

    struct Extent(BufferMut);

    impl Owner for Extent {
        fn bytes(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }

    fn element(x: i64) -> Element {
        Element::new().with("x", Array::from_vec(vec![x; 20]))
    }

    /// The worker's end of a stream of batches of elements, `bad` of which are none.
    fn served(len: i64, size: usize, whole: bool, bad: Vec<i64>) -> Arc<dyn Serve> {
        let remainder = if whole { Remainder::Drop } else { Remainder::Keep };
        let check = move |x| if bad.contains(&x) { Err(Error::data(format!("{x}"))) } else { Ok(element(x)) };
        let served = Arc::<Served>::default();
        let run = Runtime::of(Engine::Serving(served.clone()), None);
        let stream = Numbers::new(0, len).try_map(check).to_iter().batch_with(size, remainder);
        drop(stream.iter(&run).unwrap());
        served.find(run.border(StageId(2))).unwrap()
    }

    /// Writes `range` into `bytes` as a worker does, where it has room.
    fn evaluated(serve: &dyn Serve, range: Range<u64>, from: Option<u64>, bytes: usize) -> (Parts, Evaluated) {
        let mut memory = BufferMut::zeroed(bytes);
        let evaluated = serve.evaluate(range, from, memory.as_mut_bytes()).unwrap();
        if evaluated.indices == 0 {
            return (Vec::new(), evaluated);
        }
        let owner: Arc<dyn Owner> = Arc::new(Extent(memory));
        let parts = read_parts(&owner, evaluated.used, Crossing::OF, Some(Crossing::OF)).unwrap();
        (parts.into_iter().map(Part::made).collect(), evaluated)
    }

    type Parts = Vec<Part<Element, Element>>;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

        /// However a range is cut into tasks, and whatever room they have.
        #[test]
        fn batches_are_whole_where_a_task_has_all_of_them(
            len in 1u64..200,
            size in 1u64..20,
            drop in any::<bool>(),
            bad in prop::collection::vec(0i64..200, 0..3),
            first in 0u64..30,
            cuts in prop::collection::vec((1u64..100, 0usize..20_000), 1..20),
        ) {
            let serve = served(len as i64, size as usize, drop, bad.clone());
            let start = first.min(len);
            let (mut at, mut cuts, mut room) = (start, cuts.into_iter().cycle(), 0);
            while at < len {
                let (most, bytes) = cuts.next().unwrap();
                let end = len.min(at + most);
                let (parts, evaluated) = evaluated(&*serve, at..end, Some(start), bytes.max(room));
                room = match (evaluated.indices, evaluated.need) {
                    (0, Some(need)) => {
                        prop_assert!(need > bytes.max(room));
                        need
                    }
                    (done, _) => {
                        prop_assert!(0 < done && done <= end - at);
                        0
                    }
                };
                let bad_in = |range: Range<u64>| bad.iter().any(|x| range.contains(&(*x as u64)));
                let group = |at: u64| at..(at + size).min(len);
                let is_whole = |at: u64| {
                    let group_end = group(at).end;
                    let full = group_end - at == size || !drop;
                    (at - start).is_multiple_of(size) && group_end <= end && full && !bad_in(group(at))
                };
                for part in parts {
                    match part {
                        Part::Whole(batch, indices) => {
                            prop_assert!(is_whole(at));
                            let items: Vec<_> = group(at).map(|x| element(x as i64)).collect();
                            prop_assert_eq!(batch.unwrap(), Element::stack(items).unwrap());
                            at += indices;
                        }
                        Part::Slots(slots) => for slot in slots {
                            prop_assert!(!is_whole(at), "{at} of {end}, from {start}");
                            match slot {
                                Ok(slot) => prop_assert_eq!(slot, Some(element(at as i64))),
                                Err(error) => prop_assert!(bad_in(at..at + 1), "{error}"),
                            }
                            at += 1;
                        },
                        Part::Rows(_) => unreachable!("they were made"),
                    }
                }
            }
        }
    }

    #[test]
    fn without_being_asked_nothing_is_grouped() {
        let serve = served(20, 4, false, Vec::new());
        let (parts, evaluated) = evaluated(&*serve, 0..20, None, 1 << 16);
        assert_eq!(evaluated.indices, 20);
        assert!(matches!(&parts[..], [Part::Slots(slots)] if slots.len() == 20));
        assert!(serve.evaluate(0..21, None, &mut []).is_err());
    }

    #[test]
    fn a_batch_that_cannot_be_stacked_is_an_error_in_its_place() {
        let ragged = |x: i64| Element::new().with("x", Array::from_vec(vec![0u8; x as usize]));
        let served = Arc::<Served>::default();
        let run = Runtime::of(Engine::Serving(served.clone()), None);
        drop(Numbers::new(0, 6).map(ragged).to_iter().batch(3).iter(&run).unwrap());
        let serve = served.find(run.border(StageId(2))).unwrap();
        let (parts, _) = evaluated(&*serve, 0..6, Some(0), 1 << 16);
        let error = |part: &Part<Element, Element>| match part {
            Part::Whole(Err(error), 3) => error.to_string(),
            _ => panic!("no error of three"),
        };
        let errors: Vec<String> = parts.iter().map(error).collect();
        assert!(errors[0].starts_with("stage 3 batch: cannot stack 3 elements"), "{errors:?}");
        assert_eq!(errors.len(), 2);
    }
}
