//! The controller on loads that wait, which gain from more threads than cores.

use super::world::{NOTHING, Shared, World};
use super::{Bounds, Controller, Knob, MANY_THREADS, Setting};

/// Returns the bounds of the loader's own threads, or of workers in one or several processes.
fn bounds(cores: usize, processes: usize) -> Bounds {
    Bounds {
        most_threads: MANY_THREADS,
        most_threads_each: MANY_THREADS,
        cores,
        processes: (1, processes),
        most_window: 4 * MANY_THREADS,
        idle: None,
    }
}

/// Returns the setting after `seconds`, starting from `threads` in `processes`, and the number of changes.
fn settle(world: &World, (threads, processes): (usize, usize), bounds: Bounds, seconds: u32) -> (Setting, u32) {
    let mut controller = Controller::new(Setting { threads, processes, window: 2 * threads }, bounds);
    let (mut random, mut changes) = (1u64, 0);
    for _ in 0..seconds {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let noise = (random >> 40) as f64 / f64::from(1 << 24);
        changes += u32::from(controller.step(&world.second(controller.setting(), noise)).is_some());
    }
    (controller.setting(), changes)
}

/// Returns loads that wait: plain, with a consumer, with computation, with a limited server, and with a stateful part.
fn waiting() -> Vec<World> {
    let mut worlds = Vec::new();
    for blocked_s in [0.002, 0.005, 0.05] {
        for cores in [2, 8] {
            let world = World { blocked_s, cpu_s: 20e-6, cores, ..NOTHING };
            worlds.push(world);
            worlds.push(World { step_s: blocked_s / 10.0, ..world });
            worlds.push(World { cpu_s: blocked_s / 20.0, ..world });
            worlds.push(World { cpu_s: blocked_s / 3.0, ..world });
            worlds.push(World { server: 12.0 / blocked_s, ..world });
            worlds.push(World { suffix_s: blocked_s / 9.0, ..world });
        }
    }
    worlds
}

#[test]
fn threads_grow_beyond_the_cores_as_far_as_it_pays() {
    for world in waiting() {
        let (at, changes) = settle(&world, (world.cores, 1), bounds(world.cores, 1), 120);
        let (reached, best) = (world.rate(at.threads, 1), world.best(1));
        assert!(reached >= 0.95 * best, "{world:?}: {at:?} gives {reached:.0} of {best:.0}");
        assert!(changes <= 20, "{world:?}: {changes}");
    }
}

/// Returns four kinds of elements that wait, with the maximum number of processes of each.
///
/// The kinds are a plain source, a source with some work, a Python function that releases the interpreter's lock while
/// it waits, and a Python function that holds the lock.
fn shapes() -> Vec<(World, usize)> {
    let python = World { cpu_s: 100e-6, locks: true, ..NOTHING };
    let kinds = [
        (World { cpu_s: 10e-6, ..NOTHING }, 1),
        (World { cpu_s: 30e-6, ..NOTHING }, 1),
        (python, 16),
        (World { locks_while_blocked: true, ..python }, 16),
    ];
    let waits = [0.002, 0.005, 0.04];
    kinds.into_iter().flat_map(|(kind, most)| waits.map(|blocked_s| (World { blocked_s, ..kind }, most))).collect()
}

/// The best setting of the grid has up to 256 threads in total. Processes take one to three seconds to start.
#[test]
fn twelve_shapes_are_near_the_best_setting_within_ten_seconds() {
    const SEEDS: u64 = 20;
    for ((world, processes), cores) in shapes().into_iter().flat_map(|shape| [(shape, 2), (shape, 8)]) {
        let world = World { cores, ..world };
        let best = world.best(processes);
        let (mut after_ten, mut at_end) = (Vec::new(), Vec::new());
        for seed in 0..SEEDS {
            let mut shared = Shared::new(world, 1, seed).alone();
            let start = Setting { threads: cores, processes: 1, window: 2 * cores };
            let mut controller = Controller::new(start, bounds(cores, processes));
            let mut decisions = Vec::new();
            let share = |at: Setting| world.rate(at.threads, at.processes) / best;
            for quarter in 0..120 {
                if quarter == 40 {
                    after_ten.push(share(controller.setting()));
                }
                decisions.extend(controller.step(&shared.pass(controller.setting(), 0.25)));
            }
            at_end.push(share(controller.setting()));
            let fewer = decisions.iter().filter(|d| d.knob == Knob::Processes && d.to < d.from).count();
            assert!(fewer <= 2, "{world:?}: processes come and go: {decisions:#?}");
        }
        for (shares, when) in [(&mut after_ten, 10), (&mut at_end, 30)] {
            shares.sort_by(f64::total_cmp);
            let (least, median) = (shares[0], shares[shares.len() / 2]);
            assert!(median >= 0.95 && least >= 0.94, "{world:?} after {when} s: median {median:.3}, least {least:.3}");
        }
    }
}

