//! Ranges of indices that are evaluated ahead of the consumer: their size, their number in flight, and their results.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use super::evaluate::{Chunk, Evaluator, Incoming, Wanted};
use crate::cx::{Cx, ElementGroup, Evaluation, StageId, Taken};
use crate::dataset::map::ManySlots;
use crate::element::{Part, Rows, Slot};
use crate::error::Result;

/// Groups that take longer are evaluated in parts by all evaluators, and combined by the reader. A single evaluator
/// would deliver the first of such groups late. All groups in flight together would hold too many elements.
const GROUP_TIME: Duration = Duration::from_millis(10);

/// A chunk is late if its indices take more than this multiple of the usual time.
const LATE: u32 = 3;

/// Groups of indices: `size` indices from `first` on, then the next `size`, and so on.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    pub(super) size: u64,
    pub(super) first: u64,
}

impl Groups {
    /// Returns the start of the first group at or after `index`.
    fn start_from(self, index: u64) -> u64 {
        let past = index.saturating_sub(self.first).checked_next_multiple_of(self.size);
        past.and_then(|past| self.first.checked_add(past)).unwrap_or(u64::MAX)
    }
}

/// Ranges that are dispatched and not yet delivered.
pub(super) struct Ahead<T, W> {
    evaluator: Box<dyn Evaluator<T, W>>,
    pending: VecDeque<Pending<T, W>>,
    /// Parts of the latest chunk.
    pub(super) parts: std::vec::IntoIter<Part<T, W>>,
    pub(super) slots: Open<T>,
    dispatched: u64,
    chunk: u64,
    /// Time per index in the latest chunk.
    each: Option<Duration>,
    /// Moving average of the time per index; `None` before the first chunk.
    usual: Option<Duration>,
}

/// The next slots.
pub(in crate::dataset) enum Open<T> {
    Slots(ManySlots<T>),
    Rows(Rows<T>),
}

default_as!(<T> Open<T>, Self::Slots(ManySlots::default()));

impl<T> Open<T> {
    /// Returns the slots of a part, or no slots for a group.
    pub(in crate::dataset) fn of<W>(part: Part<T, W>) -> Self {
        match part {
            Part::Slots(slots) => Self::Slots(slots.into_iter()),
            Part::Rows(rows) => Self::Rows(rows),
            Part::Whole(..) => Self::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Slots(slots) => slots.len(),
            Self::Rows(rows) => rows.len(),
        }
    }

    /// Moves up to `most` elements into `out` and returns their number. Stops before an index without an element.
    pub(super) fn run(&mut self, most: usize, out: &mut Vec<T>) -> usize {
        match self {
            Self::Slots(slots) => slots.run(most, out),
            Self::Rows(rows) => {
                let before = out.len();
                out.extend(rows.by_ref().take(most));
                out.len() - before
            }
        }
    }
}

impl<T> Iterator for Open<T> {
    type Item = Slot<T>;

    fn next(&mut self) -> Option<Slot<T>> {
        match self {
            Self::Slots(slots) => slots.next(),
            Self::Rows(rows) => rows.next().map(|item| Ok(Some(item))),
        }
    }
}

struct Pending<T, W> {
    incoming: Incoming<Chunk<T, W>>,
    /// End of the range, exclusive.
    end: u64,
    /// Number of indices whose results have not arrived.
    left: u64,
    grouped: bool,
}

impl<T, W> Ahead<T, W> {
    /// Creates an empty queue of ranges for `evaluator`.
    pub(super) fn new(evaluator: Box<dyn Evaluator<T, W>>) -> Self {
        Self {
            evaluator,
            pending: VecDeque::new(),
            parts: Vec::new().into_iter(),
            slots: Open::default(),
            dispatched: 0,
            chunk: 1,
            each: None,
            usual: None,
        }
    }

    /// Moves to `index` and discards the dispatched ranges.
    pub(super) fn seek(&mut self, index: u64) {
        self.call_off(0, index);
        self.parts = Vec::new().into_iter();
        self.slots = Open::default();
    }

    /// Cancels results that arrived or will arrive as groups, because groups start elsewhere now. `next` is the next
    /// index to deliver.
    pub(super) fn ungroup(&mut self, next: u64) {
        if self.parts.as_slice().iter().any(|part| matches!(part, Part::Whole(..))) {
            self.parts = Vec::new().into_iter();
            self.call_off(0, next + self.slots.len() as u64);
        } else if let Some(at) = self.pending.iter().position(|pending| pending.grouped) {
            self.call_off(at, self.pending[at].end - self.pending[at].left);
        }
    }

    /// Cancels the pending ranges from position `at` on. `dispatched` is the first index after the remaining ranges.
    fn call_off(&mut self, at: usize, dispatched: u64) {
        self.pending.truncate(at);
        self.dispatched = dispatched;
    }

