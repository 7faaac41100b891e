//! The controller on a simulated machine: elements with random service times, a consumer with a pace.

use super::{Bounds, Controller, Knob, Measurement, Setting};

/// A machine with threads that evaluate elements for a consumer.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Seconds of a thread per element.
    service_s: f64,
    /// Seconds of the consumer per element.
    step_s: f64,
    /// Threads that can run at a time.
    cores: f64,
    /// Limit on elements per second outside the threads: a disk, the stateful part.
    other_limit: f64,
    /// Threads kept busy per place in a narrow window, for elements of very different cost.
    per_place: f64,
    /// Seconds per element for which all other elements in the process have to wait.
    lock_s: f64,
    /// Seconds of a core per element.
    cpu_s: f64,
}

const FREE: Machine = Machine {
    service_s: 0.001,
    step_s: 0.000_1,
    cores: 1e9,
    other_limit: 1e12,
    per_place: 1e9,
    lock_s: 0.0,
    cpu_s: 0.0,
};

impl Machine {
    /// Returns the elements per second.
    fn rate(&self, at: Setting) -> f64 {
        let running = (at.threads as f64).min(self.cores).min(at.window as f64 * self.per_place);
        let locks = at.processes as f64 / self.lock_s;
        let cores = self.cores / self.cpu_s;
        (running / self.service_s).min(1.0 / self.step_s).min(self.other_limit).min(locks).min(cores)
    }

    /// Measures a second, with noise of a few percent.
    fn second(&self, at: Setting, noise: f64) -> Measurement {
        // The consumer's pace does not vary.
        let rate = (self.rate(at) * (1.0 + 0.04 * (noise - 0.5))).min(1.0 / self.step_s);
        let rate = if self.rate(at) * self.step_s > 0.999 { 1.0 / self.step_s } else { rate };
        let wait_s = (1.0 - rate * self.step_s).max(0.0);
        let threads = at.threads as f64;
        // Threads that wait for a core or a lock are busy.
        let locked = rate * self.lock_s > 0.97 * at.processes as f64;
        let waiting = if locked { 1e9 } else { (threads / self.cores).max(1.0) };
        let busy_s = (rate * self.service_s * waiting).min(threads);
        let cpu_s = rate * self.cpu_s;
        let window_full = wait_s > 0.0;
        Measurement {
            wall_s: 1.0,
            wait_s,
            elements: rate,
            busy_s,
            locked_s: 0.0,
            cpu_s,
            taken_s: cpu_s,
            short_s: 0.0,
            window_full,
            disturbed: false,
        }
    }
}

/// Returns the final setting of each phase of a run, and the number of changes.
fn settle_within(start: Setting, bounds: Bounds, phases: &[(Machine, u32)]) -> (Vec<Setting>, usize) {
    let mut controller = Controller::new(start, bounds);
    let (mut settled, mut changes, mut random) = (Vec::new(), 0, 1u64);
    for (machine, seconds) in phases {
        for _ in 0..*seconds {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = (random >> 40) as f64 / f64::from(1 << 24);
            changes += usize::from(controller.step(&machine.second(controller.setting(), noise)).is_some());
        }
        settled.push(controller.setting());
    }
    (settled, changes)
}

fn settle(start: usize, most: usize, phases: &[(Machine, u32)]) -> (Vec<usize>, usize) {
    let start = Setting { threads: start, processes: 1, window: 4 };
    let (settled, changes) = settle_within(start, Bounds::of_threads(most, 1 << 10), phases);
    (settled.into_iter().map(|at| at.threads).collect(), changes)
}

const WIDE: usize = 1000;

fn with(threads: usize) -> Setting {
    Setting { threads, processes: 1, window: WIDE }
}

/// Returns the number of threads by the law: the fewest that keep the consumer fed with room to spare.
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
        assert!(machine.rate(with(settled[0])) >= 0.98 / machine.step_s, "from {start}: {settled:?}");
        assert!(changes <= 30, "{changes}");
    }
}

