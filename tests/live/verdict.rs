//! A delay put into any stage makes that stage the verdict, whoever evaluates the pipeline; and advice is worth what it says.
//!
//! The thresholds are tested by scenes, in `src/report/scenes`. Each sleep here stands for work of a stage or of the consumer.

use std::time::{Duration, Instant};

use gristmill::dataset::map::{RandomAccess, Source};
use gristmill::report::Change;
use gristmill::{Executor, IterDataset, IterDatasetExt, Load, LoaderBuilder, MapDatasetExt, Report, Result};

/// Work, not sleep: a sleeping thread would let a crowded machine run two stages on one core for free.
fn work(us: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(us) {
        std::hint::spin_loop();
    }
}

struct Slow {
    us: u64,
}

impl RandomAccess for Slow {
    type Record = u64;

    fn len(&self) -> u64 {
        500
    }

    fn read(&self, index: u64) -> Result<u64> {
        work(self.us);
        Ok(index)
    }
}

const STAGES: usize = 5;

/// Source, map and filter in front of the border, a map on the stream, and a map behind it on the one ordered thread.
fn pipeline(delays: [u64; STAGES]) -> Result<impl IterDataset<Item = u64>> {
    let [source, map, filter, stream, suffix] = delays;
    let ds = Source::new(Slow { us: source })
        .map(move |x| {
            work(map);
            x
        })
        .filter(move |_| {
            work(filter);
            true
        })
        .to_iter()
        .map(move |x| {
            work(stream);
            x
        });
    let ds = ds.boxed().map(move |x| {
        work(suffix);
        x
    });
    Ok(ds)
}

fn run(delays: [u64; STAGES], executor: Executor) -> Report {
    report(pipeline(delays).unwrap().loader().executor(executor))
}

fn report<D: IterDataset + 'static>(builder: LoaderBuilder<D>) -> Report {
    let mut loader = builder.build().unwrap();
    assert_eq!(loader.by_ref().filter_map(Result::ok).count(), 500);
    loader.report()
}

/// The same in a worker process of so many threads.
#[cfg(all(feature = "workers", target_os = "linux"))]
fn run_in_worker(delays: [u64; STAGES], threads: usize) -> Report {
    use gristmill::workers::{MpOptions, mp_prefetch};

    let options = MpOptions::auto().threads_per_worker(threads).worker_heap(64 << 20).ram_budget(200 << 20);
    report(mp_prefetch(pipeline, delays, options).unwrap())
}

/// Checks that each stage is named that takes a quarter of a millisecond, and the others next to nothing.
fn each_is_named(run: impl Fn([u64; STAGES]) -> Report) {
    for slow in 0..STAGES {
        let mut delays = [3; STAGES];
        delays[slow] = 250;
        let report = run(delays);
        // The last map stands behind the border, which is a stage of its own.
        let expected = if slow == STAGES - 1 { STAGES } else { slow };
        assert_eq!(report.verdict.stage, Some(expected), "{report}");
        let stages: f64 = report.stages.iter().map(|stage| stage.wait_share).sum();
        let shares = stages + report.waits.startup_share + report.waits.handover_share + report.waits.aside_share;
        assert!((shares - report.waits.consumer_wait_share).abs() < 1e-6, "{report}");
    }
}

#[test]
fn the_slow_stage_is_named() {
    each_is_named(|delays| run(delays, Executor::Inline));
    each_is_named(|delays| run(delays, Executor::Threads(2)));
}

#[cfg(all(feature = "workers", target_os = "linux"))]
#[test]
fn the_slow_stage_is_named_in_a_worker_too() {
    each_is_named(|delays| run_in_worker(delays, 1));
}

