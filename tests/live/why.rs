//! The report says why the consumer waited: causes that add up, and the element that all others waited for.
//!
//! Each sleep here stands for work of a stage or of the consumer.

use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::report::{Cause, Change};
use gristmill::{Executor, IterDataset, IterDatasetExt, Load, MapDatasetExt, Report};

fn run(loader: &mut gristmill::Loader<impl IterDataset + 'static>, step: Duration) -> Report {
    for batch in loader.by_ref() {
        batch.unwrap();
        // The consumer's step.
        std::thread::sleep(step);
    }
    loader.report()
}

fn adds_up(report: &Report) {
    let (sum, waited) = (report.waits.why.iter().map(|why| why.share).sum::<f64>(), report.waits.consumer_wait_share);
    assert!((sum - waited).abs() <= 0.01 * waited.max(0.05), "{sum} of {waited}: {report}");
}

/// A run of a pipeline of which the element `slow` takes long.
fn with_slow_element(slow: i64) -> Report {
    let sleeps = move |x: i64| {
        // The work of an element: the slow element is the cause of a wait.
        std::thread::sleep(if x == slow { Duration::from_millis(150) } else { Duration::from_micros(300) });
        x
    };
    let ds = Range::new(0, 1000).shuffle(5).map(|x| x).map(sleeps).to_iter().batch(8);
    let mut loader = ds.loader().executor(Executor::Threads(4)).build().unwrap();
    let report = run(&mut loader, Duration::from_millis(1));
    adds_up(&report);
    report
}

#[test]
fn one_slow_element_is_found_among_many() {
    let slow = 613;
    let report = with_slow_element(slow);
    let longest = &report.waits.longest_waits[0];
    assert_eq!(longest.cause, Cause::HeadOfLine, "{report}");
    let at = Range::new(0, 1000).shuffle(5).collect().unwrap().iter().position(|x| *x == slow);
    assert_eq!((longest.element, longest.elements), (at.map(|at| at as u64), Some(1)), "{report}");
    assert_eq!(
        (longest.stage, longest.suspect.record.as_deref()),
        (Some(3), Some(&*format!("record {slow} of range")))
    );
    assert_eq!(report.verdict.advice[0].change, Change::Split(Some(3)), "{report}");
}

/// A fault that is put into a pipeline of `range → shuffle → map → map → to_iter → limit → map → batch`.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// One element takes long in the map of this stage.
    Element { stage: usize, value: i64 },
    /// All elements take long in the map of this stage.
    Stage { stage: usize },
    /// The step of the consumer takes long: it waits for nothing.
    Step,
}

impl Fault {
    /// Faults by number, spread over everything that they can be.
    fn of(n: u64) -> Self {
        let draw = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        match n % 4 {
            0 | 1 => Self::Element { stage: 2 + (draw % 2) as usize, value: 100 + (draw % 350) as i64 },
            2 => Self::Stage { stage: [2, 3, 6][(draw % 3) as usize] },
            _ => Self::Step,
        }
    }

    /// Time that value `x` takes in the map of `stage`.
    fn time(self, stage: usize, x: i64) -> Duration {
        match self {
            Self::Element { stage: at, value } if at == stage && value == x => Duration::from_millis(100),
            // Four threads share what is in front of the border.
            Self::Stage { stage: at } if at == stage => Duration::from_micros(if at == 6 { 800 } else { 2000 }),
            _ if stage == 6 => Duration::ZERO,
            _ => Duration::from_micros(20),
        }
    }

    /// Whether `report` says it.
    fn is_found(self, report: &Report) -> bool {
        match self {
            Self::Element { stage, value } => {
                let longest = report.waits.longest_waits.first();
                let record = format!("record {value} of range");
                longest.is_some_and(|wait| wait.suspect.record == Some(record) && wait.stage == Some(stage))
            }
            Self::Stage { stage } => report.waits.why.first().is_some_and(|why| why.stage == Some(stage)),
            Self::Step => report.waits.steady_wait_share < 0.1,
        }
    }
}

/// A run of a pipeline with that fault.
fn faulty(fault: Fault) -> Report {
    let slow = move |stage| {
        move |x| {
            let time = fault.time(stage, x);
            if !time.is_zero() {
                // The fault.
                std::thread::sleep(time);
            }
            x
        }
    };
    let ds = Range::new(0, 480).shuffle(7).map(slow(2)).map(slow(3)).to_iter();
    let ds = ds.limit(480).map(slow(6)).batch(4);
    let mut loader = ds.loader().executor(Executor::Threads(4)).build().unwrap();
    let step = if let Fault::Step = fault { Duration::from_millis(2) } else { Duration::ZERO };
    let report = run(&mut loader, step);
    adds_up(&report);
    report
}

#[test]
fn random_faults_are_found() {
    let (mut missed, faults) = (Vec::new(), 12);
    for fault in (0..faults).map(Fault::of) {
        let report = faulty(fault);
        if !fault.is_found(&report) {
            missed.push(format!("{fault:?}: {:?} {:?}", report.waits.why.first(), report.waits.longest_waits.first()));
        }
    }
    // What other programs do to a run is a cause in it, too.
    assert!(8 * missed.len() <= faults as usize, "{} of {faults}: {missed:#?}", missed.len());
}
