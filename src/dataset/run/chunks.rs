//! Root elements in index order, for every executor.
//!
//! Inline, an index is evaluated when its element is requested, and a run of indices when a run is requested.
//! Evaluation runs slightly ahead only if every stage belongs to this crate, because then no side effect is visible.
//! With threads or worker processes, ranges of consecutive indices are dispatched ahead and put back in order here.
//!
//! A range is a pure function of the pipeline and its indices. Its size and its evaluator may therefore depend on
//! timing; they never shape the stream. Groups that arrive as a single value do not shape it either, because a consumer
//! of groups also accepts single elements.

use std::ops::Range;
use std::sync::Arc;

use super::ahead::{Ahead, Groups, Open};
use super::evaluate::{Apart, Gather, of_columns, ragged, read_chunk};
use super::evaluator::evaluator;
use crate::cx::{Cx, StageId};
use crate::dataset::map::{Many, ManySlots, MapDataset};
use crate::dataset::records::place_of;
use crate::dataset::run::foresight::Foresight;
use crate::dataset::run::pace::Pace;
use crate::dataset::stage::Stage;
use crate::element::{Name, Part, Ragged, Slot};
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// Largest group that an evaluator assembles. A single evaluator would take too long for the first of larger groups.
const MAX_GROUP: u64 = 1024;
/// Largest group if batches are made from columns, without elements.
const MAX_OF_COLUMNS: u64 = 1 << 14;

/// Slots of `0..len` in order, from any index on.
pub(in crate::dataset) struct Roots<D: MapDataset, G: Gather<D::Item> = Apart> {
    dataset: Arc<D>,
    stage: StageId,
    len: u64,
    next: u64,
    groups: Option<Groups>,
    gather: Option<Arc<G>>,
    ahead: Option<Ahead<D::Item, G::Whole>>,
    /// If `ahead` is `None`: slots that were evaluated together and not yet delivered.
    slots: ManySlots<D::Item>,
    pace: Pace,
    /// True if more elements than requested may be evaluated.
    native: bool,
    /// True if rows may be available without elements.
    ragged: bool,
    /// True if the elements are stand-ins. Indices between their rows may yield nothing.
    planned: bool,
    /// Announces upcoming indices to the sources that this process reads.
    foresight: Option<Foresight>,
}

impl<D: MapDataset<Item: Send + 'static> + 'static, G: Gather<D::Item>> Roots<D, G> {
    /// Creates roots over `dataset`. With `gather`, groups arrive as a single value if that is faster.
    pub(in crate::dataset) fn new(
        dataset: Arc<D>,
        gather: Option<&Arc<G>>,
        run: &Runtime,
        stage: StageId,
    ) -> Result<Self> {
        // If the prefix is evaluated in two places, this thread evaluates the rest. The other pass announces indices to
        // the sources.
        let (dataset, here, apart) = match D::for_pass(&dataset, run, stage) {
            Some(dataset) => (Arc::new(dataset?), run.on_one_thread(), true),
            None => (dataset, run.clone(), false),
        };
        let run = &here;
        // Without an upper limit, the elements of many large batches would be in flight.
        let most = if (&dataset as &dyn Stage).stacks() { MAX_OF_COLUMNS } else { MAX_GROUP };
        let gather = gather.filter(|gather| (1..=most).contains(&gather.size()));
        let groups = gather.map(|gather| Groups { size: gather.size(), first: 0 });
        let ahead = evaluator(&dataset, gather, run, stage)?.map(Ahead::new);
        let (slots, pace, native) = (ManySlots::default(), Pace::of(&dataset), (&dataset as &dyn Stage).all_native());
        let foresight = (run.reads_here() && !apart).then(|| Foresight::of(&dataset)).flatten();
        let (len, gather) = (dataset.len(), gather.cloned());
        let ragged = native && (&dataset as &dyn Stage).only_orders();
        Ok(Self {
            len,
            dataset,
            stage,
            next: 0,
            groups,
            gather,
            ahead,
            slots,
            pace,
            native,
            ragged,
            planned: false,
            foresight,
        })
    }