#[test]
fn a_consumer_that_is_slower_is_the_verdict() {
    let ds = Source::new(Slow { us: 5 }).to_iter();
    let mut loader = ds.loader().threads(1).buffer(8).build().unwrap();
    for x in loader.by_ref() {
        x.unwrap();
        // The consumer's step.
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = loader.report();
    assert_eq!(report.verdict.bottleneck, "consumer", "{report}");
}

/// A source that waits for something else than a core.
struct Waits(Duration);

impl RandomAccess for Waits {
    type Record = u64;

    fn len(&self) -> u64 {
        1 << 40
    }

    fn read(&self, index: u64) -> Result<u64> {
        // The wait of the source, which takes no core.
        std::thread::sleep(self.0);
        Ok(index)
    }
}

const TWO_MS: Duration = Duration::from_millis(2);

#[cfg(target_os = "linux")]
#[test]
fn waiting_is_told_from_computing() {
    let ds = Source::new(Waits(TWO_MS)).map(|x| {
        work(500);
        x
    });
    let ds = ds.to_iter().batch(4).boxed();
    for threads in [0, 3] {
        let executor = if threads == 0 { Executor::Inline } else { Executor::Threads(threads) };
        let mut loader = ds.clone().loader().executor(executor).build().unwrap();
        assert_eq!(loader.by_ref().take(40).filter_map(Result::ok).count(), 40);
        let report = loader.report();
        let [source, map] = [0, 1].map(|id| &report.stages[id]);
        assert!(
            source.work.blocked_s > 0.7 * source.work.self_s && source.work.cpu_s < 0.2 * source.work.self_s,
            "{report}"
        );
        // Others may take the core from it, but it waits for nothing else.
        assert!(map.work.blocked_s < 0.2 * map.work.self_s && map.work.cpu_s > map.work.blocked_s, "{report}");
        assert!(!source.interpreted && source.work.lock_s == 0.0);
    }
}

#[test]
fn advice_for_a_source_that_waits_is_threads_and_they_are_worth_it() {
    let ds = Source::new(Waits(TWO_MS)).to_iter().batch(8).boxed();
    let timed = |executor: Executor| {
        let mut loader = ds.clone().loader().executor(executor).build().unwrap();
        loader.next().unwrap().unwrap();
        let start = Instant::now();
        assert_eq!(loader.by_ref().take(25).filter_map(Result::ok).count(), 25);
        (start.elapsed(), loader.report())
    };
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let (before, report) = timed(executor);
        let text = report.to_string();
        assert!(!text.contains("gain nothing") && report.verdict.stage == Some(0), "{text}");
        let advice = report.verdict.advice.iter().find(|advice| matches!(advice.change, Change::Threads(_)));
        let advice = advice.unwrap_or_else(|| panic!("{text}"));
        let Change::Threads(threads) = advice.change else { unreachable!() };
        assert!(threads > 8 && advice.expected_speedup > 3.0, "{text}");
        let (after, _) = timed(Executor::Threads(threads));
        assert!(2 * after < before, "{before:?} {after:?} {text}");
    }
}

/// The wait for the first element is nobody's, and a consumer that waits no more than that is what limits the run.
#[test]
fn start_up_is_a_limit_of_its_own() {
    let ds = Source::new(Slow { us: 5 }).map(|x| {
        if x == 0 {
            // The start-up, which is the fault of no stage.
            std::thread::sleep(Duration::from_millis(300));
        }
        x
    });
    let mut loader = ds.to_iter().loader().threads(1).buffer(8).build().unwrap();
    for x in loader.by_ref().take(100) {
        x.unwrap();
        // The consumer's step.
        std::thread::sleep(Duration::from_millis(2));
    }
    let report = loader.report();
    assert_eq!((&*report.verdict.bottleneck, report.verdict.stage), ("start-up", None), "{report}");
    assert!(
        report.waits.startup_share > 0.3 && report.waits.consumer_wait_share >= report.waits.startup_share,
        "{report}"
    );
    assert!(report.verdict.advice.is_empty() && report.to_string().contains("\nstart-up 3"), "{report}");
}