    /// Opens the slots of the next part.
    pub(super) fn open(&mut self) {
        if let Some(part) = self.parts.next().filter(|part| !matches!(part, Part::Whole(..))) {
            self.slots = Open::of(part);
        }
    }

    /// Receives the next chunk in order. Calls `hand_out` with each range that is dispatched.
    pub(super) fn receive(
        &mut self,
        groups: Option<Groups>,
        len: u64,
        hand_out: &mut dyn FnMut(&Range<u64>),
        stage: StageId,
        cx: &mut Cx,
    ) -> Result<()> {
        self.dispatch(groups, len, hand_out);
        let head = self.pending.front_mut().expect("an index below the length was dispatched");
        let (chunk, wait) = head.incoming.receive(cx);
        let chunk = chunk?;
        let indices = chunk.parts.iter().map(Part::len).sum();
        let first = head.end.saturating_sub(head.left);
        head.left = head.left.saturating_sub(indices);
        let (made, took) = (chunk.made, chunk.made.took());
        let is_late =
            self.is_late(made.own(took), indices) || made.slowest.is_some_and(|piece| self.is_most(piece, &made));
        let idle = wait.is_some() && self.behind_is_there();
        cx.taken(stage, &Taken { first, count: indices, made, wait, idle, holds_up: is_late && idle });
        if self.pending.front().is_some_and(|head| head.left == 0) {
            self.pending.pop_front();
        }
        self.learn(indices, took, made.bytes);
        self.parts = chunk.parts.into_iter();
        self.dispatch(groups, len, hand_out);
        Ok(())
    }

    /// Returns true if a chunk of `indices` took much longer than usual.
    fn is_late(&self, took: Duration, indices: u64) -> bool {
        let many = u32::try_from(indices.max(1)).unwrap_or(u32::MAX);
        self.usual.is_some_and(|usual| took > usual.saturating_mul(many).saturating_mul(LATE))
    }

    /// Returns true if a piece took more than half the time of its chunk, and much longer than usual.
    fn is_most(&self, piece: ElementGroup, made: &Evaluation) -> bool {
        2 * piece.took > made.took() && self.is_late(made.own(piece.took), piece.count)
    }

    /// Returns true if at least half of the ranges after the first have a chunk ready, or if there are no such ranges.
    fn behind_is_there(&self) -> bool {
        let behind = self.pending.iter().skip(1);
        let there = behind.clone().filter(|pending| pending.incoming.is_there()).count();
        2 * there >= behind.count()
    }

    /// Dispatches ranges until the evaluator's window is full.
    fn dispatch(&mut self, groups: Option<Groups>, len: u64, hand_out: &mut dyn FnMut(&Range<u64>)) {
        let window = self.evaluator.window();
        while self.dispatched < len {
            let wanted = self.plan(groups, len);
            // Of oversized ranges, one per evaluator and a spare are enough.
            let large = wanted.range.end - wanted.range.start > self.chunk;
            if self.pending.len() >= if large { 1 + window.div_ceil(2) } else { window } {
                return;
            }
            let (end, left, grouped) = (wanted.range.end, wanted.range.end - self.dispatched, wanted.grouped);
            hand_out(&wanted.range);
            let incoming = self.evaluator.submit(wanted);
            self.pending.push_back(Pending { incoming, end, left, grouped });
            self.dispatched = end;
        }
    }

    /// Plans the next range: whole groups if a group starts here and is fast enough; otherwise slots up to the start of
    /// a group.
    fn plan(&self, groups: Option<Groups>, len: u64) -> Wanted {
        let start = self.dispatched;
        let aligns = self.evaluator.aligns();
        let until =
            |indices: u64| len.min(if aligns { aligned_end(start, indices) } else { start.saturating_add(indices) });
        let Some(groups) = groups.filter(|_| self.evaluator.gathers()) else {
            return Wanted { range: start..until(self.chunk), grouped: false };
        };
        let begins = groups.start_from(start);
        // Before the first chunk arrives, the time of a group is unknown.
        let quick = |each: Duration| each.as_nanos().saturating_mul(groups.size.into()) <= GROUP_TIME.as_nanos();
        if begins == start && self.each.is_some_and(quick) {
            let (number, first) = ((self.chunk / groups.size).max(1), (start - groups.first) / groups.size);
            let last = if aligns { aligned_end(first, number) } else { first + number };
            let end = len.min(groups.first.saturating_add(last.saturating_mul(groups.size)));
            return Wanted { range: start..end, grouped: true };
        }
        // Ends at the last start of a group within the chunk, so that the next range can consist of groups. If no group
        // starts within the chunk, the range ends with the chunk.
        let first = if begins == start { groups.start_from(start.saturating_add(1)) } else { begins };
        let whole = start.saturating_add(self.chunk).saturating_sub(first) / groups.size * groups.size;
        let end = if start.saturating_add(self.chunk) < first {
            until(self.chunk)
        } else {
            len.min(first.saturating_add(whole))
        };
        Wanted { range: start..end, grouped: false }
    }

