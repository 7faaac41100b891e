//! The report says why the consumer waited: causes that add up, and the element that all others waited for.

use std::time::{Duration, Instant};

use gristmill::dataset::map::Range;
use gristmill::report::{Cause, Change};
use gristmill::{Executor, IterDataset, Load, MapDataset, Report};

/// Keeps a core busy, as work does.
fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn run(loader: &mut gristmill::Loader<impl IterDataset + 'static>, step: Duration) -> Report {
    while let Some(batch) = loader.next() {
        batch.unwrap();
        std::thread::sleep(step);
    }
    loader.report()
}

fn adds_up(report: &Report) {
    let (sum, waited) = (report.why.iter().map(|why| why.share).sum::<f64>(), report.consumer_wait_share);
    assert!((sum - waited).abs() <= 0.01 * waited.max(0.05), "{sum} of {waited}: {report}");
}

#[test]
fn one_slow_element_is_found_among_many() {
    for slow in [37, 613, 901] {
        let sleeps = move |x: i64| {
            std::thread::sleep(if x == slow { Duration::from_millis(150) } else { Duration::from_micros(300) });
            x
        };
        let ds = Range::new(0, 1000).shuffle(5).map(|x| x).map(sleeps).to_iter().batch(8);
        let mut loader = ds.loader().executor(Executor::Threads(4)).build().unwrap();
        let report = run(&mut loader, Duration::from_millis(1));
        adds_up(&report);
        let longest = &report.longest_waits[0];
        assert_eq!(longest.cause, Cause::HeadOfLine, "{report}");
        let at = Range::new(0, 1000).shuffle(5).collect().unwrap().iter().position(|x| *x == slow);
        assert_eq!((longest.element, longest.elements), (at.map(|at| at as u64), Some(1)), "{report}");
        assert_eq!((longest.stage, longest.record.as_deref()), (Some(3), Some(&*format!("record {slow} of range"))));
        let text = report.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("single elements that all others waited for"), "{text}");
        assert!(text.contains("in map (stage 3), while what comes behind was there"), "{text}");
        assert!(text.contains("VERDICT single elements limit the run"), "{text}");
        assert_eq!((report.verdict.stage, report.verdict.advice[0].change), (Some(3), Change::Split(Some(3))));
    }
}

#[test]
fn a_slow_stage_on_one_thread_is_no_fault_of_elements() {
    let ds = Range::new(0, 400).map(|x| x).to_iter().map(|x| {
        work(Duration::from_micros(500));
        x
    });
    let mut loader = ds.window_shuffle(20, 1).batch(8).loader().executor(Executor::Threads(2)).build().unwrap();
    let report = run(&mut loader, Duration::ZERO);
    adds_up(&report);
    assert!(report.why[0].share > 0.3, "{report}");
}
