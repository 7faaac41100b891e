use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::rng::EpochShuffle;

/// Numbers that report a size of `BYTES` each, with `ROWS` of them in a unit.
struct Numbers(Vec<u64>);

const ROWS: u64 = 50;
const BYTES: u64 = 1000;

impl Unit for Numbers {
    fn memory(&self) -> usize {
        BYTES as usize * self.0.len()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn only(&self, rows: &[u32]) -> Option<Self> {
        rows.iter().map(|&row| self.0.get(row as usize).copied()).collect::<Option<_>>().map(Self)
    }
}

/// Source of the numbers, with the count of decoded units.
struct Source {
    units: Units<Numbers>,
    len: u64,
    /// Number of rows in a unit.
    rows: u64,
    decoded: AtomicUsize,
}

impl Source {
    fn new(len: u64, budget: usize) -> Self {
        Self { units: Units::new(budget, len, BYTES * len), len, rows: ROWS, decoded: AtomicUsize::new(0) }
    }

    fn find(&self, index: u64) -> Result<(Key, usize)> {
        let at = Some(((0, index / self.rows), (index % self.rows) as usize)).filter(|_| index < self.len);
        at.ok_or_else(|| Error::data("no such row").record(index))
    }

    fn read_many(&self, indices: &[u64]) -> Vec<u64> {
        let decode = |index: u64| {
            self.decoded.fetch_add(1, Ordering::Relaxed);
            let first = index / self.rows * self.rows;
            Ok(Numbers((first..self.len.min(first + self.rows)).collect()))
        };
        self.read_by(indices, decode).dense().unwrap()
    }

    fn read_by(&self, indices: &[u64], decode: impl Fn(u64) -> Result<Numbers>) -> Many<u64> {
        let read = |unit: &Numbers, place: usize, _| Ok(unit.0[place]);
        let one = |index| self.units.read_one(index, self.find(index)?, || decode(index), read);
        self.units.read_many(indices, |index| self.find(index).ok(), &decode, read, one)
    }

    fn tell(&self, indices: &[u64], wanted: &Arc<()>) {
        self.units.tell(Upcoming::new(indices, &Arc::downgrade(wanted)), |index| self.find(index).ok());
    }

    fn kept(&self) -> usize {
        self.units.lock().kept.bytes()
    }

