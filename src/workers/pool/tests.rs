//! Chance in the place of the clock, the controller and the memory: what they decide never changes the data.

use std::sync::atomic::AtomicU64;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::cx::{Cx, Recorder};
use crate::dataset::iter::{lanes, mix};
use crate::dataset::map::Range as Numbers;
use crate::dataset::{BoxIter, DatasetIterator, IterDataset, IterDatasetExt, MapDatasetExt, Remainder, Stage};
use crate::exec::{Engine, Runtime};
use crate::workers::launch::Program;
use crate::workers::processes::Processes;
use crate::workers::serve::serve;

const MIB: u64 = 1 << 20;

/// Workers whose number, window and sizes of parts change all the time.
#[derive(Debug)]
struct Restless {
    pool: Arc<WorkerPool<Processes>>,
    random: AtomicU64,
    submitted: AtomicU64,
}

impl Restless {
    fn below(&self, n: u64) -> u64 {
        let step = |x: u64| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        let random = self.random.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).unwrap_or_default();
        (random >> 33) % n
    }
}

impl Remote for Restless {
    fn parallel(&self) -> usize {
        self.pool.parallel()
    }

    fn parallel_each(&self) -> usize {
        self.pool.parallel_each()
    }

    fn window(&self) -> usize {
        1 + self.below(12) as usize
    }

    /// The size of ranges follows from it.
    fn part_bytes(&self) -> usize {
        1024 << self.below(10)
    }

    fn lane_bytes(&self, _: usize) -> usize {
        self.part_bytes()
    }

    fn submit(&self, border: Border, range: Range<u64>, how: How, deliver: Box<dyn Deliver>) {
        if self.submitted.fetch_add(1, Ordering::Relaxed) % 24 == 23 {
            self.pool.resize(1 + self.below(5) as usize, 1 + self.below(3) as usize);
        }
        self.pool.submit(border, range, how, deliver);
    }

    fn range_time(&self) -> Duration {
        self.pool.range_time()
    }

    fn sync(&self, patience: Duration) {
        self.pool.sync(patience);
    }

    fn cancel(&self) {
        self.pool.cancel();
    }

    fn figures(&self) -> WorkersReport {
        self.pool.figures()
    }

    fn busy(&self) -> Duration {
        self.pool.busy()
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Config {
    len: i64,
    seed: u32,
}

/// Two borders, elements of 0 bytes to 150 KiB, some dropped; one of batches; and lanes.
fn pipeline(Config { len, seed }: Config) -> Result<BoxIter<Vec<i64>>> {
    let stream = |seed: u32| {
        let sized = |x: i64| {
            let size = if x % 97 == 0 { 20_000 } else { x as usize % 50 };
            (0..size as i64).map(|i| x ^ i).collect::<Vec<i64>>()
        };
        Numbers::new(0, len).shuffle(seed).filter(|x| x % 11 != 5).map(sized).to_iter().boxed()
    };
    let sized = |x: i64| vec![x; if x % 37 == 0 { 3000 } else { x as usize % 50 }];
    let batched = Numbers::new(0, 6 * len).shuffle(seed + 2).map(sized).to_iter();
    let batched = batched.batch_with_fn(6, Remainder::Keep, |items: Vec<Vec<i64>>| Ok(items.concat())).boxed();
    let lane = |k: u32| stream(seed + 3 + k).window_shuffle(4, k).limit(1 + 60 * u64::from(k)).boxed();
    let lanes = lanes((0..7).map(lane), 5).boxed();
    Ok(mix([stream(seed), stream(seed + 1), batched, lanes]).window_shuffle(9, seed).boxed())
}

fn pool(config: Config, slab: u64) -> (Arc<WorkerPool<Processes>>, Arc<Recorder>) {
    let options = MpOptions::auto().workers(5).threads_per_worker(3).worker_heap(64 * MIB).tune(false);
    let options = options.ram_budget(5 * 66 * MIB + slab);
    let pipeline_lines = (&pipeline(config).unwrap() as &dyn Stage).lines();
    let recorder = Recorder::new(pipeline_lines.len());
    let program = Program::new(pipeline, &config, serve::<BoxIter<Vec<i64>>>).unwrap();
    let plan = Plan::new(&options, 2, 0).unwrap();
    (
        WorkerPool::start(Processes::of(program, &plan), pipeline_lines, plan, options, recorder.clone()).unwrap(),
        recorder,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, ..ProptestConfig::default() })]

    #[test]
    fn neither_sizes_nor_comings_and_goings_of_workers_change_the_stream(seed in any::<u32>(), slab in 2u64..20) {
        let config = Config { len: 500, seed: seed % 1000 };
        let expected = pipeline(config).unwrap().collect().unwrap();
        let (pool, recorder) = pool(config, slab * MIB);
        let restless = Restless { pool: pool.clone(), random: AtomicU64::new(seed.into()), submitted: AtomicU64::new(0) };
        let run = Runtime::of(Engine::Workers(Arc::new(restless)), Some(recorder.clone()));
        let mut iter = pipeline(config).unwrap().iter(&run).unwrap();
        let mut cx = Cx::new(&recorder);
        let mut seen = Vec::new();
        while let Some(element) = iter.next(&mut cx).unwrap() {
            seen.push(element);
        }
        prop_assert!(seen == expected, "{} elements of {}", seen.len(), expected.len());
        pool.sync(Duration::from_millis(200));
        // Those who left did so in good order.
        prop_assert_eq!(pool.figures().replaced, 0);
        prop_assert_eq!(recorder.notes(), vec![]);
    }
}

#[test]
fn workers_leave_and_come_back() {
    let (pool, _) = pool(Config { len: 10, seed: 1 }, 20 * MIB);
    let soon = |workers: usize| {
        let counted = || {
            pool.sync(Duration::from_millis(200));
            pool.figures().workers.len()
        };
        for _ in 0..3000 {
            if counted() == workers {
                return true;
            }
            // Workers come and go on their own; nothing tells of the last.
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    };
    for workers in [5, 1, 3, 2, 5] {
        pool.resize(workers, 1);
        assert!(soon(workers), "{:?}", pool.figures());
    }
    assert_eq!(pool.figures().replaced, 0);
}
