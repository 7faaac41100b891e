//! A delay put into any stage makes that stage the verdict, whoever evaluates the pipeline.

use std::time::{Duration, Instant};

use gristmill::dataset::map::{RandomAccess, Source};
use gristmill::report::Change;
use gristmill::{Executor, IterDataset, Load, LoaderBuilder, MapDataset, Report, Result};
use proptest::prelude::*;

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
        let stages: f64 = report.stages.iter().map(|s| s.wait_share).sum();
        let shares = stages + report.startup_share + report.handover_share;
        prop_assert!((shares - report.consumer_wait_share).abs() < 1e-6, "{}", report);
    }
}

#[test]
fn a_consumer_that_is_slower_is_the_verdict() {
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
    assert!(json["stages"][0]["blocked_s"].is_number(), "{text}");
    assert!(json["verdict"]["advice"][0]["expected_speedup"].as_f64().unwrap() > 1.0, "{text}");
    println!("{text}");
}

/// A source that waits for something else than a core.
struct Waits(Duration);

impl RandomAccess for Waits {
    type Record = u64;

    fn len(&self) -> u64 {
        1 << 40
    }

    fn read(&self, index: u64) -> Result<u64> {
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
        assert!(source.blocked_s > 0.7 * source.self_s && source.cpu_s < 0.2 * source.self_s, "{report}");
        // Others may take the core from it, but it waits for nothing else.
        assert!(map.blocked_s < 0.2 * map.self_s && map.cpu_s > map.blocked_s, "{report}");
        assert!(!source.interpreted && source.lock_s == 0.0);
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

/// What was tuned of threads that `loader` runs: until there are as many, or for so long.
fn grows_to(loader: &mut gristmill::Loader<impl IterDataset + 'static>, threads: usize) -> Report {
    let start = Instant::now();
    loop {
        assert_eq!(loader.by_ref().take(20).filter_map(Result::ok).count(), 20);
        let report = loader.report();
        if report.threads >= threads || start.elapsed() > Duration::from_secs(60) {
            return report;
        }
    }
}

#[test]
fn threads_grow_beyond_the_cores_where_elements_wait() {
    let ds = Source::new(Waits(TWO_MS)).to_iter().batch(8);
    let mut loader = ds.loader().executor(Executor::Auto).build().unwrap();
    let report = grows_to(&mut loader, 16);
    assert!(report.threads >= 16 && !report.decisions.is_empty() && report.is_tuned, "{report}");
    // Whoever tunes needs no advice to do so.
    assert!(report.verdict.advice.iter().all(|advice| !matches!(advice.change, Change::Threads(_))), "{report}");
}

#[cfg(all(feature = "workers", target_os = "linux"))]
#[test]
fn a_worker_gets_more_threads_than_cores_where_elements_wait() {
    use gristmill::workers::{MpOptions, mp_prefetch};

    let waits = |ms: u64| Ok(Source::new(Waits(Duration::from_millis(ms))).to_iter().batch(8));
    let mut loader = mp_prefetch(waits, 5, MpOptions::auto().ram_budget(1 << 30)).unwrap().build().unwrap();
    let report = grows_to(&mut loader, 24);
    assert!(report.threads >= 24 && report.is_tuned, "{report}");
    let source = &report.stages[0];
    assert!(source.blocked_s > 0.7 * source.self_s, "{report}");
    let startup = report.startup.join(" ");
    assert!(startup.contains("the first worker was ready after"), "{report}");
}

/// The wait for the first element is nobody's, and a consumer that waits no more than that is what limits the run.
#[test]
fn start_up_is_no_stage() {
    let ds = Source::new(Slow { us: 5 }).map(|x| {
        if x == 0 {
            std::thread::sleep(Duration::from_millis(300));
        }
        x
    });
    let mut loader = ds.to_iter().loader().threads(1).buffer(8).build().unwrap();
    for x in loader.by_ref().take(100) {
        x.unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    let report = loader.report();
    assert_eq!(report.verdict.bottleneck, "consumer", "{report}");
    assert!(report.startup_share > 0.3 && report.consumer_wait_share >= report.startup_share, "{report}");
    assert!(report.verdict.advice.is_empty() && report.to_string().contains("\nstart-up 3"), "{report}");
}

#[test]
fn too_short_a_run_has_no_verdict() {
    let mut loader = Source::new(Slow { us: 1 }).to_iter().batch(100).loader().build().unwrap();
    assert_eq!(loader.by_ref().count(), 5);
    let verdict = loader.report().verdict;
    assert!(verdict.text.starts_with("too short to say what limits the run"), "{verdict:?}");
    assert!(verdict.stage.is_none() && verdict.advice.is_empty());
}
