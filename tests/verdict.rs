//! A delay put into any stage makes that stage the verdict, whoever evaluates the pipeline.

use std::time::{Duration, Instant};

use gristmill::dataset::map::{RandomAccess, Source};
use gristmill::{Executor, IterDataset, LoaderBuilder, MapDataset, Report, Result};
use proptest::prelude::*;

// Each measures, and the others would take its cores.
#[path = "support/alone.rs"]
mod alone;

use alone::alone;

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
        Ok(x)
    });
    Ok(ds)
}

fn run(delays: [u64; STAGES], executor: Executor) -> Report {
    report(pipeline(delays).unwrap().loader().executor(executor))
}

fn report<D: IterDataset + 'static>(builder: LoaderBuilder<D>) -> Report {
    let _alone = alone();
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

#[cfg(all(feature = "workers", target_os = "linux"))]
proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn the_slow_stage_is_named_in_a_worker_too(slow in 0..STAGES, delay in 120u64..300, threads in 1usize..3) {
        let mut delays = [3; STAGES];
        delays[slow] = delay;
        let report = run_in_worker(delays, threads);
        let expected = if slow == STAGES - 1 { STAGES } else { slow };
        prop_assert_eq!(report.verdict.stage, Some(expected), "{}", report);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_slow_stage_is_named(slow in 0..STAGES, delay in 120u64..300, threads in 0usize..3, noise in 0u64..15) {
        let mut delays = [noise; STAGES];
        delays[slow] = delay;
        let executor = if threads == 0 { Executor::Inline } else { Executor::Threads(threads) };
        let report = run(delays, executor);
        // The suffix map stands behind the border, which is a stage of its own.
        let expected = if slow == STAGES - 1 { STAGES } else { slow };
        prop_assert_eq!(report.verdict.stage, Some(expected), "{}", report);
        let shares: f64 = report.stages.iter().map(|s| s.wait_share).sum();
        prop_assert!((shares - report.consumer_wait_share).abs() < 1e-6, "{}", report);
    }
}

#[test]
fn a_consumer_that_is_slower_is_the_verdict() {
    let _alone = alone();
    let ds = Source::new(Slow { us: 5 }).to_iter();
    let mut loader = ds.loader().threads(1).buffer(8).build().unwrap();
    for x in loader.by_ref() {
        x.unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = loader.report();
    assert_eq!(report.verdict.bottleneck, "consumer", "{report}");
}

#[test]
fn the_text_is_at_most_100_columns() {
    let report = run([40, 20, 10, 5, 1], Executor::Threads(1));
    let text = report.to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("VERDICT  source (stage 0) limits the run"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["stages"].as_array().unwrap().len(), 6);
    assert!(json["verdict"]["advice"][0]["expected_speedup"].as_f64().unwrap() > 1.0, "{text}");
    println!("{text}");
}
