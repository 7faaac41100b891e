//! Choice of the packing of blocks for a link, from measurements of the link and the data.
//!
//! An unpacked byte takes `1 / speed` of the link's time. A packed byte takes time to pack in the worker, less time on
//! the link, and time to unpack in this process. The fastest way is chosen. Since links and data change, other ways are
//! tried from time to time.

use std::time::Duration;

use crate::wire::parcel::Packing;

/// Ways to pack.
const WAYS: [Packing; 2] = [Packing::Narrow, Packing::Lz4];
/// Minimum bytes of a block that measures a link; the time of a smaller block is mostly other waits.
const LEAST_BLOCK: u64 = 64 << 10;
/// Tasks after which another way is tried again.
const TRY_AGAIN: u64 = 64;
/// Tasks after which a way is tried again if it could not pay even with blocks packed to nothing.
const HARDLY_EVER: u64 = 1024;
/// Maximum share of the current way's time for a switch to another way; the margin covers measurement error.
const BETTER: f64 = 0.95;
/// Weight of the past in a rate at each new measurement: of a link, which every block measures, and of a way, which is
/// measured rarely.
const KEPT: f64 = 0.85;
const KEPT_OF_WAY: f64 = 0.5;

/// Recent ratio of two amounts: each measurement counts by its size, and decays with every later measurement.
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

/// Measurements of a way to pack.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Seconds per byte for packing and for unpacking.
    pack: Rate,
    unpack: Rate,
    /// Packed bytes per unpacked byte.
    left: Rate,
    /// Task that last tried the way.
    tried: Option<u64>,
}

impl Way {
    fn work(&self) -> Option<f64> {
        Some(self.pack.get()? + self.unpack.get().unwrap_or(0.0))
    }
}

/// Measurements of a block that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    /// Unpacked bytes, and bytes on the link.
    pub(super) raw: u64,
    pub(super) wire: u64,
    /// Packing requested from the worker, and the time that packing took.
    pub(super) packing: Packing,
    pub(super) packed_in: Duration,
    /// Time that the link was busy with the block, if measured.
    pub(super) took: Option<Duration>,
}

/// Measurements of a link, and the best way to pack for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    /// Bytes per second.
    speed: Rate,
    ways: [Way; 2],
    pub(super) best: Packing,
    tasks: u64,
    /// Task at which the link was last measured, or an unpacked block was requested for a measurement.
    measured: u64,
}

impl Choice {
    /// Returns the packing for the answer to the next task.
    pub(super) fn next(&mut self) -> Packing {
        self.tasks += 1;
        let Some(speed) = self.speed() else { return Packing::Plain };
        let (tasks, best) = (self.tasks, self.best);
        // Packed blocks may be too small to measure the link.
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

    /// Adds the measurements of an arrived block, and chooses again.
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

    /// Adds the time to unpack a block of `raw` bytes.
    pub(super) fn unpacked(&mut self, packing: Packing, raw: u64, took: Duration) {
        if let Some(way) = self.way(packing) {
            way.unpack.add(KEPT_OF_WAY, took.as_secs_f64(), raw as f64);
        }
    }

    /// Returns the link's speed in bytes per second, if measured.
    pub(super) fn speed(&self) -> Option<f64> {
        self.speed.get()
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
        // A way with less work need not be better by the margin.
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

    /// A simulated link and its data.
    #[derive(Clone, Copy)]
    struct World {
        /// Bytes per second.
        link: f64,
        /// Of each way: bytes per second packed, bytes per second unpacked, and the ratio of packed to unpacked bytes.
        narrow: (f64, f64, f64),
        lz4: (f64, f64, f64),
    }

    // As measured by `benches/parcel.rs`.
    const TOKENS: World = World { link: 0.0, narrow: (3.7e9, 12.3e9, 0.39), lz4: (2.1e9, 9.7e9, 0.26) };
    const IMAGES: World = World { link: 0.0, narrow: (3.1e9, 14e9, 1.0), lz4: (2.4e8, 9.4e8, 0.68) };
    const TEXT: World = World { link: 0.0, narrow: (3e9, 14e9, 1.0), lz4: (2.8e8, 1.3e9, 0.61) };
    /// Data that is already packed.
    const NOISE: World = World { link: 0.0, narrow: (3e9, 14e9, 1.0), lz4: (6e8, 14e9, 1.0) };

    const MBIT: f64 = 1e6 / 8.0;

    impl World {
        fn at(self, link: f64) -> Self {
            Self { link, ..self }
        }

        /// Sends `blocks` blocks over the link, and returns the number for each way.
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

        /// Returns the way for most of many blocks, and the number of blocks sent otherwise.
        fn settles(self) -> (Packing, usize) {
            let mut choice = Choice::default();
            let ways = self.run(&mut choice, 1000);
            assert!(ways[choice.best as usize] > 900, "{ways:?}");
            (choice.best, 1000 - ways[choice.best as usize])
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
            assert_eq!(choice.best, best, "{mbit} Mbit/s");
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
            // The time of a small answer is mostly other waits.
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
            // A driver that sees four blocks at once attributes the link's whole time to the first.
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
        // A link of 1 MB/s, and blocks of 1 MB that narrowing halves. A narrowed block takes `cost` seconds in total.
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
            assert_eq!(choice.best, best, "{now} s, after {before:?}");
        }
    }
}