    /// Attributes the waits to `stage`.
    #[cfg(any(all(test, feature = "spec"), feature = "python"))]
    pub(in crate::dataset) fn waiting_at(self, stage: StageId) -> Self {
        Self { stage, ..self }
    }

    /// Marks the elements as stand-ins, which are read as rows if possible, and otherwise one by one.
    pub(in crate::dataset) fn planned(self) -> Self {
        Self { native: false, planned: true, ..self }
    }

    /// Returns true if indices between rows may yield nothing.
    pub(in crate::dataset) fn is_planned(&self) -> bool {
        self.planned
    }

    /// Returns the file and the record of an element, if they are known.
    #[cold]
    pub(in crate::dataset) fn place_of(&self, index: u64) -> Option<String> {
        place_of(&self.dataset, index)
    }

    /// Returns the index of the next slot.
    pub(in crate::dataset) fn position(&self) -> u64 {
        self.next
    }

    /// Moves to `index` and discards the dispatched ranges.
    pub(in crate::dataset) fn seek(&mut self, index: u64) -> Result<()> {
        if index > self.len {
            return Err(Error::state(format!(
                "next index {index} is out of range for a dataset of length {}",
                self.len
            )));
        }
        self.next = index;
        self.slots = ManySlots::default();
        self.foresight.iter_mut().for_each(Foresight::forget);
        self.ahead.iter_mut().for_each(|ahead| ahead.seek(index));
        Ok(())
    }

    /// Sets the number of slots, for an order whose list grows.
    pub(in crate::dataset) fn end_at(&mut self, len: u64) {
        self.len = len;
    }

    /// Starts groups at `first` and at every multiple of the group size after it. Cancels groups that start elsewhere.
    pub(in crate::dataset) fn regroup(&mut self, first: u64) {
        let Some(groups) = &mut self.groups else { return };
        groups.first = first;
        self.ahead.iter_mut().for_each(|ahead| ahead.ungroup(self.next));
    }

    /// Returns the next slot, or `None` at the end.
    pub(in crate::dataset) fn next(&mut self, cx: &mut Cx) -> Option<Slot<D::Item>> {
        if self.next >= self.len {
            return None;
        }
        self.foresee();
        if self.native && self.ahead.is_none() && self.slots.len() == 0 {
            self.read(u64::MAX, cx);
        }
        cx.begin_element();
        self.next_of_element(cx)
    }

    /// Like [`next`](Self::next), for an element that another pass has begun.
    pub(in crate::dataset) fn next_of_element(&mut self, cx: &mut Cx) -> Option<Slot<D::Item>> {
        if self.next >= self.len {
            return None;
        }
        let index = self.next;
        let slot = match self.ahead {
            None => match self.slots.next() {
                Some(slot) => slot,
                None => self.dataset.get(index, cx).map_err(|e| e.index(index)),
            },
            Some(_) => self.next_ahead(cx),
        };
        self.next = index + 1;
        Some(slot)
    }

    /// Moves up to `most` elements into `out` and returns their number. Stops before an index without an element, and
    /// before elements that are not evaluated yet. Returns 0 if the next slot is only available from
    /// [`next`](Self::next).
    ///
    /// Evaluates all elements of a chunk, even if the first element fails.
    pub(in crate::dataset) fn next_run(&mut self, most: usize, out: &mut Vec<D::Item>, cx: &mut Cx) -> usize {
        self.foresee();
        if self.ahead.is_none() && self.slots.len() == 0 && self.next < self.len {
            self.read(if self.native { u64::MAX } else { most as u64 }, cx);
        }
        let count = match &mut self.ahead {
            Some(ahead) => ahead.slots.run(most, out),
            None => self.slots.run(most, out),
        };
        self.next += count as u64;
        if count > 0 {
            // The consumer processes the run as a unit.
            cx.begin_element();
        }
        count
    }

