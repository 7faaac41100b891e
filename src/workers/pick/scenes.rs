//! Choices on simulated machines; no run takes real time.

use std::time::Duration;

use super::trial::Passes;
use super::{Choice, PickLimits, choose};
use crate::tune::world::{NOTHING, World};
use crate::tune::{Bounds, Controller, MANY_THREADS, Setting};

const MS: f64 = 1e-3;

/// Simulates a run on `world` with one process: with a controller that steps every quarter second, or without.
fn run(world: &World, limits: &PickLimits, threads: usize, tuned: bool, time: Duration) -> Passes {
    let world = World { step_s: limits.step.as_secs_f64().max(world.step_s), ..*world };
    let most = limits.max_threads.unwrap_or(MANY_THREADS);
    let bounds = Bounds { cores: world.cores, ..Bounds::of_threads(most, 1 << 10) };
    let mut controller = Controller::new(Setting { threads, processes: 1, window: 4 * threads }, bounds);
    let mut passes = Passes { threads, ..Passes::default() };
    let (each_s, mut delivered) = (0.25, 0.0);
    for _ in 0..(time.as_secs_f64() / each_s) as usize {
        let m = world.second(controller.setting(), 0.5);
        if tuned {
            passes.decisions.extend(controller.step(&m));
            passes.threads = controller.setting().threads;
        }
        delivered += m.elements * each_s;
        passes.wall_s += each_s;
        passes.wait_s += m.wait_s * each_s;
        passes.busy_s += m.busy_s * each_s;
        passes.worked_s += m.busy_s * each_s;
        passes.cpu_s += m.cpu_s * each_s;
    }
    (passes.delivered, passes.steady, passes.steady_s) = (delivered as u64, delivered as u64, passes.wall_s);
    passes
}

/// Returns the choice on `world`: the number of threads, and the reason for each change.
fn chosen(world: World, limits: PickLimits) -> (usize, Vec<String>) {
    let choice = choose(&limits, world.cores, |threads, tuned, time| Ok(run(&world, &limits, threads, tuned, time)));
    let Choice { start, chosen, decisions, .. } = choice.unwrap();
    assert_eq!(start.threads, 1);
    assert!(chosen.batches_per_s >= 0.999 * start.batches_per_s, "{chosen:?} {start:?}");
    assert_eq!(decisions.last().map_or(1, |decision| decision.to), chosen.threads, "{decisions:?}");
    (chosen.threads, decisions.into_iter().map(|decision| decision.reason).collect())
}

#[test]
fn threads_are_those_that_bring_something() {
    let limits = PickLimits::new;
    let (computes, waits) =
        (World { cpu_s: MS, ..NOTHING }, World { cpu_s: 0.02 * MS, blocked_s: 5.0 * MS, ..NOTHING });
    let holds = World { locks: true, ..computes };
    let step = |ms| limits().step(Duration::from_millis(ms));
    for (what, world, limits, expected) in [
        ("work on two cores", computes, limits(), 2..=2),
        ("work on eight cores", World { cores: 8, ..computes }, limits(), 8..=8),
        (
            "work on eight cores, of which three may be used",
            World { cores: 8, ..computes },
            limits().max_threads(3),
            3..=3,
        ),
        ("waiting, far beyond the cores", waits, limits(), 32..=256),
        ("waiting, with four threads at most", waits, limits().max_threads(4), 4..=4),
        ("waiting, for a consumer that takes a batch every two milliseconds", waits, step(2), 3..=4),
        ("work for a consumer that is fed by one thread", computes, step(30), 1..=1),
        ("work with the interpreter's lock", holds, limits(), 1..=1),
        ("waiting for a server that lets 200 through", World { server: 200.0, ..waits }, limits(), 1..=2),
    ] {
        let (threads, reasons) = chosen(world, limits);
        assert!(expected.contains(&threads), "{what}: {threads} {reasons:?}");
    }
}

#[test]
fn each_change_has_its_reason() {
    let computes = World { cpu_s: MS, ..NOTHING };
    let (_, reasons) = chosen(computes, PickLimits::new());
    assert_eq!(reasons[0], "one thread works 1.00 ms on a batch, and the consumer takes all it gets");
    assert!(
        reasons[1..].iter().all(|reason| reason.contains("fewer") || reason.contains("the cores are taken")),
        "{reasons:?}"
    );
    let step = PickLimits::new().step(Duration::from_millis(30));
    assert!(chosen(computes, step).1.is_empty());
    let (_, reasons) = chosen(World { locks: true, ..computes }, PickLimits::new());
    assert!(reasons.last().unwrap().ends_with(" brought +0 %: one is enough"), "{reasons:?}");
}

/// Figures of a ten-second run: threads, batches per second, and the share of time in which threads were busy.
fn figures(threads: usize, per_s: u64, busy: f64) -> Passes {
    let busy_s = 10.0 * busy * threads as f64;
    Passes {
        delivered: 10 * per_s,
        steady: 10 * per_s,
        wall_s: 10.0,
        steady_s: 10.0,
        busy_s,
        threads,
        ..Passes::default()
    }
}

/// Returns the number of threads and the last reason. The second run ends with 8 threads that are busy for the given
/// share and make 1000 batches per second; the third run makes `last`.
fn after_tuning(busy: f64, last: u64) -> (usize, String) {
    let limits = PickLimits::new().max_threads(8);
    let mut asked = Vec::new();
    let choice = choose(&limits, 8, |threads, tuned, _| {
        asked.push((threads, tuned));
        Ok(match asked.len() {
            1 => figures(1, 150, 1.0),
            2 => figures(8, 1000, busy),
            _ => figures(threads, last, 1.0),
        })
    });
    let Choice { chosen, decisions, .. } = choice.unwrap();
    assert_eq!(asked[..2], [(1, false), (8, true)]);
    (chosen.threads, decisions.last().unwrap().reason.clone())
}

#[test]
fn threads_that_were_idle_are_given_back_if_the_others_do_as_much() {
    assert_eq!(after_tuning(0.5, 980), (5, "the threads were busy 50 %: 5 do as much".to_owned()));
    // More threads must bring a gain of at least 3 %.
    assert_eq!(after_tuning(0.5, 971), (5, "the threads were busy 50 %: 5 do as much".to_owned()));
    assert_eq!(after_tuning(0.5, 970), (8, "5 did -3 % after all".to_owned()));
    // All threads are needed.
    let (threads, reason) = after_tuning(0.86, 1000);
    assert_eq!((threads, reason.starts_with("one thread works")), (8, true), "{reason}");
    // The first run, with one thread, made 150.
    assert_eq!(after_tuning(0.1, 1000).0, 1);
}