    /// Reads `order` in chunks, and announces the rows in the window if `tells`. Returns the number of decodings.
    fn pass(&self, order: &[u64], tells: bool) -> usize {
        let (before, wanted, mut told) = (self.decoded.load(Ordering::Relaxed), Arc::default(), 0);
        for (at, chunk) in (0..).step_by(16).zip(order.chunks(16)) {
            let end = order.len().min(at + self.units.looks_ahead(false) as usize);
            if tells && end > told {
                self.tell(&order[told.max(at)..end], &wanted);
                told = end;
            }
            assert_eq!(self.read_many(chunk), chunk);
            let largest = (BYTES * self.rows) as usize;
            assert!(self.kept() <= self.units.budget.max(largest) + largest, "{}", self.kept());
        }
        self.decoded.load(Ordering::Relaxed) - before
    }
}

fn shuffled(len: u64, seed: u32) -> Vec<u64> {
    let mut order: Vec<u64> = (0..len).collect();
    EpochShuffle::new(len, seed).get_many(&mut order);
    order
}

#[test]
fn rows_that_are_told_of_share_a_decoding() {
    // A quarter of the data fits, so a decoding serves nearly a quarter of the rows in a unit.
    let (len, order) = (40_000, shuffled(40_000, 7));
    let untold = Source::new(len, 10 << 20).pass(&order, false);
    let told = Source::new(len, 10 << 20).pass(&order, true);
    assert!(untold > 25_000, "{untold}");
    assert!(told < 4_500, "{told}");
}

#[test]
fn what_has_room_is_decoded_once() {
    let source = Source::new(40_000, 40 << 20);
    let order = shuffled(40_000, 7);
    assert_eq!((source.pass(&order, true), source.pass(&order, true)), (800, 0));
    assert_eq!(source.units.looks_ahead(false), 0);
    let decoded = source.units.take_decoded();
    assert_eq!(decoded, Some(Decoded { units: 800, records: 40_000, read: 80_000 }));
    assert_eq!(source.units.take_decoded(), None);
}

#[test]
fn what_is_read_in_order_is_decoded_once_however_little_has_room() {
    let source = Source::new(40_000, 500_000);
    let order: Vec<u64> = (0..40_000).collect();
    assert_eq!(source.pass(&order, true), 800);
    // Every third row is announced, and read while its unit is in memory.
    let order: Vec<u64> = (0..40_000).step_by(3).collect();
    assert_eq!(source.pass(&order, true), 800);
}

#[test]
fn a_pass_that_has_ended_keeps_nothing() {
    let source = Source::new(40_000, 10 << 20);
    let order = shuffled(40_000, 3);
    let gone = Arc::default();
    source.tell(&order, &gone);
    source.read_many(&order[..2_000]);
    drop(gone);
    assert!(!source.units.lock().told.is_live());
    let order = shuffled(40_000, 4);
    let fresh = Source::new(40_000, 10 << 20).pass(&order, true);
    let told = source.pass(&order, true);
    assert!(told < fresh + fresh / 4, "{told} beside {fresh}");
}

#[test]
fn copies_that_turn_out_too_large_make_the_window_smaller() {
    /// A unit whose copies take nearly as much memory as the whole unit.
    struct Stubborn(usize);
    impl Unit for Stubborn {
        fn memory(&self) -> usize {
            1000 - usize::from(self.0 < 50)
        }
        fn len(&self) -> usize {
            50
        }
        fn only(&self, rows: &[u32]) -> Option<Self> {
            Some(Self(rows.len()))
        }
    }
    let units = Units::new(100_000, 50_000, 1_000_000);
    let before = units.looks_ahead(false);
    let (order, wanted) = (shuffled(50_000, 1), Arc::new(()));
    let find = |index: u64| Some(((0, index / 50), (index % 50) as usize));
    units.tell(Upcoming::new(&order[..before as usize], &Arc::downgrade(&wanted)), find);
    for &index in &order[..1_000] {
        let (key, row) = find(index).unwrap();
        units.get_or_decode(key, std::iter::once(row), || Ok(Stubborn(50))).unwrap();
    }
    let after = units.looks_ahead(false);
    assert!(after > 0 && after < before, "{after} after {before}");
}

/// Two threads with separate ranges read rows in an order that differs from the announced order.
#[test]
fn decodings_stay_as_few_epoch_after_epoch() {
    let (len, ranges) = (20_000, 512);
    let source = Source::new(len, 4 << 20);
    let mut random = 1u64;
    let mut decoded = Vec::new();
    for epoch in 0..12 {
        let (order, wanted, mut told) = (shuffled(len, epoch), Arc::default(), 0);
        let before = source.decoded.load(Ordering::Relaxed);
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut next = 0;
        while next < order.len() || !open.is_empty() {
            while open.len() < 4 && next < order.len() {
                open.push((next, order.len().min(next + ranges)));
                next += ranges;
            }
            let end = order.len().min(open[0].0 + source.units.looks_ahead(false) as usize);
            if end > told {
                source.tell(&order[told..end], &wanted);
                told = end;
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (random >> 60) as usize % open.len();
            let (from, to) = open[at];
            let chunk = &order[from..to.min(from + 16)];
            assert_eq!(source.read_many(chunk), chunk);
            open[at].0 += chunk.len();
            open.retain(|(from, to)| from < to);
        }
        decoded.push(source.decoded.load(Ordering::Relaxed) - before);
    }
    let (early, late) = (decoded[1], decoded[11]);
    assert!(late <= early + early / 5, "{decoded:?}");
}

/// Ranges that are handed out ahead of the readers take a share of the budget. If the window is counted from the rows
/// read, it includes these ranges, and few units are decoded again. If the window is added to these ranges, it settles
/// at a smaller size instead of oscillating.
#[test]
fn the_window_holds_what_is_handed_out_ahead() {
    let (len, order) = (200_000, shuffled(200_000, 11));
    let new = || Source { rows: 1_000, ..Source::new(len, 16 << 20) };
    let alone = new().pass(&order, true);
    for (counts_from_read, most) in [(true, alone + alone / 4), (false, 3 * alone)] {
        let (source, wanted, mut told, mut handed) = (new(), Arc::default(), 0, 0);
        for (at, chunk) in (0..).step_by(16).zip(order.chunks(16)) {
            let window = source.units.looks_ahead(false) as usize;
            // Two ranges are in progress, each a quarter of the window.
            while handed < order.len() && handed < at + window / 2 {
                let from = if counts_from_read { at } else { handed };
                let end = order.len().min((from + window).max(handed + window / 4));
                if end > told {
                    source.tell(&order[told..end], &wanted);
                    told = end;
                }
                handed += window / 4;
            }
            assert_eq!(source.read_many(chunk), chunk);
        }
        let decoded = source.decoded.load(Ordering::Relaxed);
        assert!(decoded < most, "{decoded} beside {alone}, counted from what was read: {counts_from_read}");
    }
}

#[test]
fn one_decodes_while_others_wait() {
    let (source, order) = (Source::new(50, 100_000), (0..50).collect::<Vec<u64>>());
    std::thread::scope(|scope| {
        (0..4).for_each(|_| drop(scope.spawn(|| source.read_many(&order))));
    });
    assert_eq!(source.decoded.load(Ordering::Relaxed), 1);
}

#[test]
fn an_error_of_a_unit_is_one_of_each_of_its_rows() {
    let source = Source::new(100, 1_000);
    let decode = |index: u64| {
        if index < ROWS { Err(Error::data("damaged").record(index)) } else { Ok(Numbers(vec![index; ROWS as usize])) }
    };
    let many = source.read_by(&[60, 3, 500, 7], decode);
    let slots: Vec<String> =
        many.into_iter().map(|slot| slot.map_or_else(|e| e.to_string(), |x| format!("{x:?}"))).collect();
    assert_eq!(slots, ["Some(60)", "record 3: damaged", "record 500: no such row", "record 7: damaged"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Reads return the right rows with any announcements, partial or wrong, and with any budget.
    #[test]
    fn rows_are_the_same_whatever_is_told(
        len in 1u64..2_000,
        budget in 0usize..2_500_000,
        reads in prop::collection::vec((0u64..2_000, 1usize..40, any::<bool>(), any::<bool>()), 1..60),
    ) {
        let source = Source::new(len, budget);
        let order = shuffled(len, 5);
        let mut wanted = Arc::default();
        for (from, count, told, ends) in reads {
            let indices: Vec<u64> = order.iter().cycle().skip(from as usize).take(count).copied().collect();
            if told {
                source.tell(&indices, &wanted);
            }
            prop_assert_eq!(source.read_many(&indices[count / 2..]), &indices[count / 2..]);
            if ends {
                wanted = Arc::default();
            }
        }
    }
}