    /// Returns at most `most` rows for the next elements, and at most a chunk, without consuming them. Returns `None`
    /// if rows are not available without elements.
    pub(in crate::dataset) fn next_ragged(&mut self, most: u64, names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        if !self.ragged || self.ahead.is_some() || self.slots.len() > 0 || self.next >= self.len || most == 0 {
            return None;
        }
        self.foresee();
        let mut wanted = self.next..self.len.min(self.next.saturating_add(most));
        let read = |chunk: Range<u64>, cx: &mut Cx| ragged(&*self.dataset, chunk, names, cx);
        self.pace.chunk(&mut wanted, cx, read)
    }

    /// Consumes `rows` of these rows.
    pub(in crate::dataset) fn pass_ragged(&mut self, rows: u64) {
        self.next = self.len.min(self.next.saturating_add(rows));
    }

    /// Announces the next indices to the sources.
    #[inline]
    fn foresee(&mut self) {
        if let Some(foresight) = &mut self.foresight {
            foresight.tell(&self.dataset, self.next, self.len);
        }
    }

    /// Evaluates the next chunk, of at most `most` indices.
    fn read(&mut self, most: u64, cx: &mut Cx) {
        let mut wanted = self.next..self.len.min(self.next.saturating_add(most));
        let read = |chunk, cx: &mut Cx| read_chunk(&*self.dataset, chunk, &self.pace, cx);
        self.slots = self.pace.chunk(&mut wanted, cx, read).into_iter();
    }

    fn next_ahead(&mut self, cx: &mut Cx) -> Slot<D::Item> {
        loop {
            let ahead = self.ahead.as_mut().expect("somebody evaluates");
            if let Some(slot) = ahead.slots.next() {
                return slot;
            }
            match ahead.parts.as_slice().first() {
                // The caller requests a slot, so the group does not start here.
                Some(Part::Whole(..)) => self.regroup(self.next.saturating_add(1)),
                Some(Part::Slots(_) | Part::Rows(_)) => ahead.open(),
                None => {
                    let (foresight, dataset) = (&mut self.foresight, &self.dataset);
                    let mut hand_out = |range: &Range<u64>| {
                        foresight.iter_mut().for_each(|foresight| foresight.hand_out(dataset, range))
                    };
                    ahead.receive(self.groups, self.len, &mut hand_out, self.stage, cx)?;
                }
            }
        }
    }

    /// Returns the group that starts here, with its number of indices, if it arrived as a single value.
    pub(in crate::dataset) fn next_group(&mut self, cx: &mut Cx) -> Option<(Result<G::Whole>, u64)> {
        let size = self.groups?.size;
        let Some(ahead) = self.ahead.as_mut() else { return self.group_of_columns(size, cx) };
        if self.next >= self.len || ahead.slots.len() > 0 {
            return None;
        }
        self.foresight.iter_mut().for_each(|foresight| foresight.tell(&self.dataset, self.next, self.len));
        let (foresight, dataset, len) = (&mut self.foresight, &self.dataset, self.len);
        let mut hand_out =
            |range: &Range<u64>| foresight.iter_mut().for_each(|foresight| foresight.hand_out(dataset, range));
        while ahead.parts.len() == 0 {
            if let Err(error) = ahead.receive(self.groups, len, &mut hand_out, self.stage, cx) {
                // The error belongs to the next slot.
                ahead.slots = Open::Slots([Err(error)].into_iter().collect::<Many<_>>().into_iter());
                return None;
            }
        }
        if !matches!(ahead.parts.as_slice().first(), Some(Part::Whole(..))) {
            return None;
        }
        let Some(Part::Whole(whole, indices)) = ahead.parts.next() else { return None };
        cx.begin_element();
        self.next += indices;
        Some((whole, indices))
    }
}