    /// Records that `len` indices took this time and number of bytes.
    fn learn(&mut self, len: u64, took: Duration, bytes: u64) {
        let each = took.as_nanos() as u64 / len.max(1);
        self.chunk = self.evaluator.aim().next_size(self.chunk, each, bytes / len.max(1));
        let each = Duration::from_nanos(each);
        self.each = Some(each);
        self.usual = Some(self.usual.map_or(each, |usual| (7 * usual + each) / 8));
    }
}

/// Returns the end of a range of about `size` indices from `start` on. Rounds `size` down to a power of two, and ends
/// at a multiple of it. Ranges of similar size therefore end at equal indices, even if their passes started
/// at different indices.
fn aligned_end(start: u64, size: u64) -> u64 {
    let size = 1 << size.max(1).ilog2();
    (start / size).saturating_add(1).saturating_mul(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::run::evaluate::Aim;

    /// Evaluates nothing.
    struct Idle;

    impl Evaluator<i64, ()> for Idle {
        fn window(&self) -> usize {
            4
        }
        fn aim(&self) -> Aim {
            Aim { time: Duration::from_millis(2), slots: 1024, bytes: 1 << 20 }
        }
        fn gathers(&self) -> bool {
            true
        }
        fn submit(&self, _: Wanted) -> Incoming<Chunk<i64, ()>> {
            unreachable!("ranges are planned, and not handed out")
        }
    }

    /// Returns the first range of groups of 8, after a chunk of `count` indices that took a number of microseconds, if
    /// given.
    fn planned(chunk: Option<(u64, u64)>) -> (Range<u64>, bool) {
        let mut ahead = Ahead::new(Box::new(Idle));
        if let Some((count, us)) = chunk {
            ahead.learn(count, Duration::from_micros(us), 0);
        }
        let Wanted { range, grouped } = ahead.plan(Some(Groups { size: 8, first: 0 }), 1000);
        (range, grouped)
    }

    #[test]
    fn a_group_is_evaluated_whole_unless_it_takes_longer_than_10_ms() {
        assert_eq!(planned(None), (0..1, false), "its time is not known yet");
        assert_eq!(planned(Some((1, 1))), (0..8, true));
        assert_eq!(planned(Some((1, 1250))), (0..8, true), "10 ms");
        assert_eq!(planned(Some((1, 1251))), (0..1, false), "10.008 ms");
        assert_eq!(planned(Some((4, 4 * 1250))), (0..8, true), "the mean of a chunk counts");
        assert_eq!(planned(Some((1, 4000))), (0..1, false));
    }

    #[test]
    fn a_chunk_is_late_if_it_takes_more_than_three_times_as_long_as_others() {
        let mut ahead = Ahead::new(Box::new(Idle));
        let us = Duration::from_micros;
        assert!(!ahead.is_late(us(1_000_000), 1), "there are no others");
        ahead.learn(10, us(1000), 0);
        assert!(!ahead.is_late(us(300), 1) && ahead.is_late(us(301), 1));
        assert!(!ahead.is_late(us(3000), 10) && ahead.is_late(us(3001), 10));
        let piece = |us: u64| ElementGroup { stage: None, index: 0, count: 1, took: Duration::from_micros(us) };
        let made = |took: u64| Evaluation::now(us(took));
        assert!(ahead.is_most(piece(501), &made(1000)) && !ahead.is_most(piece(500), &made(1000)), "half of the chunk");
        assert!(!ahead.is_most(piece(299), &made(300)), "as long as others");
        // The time was lost to other programs on the core, or to other threads holding the interpreter lock.
        let mut delayed = made(5000);
        (delayed.off.queued_ns, delayed.off.lock_ns) = (4_000_000, 800_000);
        assert_eq!((delayed.own(us(5000)), delayed.own(us(100))), (us(200), us(0)));
        assert!(!ahead.is_most(piece(4900), &delayed) && ahead.is_most(piece(4900), &made(5000)));
        // Recent elements are slower.
        (0..40).for_each(|_| ahead.learn(10, us(4000), 0));
        assert!(!ahead.is_late(us(1100), 1) && ahead.is_late(us(1201), 1));
    }

    #[test]
    fn ranges_of_passes_that_learn_other_sizes_soon_end_at_the_same_places() {
        let ends = |mut at: u64, sizes: [u64; 4]| {
            sizes.map(|size| {
                at = aligned_end(at, size);
                at
            })
        };
        assert_eq!(ends(0, [1, 5, 100, 120]), [1, 4, 64, 128]);
        assert_eq!(ends(37, [70, 90, 127, 64]), [64, 128, 192, 256]);
        assert_eq!(aligned_end(u64::MAX - 1, 1 << 40), u64::MAX);
    }
}
