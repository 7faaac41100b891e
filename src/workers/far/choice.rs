//! Whether blocks are packed for a link: what is measured of it, and what follows from that.
//!
//! A byte as it lies takes `1 / speed` of the link's time. Packed it takes the worker's time to pack it, as much less of the link's, and the time to
//! unpack it here. The way that takes least is chosen, and since links and data change, the others are tried now and then.

use std::time::Duration;

use crate::wire::parcel::Packing;

/// Ways to pack.
const WAYS: [Packing; 2] = [Packing::Narrow, Packing::Lz4];
/// What is shorter says nothing of a link: it waits for other things longer than it is on its way.
const LEAST_BLOCK: u64 = 64 << 10;
/// Tasks after which a way is tried again.
const TRY_AGAIN: u64 = 64;
/// The same of a way that could not pay even if nothing of a block were left.
const HARDLY_EVER: u64 = 1024;
/// Another way is chosen where it takes no more than this share of the time of that in use: they are measured, and so not quite right.
const BETTER: f64 = 0.95;
/// The share that all of before keeps of a rate with each measurement: of a link, which is measured with each block, and of a way, which may be
/// measured once in a while.
const KEPT: f64 = 0.85;
const KEPT_OF_WAY: f64 = 0.5;

/// An amount for each other, as of late: each measurement counts less with each that follows, and as much as it is large.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    amount: f64,
    each: f64,
}

impl Rate {
    fn add(&mut self, kept: f64, amount: f64, each: f64) {
        (self.amount, self.each) = (kept * self.amount + amount, kept * self.each + each);
    }

    fn get(self) -> Option<f64> {
        (self.amount > 0.0 && self.each > 0.0).then(|| self.amount / self.each)
    }
}

/// A way to pack, as it was measured.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Seconds that packing and unpacking take, for each byte.
    pack: Rate,
    unpack: Rate,
    /// Bytes that are left of each.
    left: Rate,
    /// The task that last tried it.
    tried: Option<u64>,
}

impl Way {
    fn work(&self) -> Option<f64> {
        Some(self.pack.get()? + self.unpack.get().unwrap_or(0.0))
    }
}

/// A block that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    /// Its bytes, and those that crossed.
    pub(super) raw: u64,
    pub(super) wire: u64,
    /// The way in which the worker was to pack it, and how long that took.
    pub(super) packing: Packing,
    pub(super) packed_in: Duration,
    /// The time that the link was busy with it, where that could be seen.
    pub(super) took: Option<Duration>,
}

/// A link, as far as it is known, and the way that is best for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    /// Bytes a second.
    speed: Rate,
    ways: [Way; 2],
    best: Packing,
    tasks: u64,
    /// The task at which the link was last measured, or a block was asked for as it lies to measure it.
    measured: u64,
}

impl Choice {
    /// The way for the answer to the next task.
    pub(super) fn next(&mut self) -> Packing {
        self.tasks += 1;
        let Some(speed) = self.speed() else { return Packing::Plain };
        let (tasks, best) = (self.tasks, self.best);
        // Packed, blocks may be too small to say anything.
        if tasks - self.measured >= TRY_AGAIN {
            self.measured = tasks;
            return Packing::Plain;
        }
        for (way, packing) in self.ways.iter_mut().zip(WAYS).filter(|(_, packing)| *packing != best) {
            let hopeless = way.work().is_some_and(|work| work * speed >= 1.0);
            let wait = if hopeless { HARDLY_EVER } else { TRY_AGAIN };
            if way.tried.is_none_or(|tried| tasks - tried >= wait) {
                way.tried = Some(tasks);
                return packing;
            }
        }
        best
    }

    /// A block has arrived.
    pub(super) fn arrived(&mut self, block: &Arrived) {
        if let Some(took) = block.took.filter(|_| block.wire >= LEAST_BLOCK) {
            self.measured = self.tasks;
            self.speed.add(KEPT, block.wire as f64, took.as_secs_f64());
        }
        if let Some(way) = self.way(block.packing) {
            way.pack.add(KEPT_OF_WAY, block.packed_in.as_secs_f64(), block.raw as f64);
            way.left.add(KEPT_OF_WAY, block.wire as f64, block.raw as f64);
        }
        self.choose();
    }

    /// A block of so many bytes was unpacked.
    pub(super) fn unpacked(&mut self, packing: Packing, raw: u64, took: Duration) {
        if let Some(way) = self.way(packing) {
            way.unpack.add(KEPT_OF_WAY, took.as_secs_f64(), raw as f64);
        }
    }