impl<D: MapDataset<Item: Send + 'static> + 'static, G: Gather<D::Item>> Roots<D, G> {
    /// Like [`next_group`](Self::next_group), without an evaluator: makes the group from columns.
    fn group_of_columns(&mut self, size: u64, cx: &mut Cx) -> Option<(Result<G::Whole>, u64)> {
        self.foresee();
        let end = self.len.min(self.next.saturating_add(size));
        let group = Some(self.next..end).filter(|group| !group.is_empty() && self.slots.len() == 0)?;
        let whole = of_columns(&*self.dataset, &**self.gather.as_ref()?, group, cx)?;
        cx.begin_element();
        Some((Ok(whole), end - std::mem::replace(&mut self.next, end)))
    }
}

#[cfg(test)]
mod tests {
    use crate::MapDatasetExt;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::cx::Evaluation;
    use crate::dataset::iter::{DatasetIterator, IterDataset};
    use crate::dataset::map::{RandomAccess, Range as Numbers, Source};
    use crate::dataset::run::evaluate::{Aim, Chunk, Evaluator, Incoming, Wanted, channel, groups};
    use crate::dataset::run::upcoming::Upcoming;
    use crate::sync::Locked;

    /// Shows that a user function is called when its element is requested, and no earlier.
    #[test]
    fn nobody_reads_ahead_of_who_asks() {
        let calls = Arc::new(AtomicU64::new(0));
        let counted = |calls: &Arc<AtomicU64>| {
            let calls = calls.clone();
            Numbers::new(0, 10_000).map(move |x| {
                calls.fetch_add(1, Ordering::Relaxed);
                x
            })
        };
        let (run, mut cx) = (Runtime::inline(), Cx::default());
        let mut apart = counted(&calls).to_iter().iter(&run).unwrap();
        for asked in 1..100 {
            apart.next(&mut cx).unwrap().unwrap();
            assert_eq!(calls.load(Ordering::Relaxed), asked);
        }
        calls.store(0, Ordering::Relaxed);
        let mut batches = counted(&calls).to_iter().batch(300).iter(&run).unwrap();
        for asked in 1..30 {
            assert_eq!(batches.next(&mut cx).unwrap().unwrap().len(), 300);
            assert_eq!(calls.load(Ordering::Relaxed), 300 * asked);
        }
    }

    /// Records that remember which indices were announced.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<u64>>>);

    impl RandomAccess for Told {
        type Record = u64;
        fn len(&self) -> u64 {
            40
        }
        fn read(&self, index: u64) -> Result<u64> {
            Ok(index)
        }
        fn looks_ahead(&self) -> Option<u64> {
            Some(10)
        }
        fn will_read(&self, next: Upcoming<'_>) {
            self.0.locked().extend(next.indices());
        }
    }

    #[test]
    fn a_source_is_told_again_what_is_read_after_a_seek() {
        let (told, mut cx) = (Told::default(), Cx::default());
        let dataset = Arc::new(Source::new(told.clone()).map(|x| x));
        let mut roots = Roots::new(dataset, None::<&Arc<Apart>>, &Runtime::inline(), StageId(1)).unwrap();
        let told = || std::mem::take(&mut *told.0.locked());
        assert_eq!(roots.next(&mut cx).unwrap().unwrap(), Some(0));
        assert_eq!(told(), (0..10).collect::<Vec<_>>());
        for index in [5, 5, 0, 30] {
            roots.seek(index).unwrap();
            assert_eq!(roots.next(&mut cx).unwrap().unwrap(), Some(index));
            assert_eq!(told(), (index..index + 10).collect::<Vec<_>>());
        }
    }

    /// Evaluates ranges immediately, in groups if requested, and remembers the ranges.
    struct AtOnce(Arc<Mutex<Vec<Wanted>>>);

    /// Adds four numbers.
    struct Sum;

    impl Gather<u64> for Sum {
        type Whole = u64;

