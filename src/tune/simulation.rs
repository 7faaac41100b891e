//! The controller against a simulated machine: elements with random service times, a consumer with a pace of its own.

use super::{Bounds, Controller, Knob, Measurement};

/// A machine on which threads evaluate elements for a consumer.
#[derive(Clone, Copy)]
struct Machine {
    /// Seconds of a thread per element.
    service_s: f64,
    /// Seconds of the consumer per element.
    step_s: f64,
    /// Threads that really run at a time.
    cores: f64,
    /// Elements per second that something else lets through at most: a disk, the stateful part.
    other_limit: f64,
    /// Threads that a narrow window keeps busy, per place in it: elements of very different cost.
    per_place: f64,
}

const FREE: Machine = Machine { service_s: 0.001, step_s: 0.000_1, cores: 1e9, other_limit: 1e12, per_place: 1e9 };

impl Machine {
    /// Elements per second with so many threads.
    fn rate(&self, threads: usize, window: usize) -> f64 {
        let running = (threads as f64).min(self.cores).min(window as f64 * self.per_place);
        (running / self.service_s).min(1.0 / self.step_s).min(self.other_limit)
    }

    /// One second, with noise of a few percent.
    fn second(&self, threads: usize, window: usize, noise: f64) -> Measurement {
        // The consumer's own pace is not what varies.
        let rate = (self.rate(threads, window) * (1.0 + 0.04 * (noise - 0.5))).min(1.0 / self.step_s);
        let rate = if self.rate(threads, window) * self.step_s > 0.999 { 1.0 / self.step_s } else { rate };
        let wait_s = (1.0 - rate * self.step_s).max(0.0);
        let waiting_for_cores = (threads as f64 / self.cores).max(1.0);
        let busy_s = (rate * self.service_s * waiting_for_cores).min(threads as f64);
        Measurement { wall_s: 1.0, wait_s, elements: rate, busy_s, window_full: wait_s > 0.0, disturbed: false }
    }
}

/// What the controller settles on, and how often it changed its mind, over the phases of a run.
fn settle(start: usize, most: usize, phases: &[(Machine, u32)]) -> (Vec<usize>, usize) {
    let mut controller = Controller::new(start, 4, Bounds { most_threads: most, most_window: 1 << 10 });
    let (mut settled, mut changes, mut random) = (Vec::new(), 0, 1u64);
    for (machine, seconds) in phases {
        for _ in 0..*seconds {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = (random >> 40) as f64 / f64::from(1 << 24);
            let m = machine.second(controller.threads(), controller.window(), noise);
            changes += usize::from(controller.step(&m).is_some());
        }
        settled.push(controller.threads());
    }
    (settled, changes)
}

/// The law: the fewest threads that keep the consumer fed with room to spare.
fn law(machine: &Machine, most: usize) -> usize {
    ((machine.service_s / machine.step_s / 0.85).ceil() as usize).clamp(1, most)
}

#[test]
fn a_steady_consumer_gets_what_the_law_says_from_either_side() {
    let machine = Machine { step_s: 0.000_2, ..FREE };
    for start in [1, 3, 30] {
        let (settled, changes) = settle(start, 64, &[(machine, 300)]);
        let wanted = law(&machine, 64);
        assert!(settled[0].abs_diff(wanted) <= 2, "from {start}: {settled:?}, wanted {wanted}");
        assert!(machine.rate(settled[0], 1000) >= 0.98 / machine.step_s, "from {start}: {settled:?}");
        assert!(changes <= 30, "{changes}");
    }
}

#[test]
fn it_is_fast_enough_within_thirty_seconds() {
    for (step_s, most) in [(0.000_5, 2), (0.000_1, 8), (0.000_000_1, 4)] {
        let machine = Machine { step_s, cores: most as f64, ..FREE };
        let (settled, _) = settle(1, most, &[(machine, 30)]);
        assert!(machine.rate(settled[0], 1000) >= 0.95 * machine.rate(most, 1000), "{settled:?} of {most}");
    }
}

#[test]
fn demand_goes_up_and_down() {
    let (slow, fast) = (Machine { step_s: 0.001, ..FREE }, Machine { step_s: 0.000_125, ..FREE });
    let (settled, _) = settle(1, 64, &[(slow, 60), (fast, 60), (slow, 120)]);
    assert!(settled[0] <= 3 && settled[1] >= 8 && settled[2] <= 3, "{settled:?}");
}

#[test]
fn threads_that_bring_nothing_are_taken_back() {
    let machine = Machine { other_limit: 3000.0, step_s: 0.000_01, cores: 3.0, ..FREE };
    let (settled, changes) = settle(3, 32, &[(machine, 1000)]);
    assert!(settled[0] <= 5, "{settled:?}");
    assert!(changes <= 20, "{changes}");
}

#[test]
fn a_narrow_window_is_widened() {
    let machine = Machine { per_place: 0.25, step_s: 0.000_1, ..FREE };
    let mut controller = Controller::new(8, 4, Bounds { most_threads: 8, most_window: 64 });
    let mut widened = 0;
    for _ in 0..60 {
        let m = machine.second(controller.threads(), controller.window(), 0.5);
        widened += usize::from(controller.step(&m).is_some_and(|d| d.knob == Knob::Window));
    }
    assert!(controller.window() >= 32, "{}", controller.window());
    assert!(widened <= 4);
}

#[test]
fn pauses_and_replaced_workers_decide_nothing() {
    let mut controller = Controller::new(4, 8, Bounds { most_threads: 8, most_window: 64 });
    for _ in 0..100 {
        let pause = Measurement { wall_s: 1.0, ..Measurement::default() };
        assert_eq!(controller.step(&pause), None);
        let disturbed = Measurement { disturbed: true, wait_s: 1.0, elements: 5.0, busy_s: 4.0, ..pause };
        assert_eq!(controller.step(&disturbed), None);
    }
    assert_eq!((controller.threads(), controller.window()), (4, 8));
}
