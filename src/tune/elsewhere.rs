//! Processes on separate machines: added while the consumer waits, dismissed while there is too little work.

use std::time::Duration;

use super::{Bounds, Controller, Decision, Knob, Measurement, Setting};

/// Creates a controller of 1 to 16 processes of 4 threads, starting with `processes`.
fn controller(processes: usize) -> Controller {
    let start = Setting { threads: 4 * processes, processes, window: 8 * processes };
    let bounds = Bounds {
        most_threads: 64,
        most_threads_each: 4,
        cores: 64,
        processes: (1, 16),
        most_window: 1 << 12,
        idle: Some(Duration::from_secs(60)),
    };
    Controller::new(start, bounds)
}

/// Measures a second of a consumer that takes up to `demand` elements. A thread makes 10, and all cores are taken.
fn second(at: Setting, demand: f64) -> Measurement {
    let elements = demand.min(10.0 * at.threads as f64);
    let busy_s = elements / 10.0;
    let wait_s = 1.0 - elements / demand;
    Measurement { wall_s: 1.0, wait_s, elements, busy_s, cpu_s: 1.0, taken_s: 64.0, ..Measurement::default() }
}

fn run(controller: &mut Controller, seconds: u32, of: impl Fn(Setting) -> Measurement) -> Vec<Decision> {
    (0..seconds).filter_map(|_| controller.step(&of(controller.setting()))).collect()
}

#[test]
fn more_come_while_the_consumer_waits_whatever_the_cores_do() {
    let mut controller = controller(2);
    let decisions = run(&mut controller, 120, |at| second(at, 450.0));
    let setting = controller.setting();
    assert!((12..=16).contains(&setting.processes), "{decisions:?}");
    assert_eq!(setting.threads, 4 * setting.processes);
    assert!(decisions.iter().all(|decision| decision.knob == Knob::Processes), "{decisions:?}");
    assert!(decisions[0].reason.starts_with("consumer waits 82 %"), "{decisions:?}");
    assert!(decisions[0].to <= 4, "at most twice as many at a time: {decisions:?}");
}

#[test]
fn none_come_where_memory_is_what_is_missing() {
    let mut controller = controller(2);
    let short = |at| Measurement { short_s: 0.5, ..second(at, 450.0) };
    assert_eq!(run(&mut controller, 120, short), []);
}

#[test]
fn those_that_bring_nothing_go_again() {
    let mut controller = controller(2);
    // The consumer's thread limits the rate to 80 elements.
    let stuck = |at: Setting| Measurement { elements: 80.0, busy_s: 8.0, wait_s: 0.5, ..second(at, 160.0) };
    let decisions = run(&mut controller, 35, stuck);
    assert_eq!((controller.setting().processes, decisions[0].to > 2), (2, true), "{decisions:?}");
    assert!(decisions[1].reason.contains("the step up brought"), "{decisions:?}");
}

#[test]
fn one_goes_for_each_minute_with_too_little_to_do() {
    let mut controller = controller(6);
    // Two processes would suffice, busy for three quarters of the time.
    let decisions = run(&mut controller, 59, |at| second(at, 60.0));
    assert_eq!(decisions, []);
    let decisions = run(&mut controller, 400, |at| second(at, 60.0));
    assert_eq!(controller.setting().processes, 2, "{decisions:?}");
    assert!(decisions.iter().all(|decision| decision.to + 1 == decision.from), "{decisions:?}");
    assert!(decisions[0].reason.contains("too little to do for 60 s"), "{decisions:?}");
    // A consumer that requests nothing needs a single process.
    let pause = |_| Measurement { wall_s: 1.0, disturbed: true, ..Measurement::default() };
    run(&mut controller, 70, pause);
    assert_eq!(controller.setting().processes, 1);
}