#[test]
fn it_is_fast_enough_within_thirty_seconds() {
    for (step_s, most) in [(0.000_5, 2), (0.000_1, 8), (0.000_000_1, 4), (0.000_000_1, 64)] {
        let machine = Machine { step_s, cores: most as f64, ..FREE };
        let (settled, _) = settle(1, most, &[(machine, 30)]);
        assert!(machine.rate(with(settled[0])) >= 0.95 * machine.rate(with(most)), "{settled:?} of {most}");
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
    // Threads and the window are each tried and taken back with growing hold-offs.
    assert!(changes <= 35, "{changes}");
}

#[test]
fn a_narrow_window_is_widened() {
    // Covers threads that are clearly idle because of the window, and threads that are almost always busy.
    for per_place in [0.25, 1.85] {
        let machine = Machine { per_place, step_s: 0.000_1, ..FREE };
        let start = Setting { threads: 8, processes: 1, window: 4 };
        let mut controller = Controller::new(start, Bounds::of_threads(8, 64));
        let mut widened = 0;
        for _ in 0..60 {
            let m = machine.second(controller.setting(), 0.5);
            widened += usize::from(controller.step(&m).is_some_and(|d| d.knob == Knob::Window));
        }
        assert!(machine.rate(controller.setting()) >= 0.95 * machine.rate(with(8)), "{controller:?}");
        // A useless change is tried twice, and once more after the first hold-off.
        assert!((1..=7).contains(&widened), "{widened}");
    }
}

#[test]
fn pauses_and_replaced_workers_decide_nothing() {
    let start = Setting { threads: 4, processes: 1, window: 8 };
    let mut controller = Controller::new(start, Bounds::of_threads(8, 64));
    for _ in 0..100 {
        let pause = Measurement { wall_s: 1.0, ..Measurement::default() };
        assert_eq!(controller.step(&pause), None);
        let disturbed = Measurement { disturbed: true, wait_s: 1.0, elements: 5.0, busy_s: 4.0, ..pause };
        assert_eq!(controller.step(&disturbed), None);
    }
    assert_eq!(controller.setting(), start);
}

fn several(most: usize) -> Bounds {
    Bounds { most_threads: 64, most_threads_each: 8, cores: 64, processes: (1, most), most_window: 1 << 10, idle: None }
}

#[test]
fn where_threads_bring_nothing_processes_do() {
    for (lock_s, step_s) in [(0.001, 0.000_2), (0.000_8, 0.000_5), (0.001, 0.000_05), (0.000_5, 0.002)] {
        let machine = Machine { lock_s, step_s, ..FREE };
        let wanted = ((lock_s / step_s / 0.85).ceil() as usize).min(16);
        for threads in [1, 8] {
            let start = Setting { threads, processes: 1, window: 1 };
            let (settled, changes) = settle_within(start, several(16), &[(machine, 200)]);
            let at = settled[0];
            assert!(at.processes.abs_diff(wanted) <= 1, "from {threads}: {at:?}, wanted {wanted}");
            let best = machine.rate(Setting { threads: 64, processes: 16, window: WIDE });
            assert!(machine.rate(at) >= 0.95 * best, "from {threads}: {at:?}");
            assert!(changes <= 25, "{changes}");
        }
    }
}

#[test]
fn where_processes_bring_nothing_there_is_one() {
    for machine in [
        Machine { cores: 4.0, step_s: 0.000_01, ..FREE },
        Machine { other_limit: 2500.0, step_s: 0.000_01, ..FREE },
        Machine { step_s: 0.000_3, ..FREE },
    ] {
        let start = Setting { threads: 1, processes: 1, window: 1 };
        let bounds = Bounds { most_threads: 4, ..several(4) };
        let (settled, changes) = settle_within(start, bounds, &[(machine, 2000)]);
        assert_eq!(settled[0].processes, 1, "{machine:?}: {settled:?}");
        assert!(machine.rate(settled[0]) >= 0.95 * machine.rate(with(4)), "{settled:?}");
        assert!(changes <= 60, "{changes}");
    }
}

#[test]
fn processes_follow_the_demand_and_the_memory() {
    let slow = Machine { lock_s: 0.001, step_s: 0.002, ..FREE };
    let fast = Machine { step_s: 0.000_25, ..slow };
    let start = Setting { threads: 1, processes: 1, window: 8 };
    let (settled, _) = settle_within(start, several(8), &[(slow, 60), (fast, 100), (slow, 300)]);
    let processes: Vec<_> = settled.iter().map(|at| at.processes).collect();
    assert!(processes[0] == 1 && processes[1].abs_diff(5) <= 1 && processes[2] == 1, "{settled:?}");

    let mut controller = Controller::new(start, several(8));
    controller.allow_processes(2);
    for _ in 0..200 {
        controller.step(&fast.second(controller.setting(), 0.5));
    }
    assert_eq!(controller.setting().processes, 2);
}

#[test]
fn as_many_processes_as_were_asked_for_stay() {
    let bounds = Bounds { processes: (3, 3), ..several(3) };
    for step_s in [0.000_01, 0.01] {
        let start = Setting { threads: 6, processes: 3, window: 8 };
        let (settled, _) = settle_within(start, bounds, &[(Machine { step_s, ..FREE }, 300)]);
        assert_eq!((settled[0].processes, settled[0].threads % 3), (3, 0), "{settled:?}");
    }
}

#[test]
fn a_step_too_far_is_taken_back_in_part() {
    let machine = Machine { other_limit: 5000.0, step_s: 0.000_01, ..FREE };
    let (settled, _) = settle(4, 8, &[(machine, 11), (machine, 11)]);
    // A smaller step is tried and taken back.
    assert_eq!(settled, [6, 5]);
}

#[test]
fn elements_that_become_dearer_while_a_step_is_judged_do_not_stop_it() {
    let start = Setting { threads: 1, processes: 1, window: 64 };
    let mut controller = Controller::new(start, Bounds::of_threads(8, 64));
    for second in 0..40 {
        // The cost doubles every other second, for a while.
        let machine = Machine { service_s: 0.000_2 * f64::from(1 << (second / 2).min(6)), step_s: 1e-9, ..FREE };
        controller.step(&machine.second(controller.setting(), 0.5));
    }
    assert_eq!(controller.setting().threads, 8);
}

#[test]
fn there_are_no_more_threads_than_keep_the_cores_busy() {
    // Elements spend all of their time on a core, a tenth of it, or hardly any. The rate grows as if every thread were
    // worthwhile.
    for (share, wanted) in [(1.0, 4..=4), (0.5, 8..=12), (0.1, 40..=64), (0.001, 64..=64)] {
        let machine = Machine { cores: 4.0 / share, cpu_s: 0.001 * share, step_s: 1e-9, ..FREE };
        let bounds = Bounds { cores: 4, ..Bounds::of_threads(64, 1 << 10) };
        let mut controller = Controller::new(Setting { threads: 1, processes: 1, window: 4 }, bounds);
        let mut most = 0;
        for second in 0..400 {
            let at = controller.setting();
            let m = Measurement { elements: 1.5f64.powi(second), ..machine.second(at, 0.5) };
            controller.step(&m);
            most = most.max(controller.setting().threads);
        }
        assert!(wanted.contains(&most), "{share}: {most}");
    }
}