    /// Bytes a second, where they were measured.
    pub(super) fn speed(&self) -> Option<f64> {
        self.speed.get()
    }

    /// The way that takes least time.
    pub(super) fn best(&self) -> Packing {
        self.best
    }

    fn way(&mut self, packing: Packing) -> Option<&mut Way> {
        let at = WAYS.iter().position(|way| *way == packing)?;
        self.ways.get_mut(at)
    }

    fn choose(&mut self) {
        let Some(speed) = self.speed() else { return };
        let cost = |packing: Packing| match WAYS.iter().position(|way| *way == packing) {
            None => Some(1.0 / speed),
            Some(at) => Some(self.ways[at].work()? + self.ways[at].left.get()? / speed),
        };
        let known = [Packing::Plain, Packing::Narrow, Packing::Lz4].map(|packing| (packing, cost(packing)));
        let least = known.into_iter().filter_map(|(packing, cost)| Some((packing, cost?)));
        let Some((packing, least)) = least.min_by(|(_, a), (_, b)| a.total_cmp(b)) else { return };
        // What is less work need not be better by as much.
        let asked = if (packing as u8) < self.best as u8 { 1.0 } else { BETTER };
        if cost(self.best).is_none_or(|now| least < asked * now) {
            self.best = packing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: u64 = 8 << 20;

    /// A link and data, as they are.
    #[derive(Clone, Copy)]
    struct World {
        /// Bytes a second.
        link: f64,
        /// Of each way, the bytes a second that it packs, that it unpacks, and the share that it leaves.
        narrow: (f64, f64, f64),
        lz4: (f64, f64, f64),
    }

    // As `benches/parcel.rs` has measured them.
    const TOKENS: World = World { link: 0.0, narrow: (3.7e9, 12.3e9, 0.39), lz4: (2.1e9, 9.7e9, 0.26) };
    const IMAGES: World = World { link: 0.0, narrow: (3.1e9, 14e9, 1.0), lz4: (2.4e8, 9.4e8, 0.68) };
    const TEXT: World = World { link: 0.0, narrow: (3e9, 14e9, 1.0), lz4: (2.8e8, 1.3e9, 0.61) };
    /// What is packed already.
    const NOISE: World = World { link: 0.0, narrow: (3e9, 14e9, 1.0), lz4: (6e8, 14e9, 1.0) };

    const MBIT: f64 = 1e6 / 8.0;

    impl World {
        fn at(self, link: f64) -> Self {
            Self { link, ..self }
        }

        /// Has so many blocks cross, and returns how many did in each way.
        fn run(self, choice: &mut Choice, blocks: usize) -> [usize; 3] {
            let mut ways = [0; 3];
            for _ in 0..blocks {
                let packing = choice.next();
                ways[packing as usize] += 1;
                let (pack, unpack, left) = match packing {
                    Packing::Plain => (f64::INFINITY, f64::INFINITY, 1.0),
                    Packing::Narrow => self.narrow,
                    Packing::Lz4 => self.lz4,
                };
                let time = |speed: f64| Duration::from_secs_f64(RAW as f64 / speed);
                let wire = (RAW as f64 * left) as u64;
                let took = Some(Duration::from_secs_f64(wire as f64 / self.link));
                choice.arrived(&Arrived { raw: RAW, wire, packing, packed_in: time(pack), took });
                if left < 1.0 {
                    choice.unpacked(packing, RAW, time(unpack));
                }
            }
            ways
        }

        /// The way in which most of many blocks cross, and how many do not.
        fn settles(self) -> (Packing, usize) {
            let mut choice = Choice::default();
            let ways = self.run(&mut choice, 1000);
            assert!(ways[choice.best() as usize] > 900, "{ways:?}");
            (choice.best(), 1000 - ways[choice.best() as usize])
        }
    }

    #[test]
    fn a_slow_link_has_blocks_packed_and_a_fast_one_as_they_lie() {
        for (world, mbit, best) in [
            (TOKENS, 200.0, Packing::Lz4),
            (TOKENS, 1000.0, Packing::Lz4),
            (TOKENS, 10_000.0, Packing::Narrow),
            (TOKENS, 25_000.0, Packing::Plain),
            (TEXT, 200.0, Packing::Lz4),
            (TEXT, 10_000.0, Packing::Plain),
            (IMAGES, 200.0, Packing::Lz4),
            (IMAGES, 1000.0, Packing::Plain),
            (IMAGES, 10_000.0, Packing::Plain),
            (NOISE, 200.0, Packing::Plain),
            (NOISE, 10_000.0, Packing::Plain),
        ] {
            let (found, others) = world.at(mbit * MBIT).settles();
            assert_eq!(found, best, "{mbit} Mbit/s");
            assert!(others <= 40, "{others} of 1000 blocks crossed otherwise at {mbit} Mbit/s");
        }
        let (_, others) = TOKENS.at(100_000.0 * MBIT).settles();
        assert!(others <= 4, "what cannot pay was tried {others} times");
    }

    #[test]
    fn a_link_or_data_that_change_are_noticed() {
        let mut choice = Choice::default();
        for (world, mbit, best) in [
            (TOKENS, 25_000.0, Packing::Plain),
            (TOKENS, 200.0, Packing::Lz4),
            (NOISE, 200.0, Packing::Plain),
            (TEXT, 200.0, Packing::Lz4),
            (IMAGES, 1000.0, Packing::Plain),
            (TOKENS, 10_000.0, Packing::Narrow),
            (TOKENS, 200.0, Packing::Lz4),
            (TOKENS, 25_000.0, Packing::Plain),
        ] {
            world.at(mbit * MBIT).run(&mut choice, 250);
            assert_eq!(choice.best(), best, "{mbit} Mbit/s");
            let speed = choice.speed().unwrap() / MBIT;
            assert!((0.99..1.01).contains(&(speed / mbit)), "{speed} for {mbit} Mbit/s");
        }
    }

    #[test]
    fn nothing_is_tried_before_the_link_is_known() {
        let mut choice = Choice::default();
        let block = |wire, took| Arrived {
            raw: wire,
            wire,
            packing: Packing::Plain,
            packed_in: Duration::ZERO,
            took: Some(Duration::from_millis(took)),
        };
        for _ in 0..100 {
            assert_eq!(choice.next(), Packing::Plain);
            // Small answers wait for something else.
            choice.arrived(&block(1000, 40));
            choice.arrived(&Arrived { took: None, ..block(1 << 20, 0) });
        }
        assert_eq!(choice.speed(), None);
        choice.arrived(&block(1 << 20, 40));
        assert_eq!([choice.next(), choice.next(), choice.next()], [Packing::Narrow, Packing::Lz4, Packing::Plain]);
    }

    #[test]
    fn a_link_that_packed_blocks_do_not_measure_is_measured_without() {
        let mut choice = Choice::default();
        TOKENS.at(200.0 * MBIT).run(&mut choice, 100);
        let plain = (0..640).filter(|_| choice.next() == Packing::Plain).count();
        assert_eq!(plain, 10, "one of 64");
    }

    #[test]
    fn blocks_that_arrive_together_have_the_speed_of_all() {
        let mut choice = Choice::default();
        for number in 0..100 {
            // A driver that sees four of them at a time says of the first that the link was busy with it.
            let took = Duration::from_millis(if number % 4 == 0 { 400 } else { 0 });
            let arrived =
                Arrived { raw: RAW, wire: RAW, packing: Packing::Plain, packed_in: Duration::ZERO, took: Some(took) };
            choice.arrived(&arrived);
        }
        let speed = choice.speed().unwrap() / (RAW as f64 / 0.1);
        assert!((0.7..1.4).contains(&speed), "{speed}");
    }

    #[test]
    fn another_way_must_be_better_by_a_twentieth_and_less_work_by_anything() {
        // A link of 1 MB/s; blocks of 1 MB that narrowing halves. Narrowed, a block takes `cost` seconds in all.
        let narrowed = |choice: &mut Choice, cost: f64| {
            let block = Arrived {
                raw: 1_000_000,
                wire: 500_000,
                packing: Packing::Narrow,
                packed_in: Duration::from_secs_f64(cost - 0.5),
                took: Some(Duration::from_millis(500)),
            };
            (0..40).for_each(|_| choice.arrived(&block));
        };
        let plain = Arrived {
            raw: 1_000_000,
            wire: 1_000_000,
            packing: Packing::Plain,
            packed_in: Duration::ZERO,
            took: Some(Duration::from_secs(1)),
        };
        for (before, now, best) in [
            (None, 0.94, Packing::Narrow),
            (None, 0.96, Packing::Plain),
            (None, 1.01, Packing::Plain),
            (Some(0.6), 0.96, Packing::Narrow),
            (Some(0.6), 0.99, Packing::Narrow),
            (Some(0.6), 1.01, Packing::Plain),
        ] {
            let mut choice = Choice::default();
            choice.arrived(&plain);
            for cost in before.into_iter().chain([now]) {
                narrowed(&mut choice, cost);
            }
            assert_eq!(choice.best(), best, "{now} s, after {before:?}");
        }
    }
}