/// Threads of a process gain nothing if a function holds the interpreter's lock. The controller need not try that.
#[test]
fn functions_that_hold_the_lock_get_processes() {
    let held = World { blocked_s: 0.005, cpu_s: 100e-6, locks: true, locks_while_blocked: true, ..NOTHING };
    let mut controller = Controller::new(Setting { threads: 4, processes: 2, window: 8 }, bounds(2, 16));
    for _ in 0..120 {
        let m = held.second(controller.setting(), 0.5);
        if let Some(decision) = controller.step(&m) {
            let more = decision.knob == Knob::Threads && decision.to > decision.from;
            assert!(m.locked_s < 0.25 * m.busy_s || !more, "{decision}");
        }
    }
    let at = controller.setting();
    assert!(held.rate(at.threads, at.processes) >= 0.95 * held.best(16), "{at:?}");

    // Functions that release the lock while they wait get threads, until the lock is always taken.
    for cpu_s in [50e-6, 500e-6] {
        let lets_go = World { blocked_s: 0.005, cpu_s, locks: true, ..NOTHING };
        let (at, _) = settle(&lets_go, (2, 2), bounds(2, 16), 200);
        assert!(lets_go.rate(at.threads, at.processes) >= 0.95 * lets_go.best(16), "{cpu_s}: {at:?}");
        assert!(at.processes <= 3, "{at:?}");
    }
}

/// Computing work gains nothing from threads without a core.
#[test]
fn what_computes_stays_on_its_cores() {
    for cores in [2, 8] {
        let world = World { cpu_s: 0.001, cores, ..NOTHING };
        let (at, changes) = settle(&world, (cores, 1), bounds(cores, 1), 200);
        assert_eq!((at.threads, changes <= 6), (cores, true), "{at:?}");
    }
}

/// Threads that repeat each other's decoding bring less than a single thread.
#[test]
fn threads_that_are_in_each_others_way_become_fewer() {
    for (cores, disturbed) in [(2, 1.5), (2, 3.0), (8, 0.4)] {
        let world = World { cpu_s: 0.001, disturbed, cores, ..NOTHING };
        let (at, changes) = settle(&world, (cores, 1), bounds(cores, 1), 120);
        let (reached, best) = (world.rate(at.threads, 1), world.best(1));
        assert!(reached >= 0.9 * best, "{world:?}: {at:?} gives {reached:.0} of {best:.0}");
        assert!(changes <= 30, "{world:?}: {changes}");
    }
}

/// A server that slows down under more requests gets no more requests than before.
#[test]
fn a_server_that_is_full_is_not_asked_for_more() {
    let world = World { blocked_s: 0.005, cpu_s: 10e-6, server: 400.0, ..NOTHING };
    let (at, changes) = settle(&world, (2, 1), bounds(2, 1), 600);
    assert!(at.threads <= 6, "{at:?}");
    assert!(changes <= 30, "{changes}");
}

/// Returns the share of the best fixed setting's rate that a run reaches in seconds 30 to 60, on a shared machine.
fn reached_beside_others(world: &World, start: Setting, bounds: Bounds, seed: u64) -> f64 {
    let mut shared = Shared::new(*world, start.processes, seed);
    let mut controller = Controller::new(start, bounds);
    let (mut now_s, mut counted_s, mut sum) = (0.0, 0.0, 0.0);
    while now_s < 60.0 {
        // Measures as often as a real run.
        let seconds = if now_s < 15.0 { 0.25 } else { 1.0 };
        let at = controller.setting();
        controller.step(&shared.pass(at, seconds));
        now_s += seconds;
        if now_s > 30.0 {
            (counted_s, sum) = (counted_s + seconds, sum + seconds * world.rate(at.threads, at.processes));
        }
    }
    sum / counted_s / world.best(bounds.processes.1)
}

/// Other programs may take half of the machine in the seconds in which a step is judged.
#[test]
fn a_second_that_others_take_does_not_decide() {
    const SEEDS: u64 = 200;
    let few = |cores| (Setting { threads: cores, processes: 1, window: 2 * cores }, bounds(cores, 1));
    let several = (Setting { threads: 2, processes: 2, window: 4 }, bounds(2, 16));
    let mut worlds: Vec<_> = waiting().into_iter().map(|world| (world, few(world.cores))).collect();
    worlds.push((World { cpu_s: 0.001, ..NOTHING }, few(2)));
    worlds.push((
        World { cpu_s: 0.001, cores: 8, ..NOTHING },
        (Setting { threads: 1, processes: 1, window: 1 }, bounds(8, 1)),
    ));
    for cpu_s in [50e-6, 500e-6] {
        worlds.push((World { blocked_s: 0.005, cpu_s, locks: true, ..NOTHING }, several));
    }
    let holds = World { locks: true, locks_while_blocked: true, ..NOTHING };
    worlds.push((World { blocked_s: 0.005, cpu_s: 100e-6, ..holds }, several));
    worlds.push((World { cpu_s: 0.001, cores: 8, ..holds }, (several.0, Bounds { cores: 8, ..several.1 })));
    for (world, (start, bounds)) in worlds {
        let mut reached: Vec<_> = (0..SEEDS).map(|seed| reached_beside_others(&world, start, bounds, seed)).collect();
        reached.sort_by(f64::total_cmp);
        let (least, median) = (reached[0], reached[reached.len() / 2]);
        assert!(median >= 0.95 && least >= 0.8, "{world:?}: median {median:.3}, least {least:.3}");
    }
}