        fn size(&self) -> u64 {
            4
        }
        fn takes(&self, len: u64) -> bool {
            len == 4
        }
        fn gather(&self, items: Vec<u64>, _: &mut Cx) -> Result<u64> {
            Ok(items.into_iter().sum())
        }
        fn of_columns<D: MapDataset<Item = u64>>(&self, _: &D, _: Range<u64>, _: &mut Cx) -> Option<u64> {
            None
        }
        #[cfg(all(feature = "workers", target_os = "linux"))]
        fn stacks(&self) -> bool {
            false
        }
        #[cfg(all(feature = "workers", target_os = "linux"))]
        fn stack(
            &self,
            _: &Vec<u64>,
            _: &mut Cx,
            _: &mut crate::dataset::run::evaluate::StackInto<'_>,
        ) -> Option<Result<bool>> {
            None
        }
    }

    impl Evaluator<u64, u64> for AtOnce {
        fn window(&self) -> usize {
            1
        }
        fn aim(&self) -> Aim {
            Aim { time: Duration::from_millis(2), slots: 4, bytes: usize::MAX }
        }
        fn gathers(&self) -> bool {
            true
        }
        fn submit(&self, wanted: Wanted) -> Incoming<Chunk<u64, u64>> {
            let (outgoing, incoming) = channel();
            let range = wanted.range.clone();
            let parts = match wanted.grouped {
                true => groups(range, 4)
                    .map(|group| Part::Whole(Ok(group.clone().sum()), group.end - group.start))
                    .collect(),
                false => vec![Part::Slots(range.map(|index| Ok(Some(index))).collect())],
            };
            self.0.locked().push(wanted);
            outgoing.chunks.send(Ok(Chunk { parts, made: Evaluation::now(Duration::ZERO) })).unwrap();
            incoming
        }
    }

    #[test]
    fn groups_begin_after_a_regroup_where_batches_do() {
        let ranges = Arc::<Mutex<Vec<Wanted>>>::default();
        let (dataset, run, mut cx) = (Arc::new(Source::new(Told::default())), Runtime::inline(), Cx::default());
        let mut roots = Roots::new(dataset, Some(&Arc::new(Sum)), &run, StageId(0)).unwrap();
        roots.ahead = Some(Ahead::new(Box::new(AtOnce(ranges.clone()))));
        let grouped = |ranges: &Mutex<Vec<Wanted>>| {
            let all = std::mem::take(&mut *ranges.locked());
            all.into_iter().filter(|wanted| wanted.grouped).map(|wanted| wanted.range.start).collect::<Vec<_>>()
        };
        // Batches start at 3 and at every fourth index after it. No group is made before the time per index is known.
        for from in [3, 18] {
            roots.seek(from).unwrap();
            roots.regroup(from);
            let mut groups = 0;
            while roots.position() < from + 12 {
                match roots.next_group(&mut cx) {
                    Some((sum, indices)) => {
                        let start = roots.position() - 4;
                        assert_eq!((sum.unwrap(), indices, (start - from) % 4), (4 * start + 6, 4, 0));
                        groups += 1;
                    }
                    None => drop(roots.next(&mut cx).unwrap().unwrap()),
                }
            }
            let starts = grouped(&ranges);
            assert!(starts.iter().all(|start| (start - from) % 4 == 0), "{starts:?}");
            assert!(groups >= 2, "of the 3 batches after {from} the first alone may be made of slots");
        }
    }

    #[test]
    fn ranges_grow_until_time_bytes_or_slots_are_what_they_should_be() {
        let aim = Aim { time: Duration::from_millis(2), slots: 1000, bytes: 1 << 20 };
        let settled = |ns: u64, bytes: u64| (0..30).fold(1, |size, _| aim.next_size(size, ns, bytes));
        assert_eq!(settled(100, 0), 1000);
        assert_eq!(settled(0, 0), 1000);
        assert_eq!(settled(10_000, 0), 200);
        assert_eq!(settled(10_000, 16 << 10), 64);
        assert_eq!(settled(50_000_000, 0), 1);
        assert_eq!(settled(100, 64 << 20), 1);
        assert_eq!(aim.next_size(8, 1, 1), 16);
    }
}
