//! Tests that follow the advice on a simulated machine: it speeds up the run, and not by more than promised.

use std::time::Duration;

use super::{Change, Execution, Place, Report, StageReport, StageWork, Traits, Waits, scenes, verdict, waited, why};
use crate::cx::{Account, Cause, Shares};
use crate::dataset::Role;
use crate::report::WorkersReport;
use crate::tune::world::{NOTHING, World};

/// The evaluator: threads of all processes, and worker processes. 0 processes are this process; 0 threads are the consumer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Crew(usize, usize);

const BATCHES: u64 = 1000;
const STARTUP_S: f64 = 2.0;

/// Returns the report of a run on `world` with a slow first element.
fn report(world: &World, Crew(threads, processes): Crew) -> Report {
    let rate = world.rate(threads, processes);
    let steady_s = (BATCHES - 1) as f64 / rate;
    let wall_s = steady_s + STARTUP_S;
    let waits_s = steady_s - BATCHES as f64 * world.step_s;
    let (busy_s, locked_s) = world.busy_s(threads, processes);
    let all = BATCHES as f64;
    let self_s = if threads == 0 { all * world.service_s() } else { busy_s * steady_s };
    let place = if threads == 0 { Place::Consumer } else { Place::Threads };
    // With a lock that is always taken, a wait for it inside a function cannot be distinguished from other waits.
    let source = StageReport {
        work: StageWork {
            self_s,
            cpu_s: all * world.cpu_s,
            blocked_s: (self_s - all * world.cpu_s - locked_s * steady_s).max(0.0),
            lock_s: locked_s * steady_s,
        },
        interpreted: world.locks,
        ..stage(0, "source", Role::Source, place, self_s)
    };
    let suffix_place = if threads == 0 { Place::Consumer } else { Place::Suffix };
    let pack_s = all * world.suffix_s;
    let mut pack = stage(1, "pack", Role::Stateful, suffix_place, pack_s);
    pack.work.cpu_s = pack_s;
    let mut stages = vec![source, pack];
    let mut account =
        Account { shares: Shares::of(Cause::Start, Duration::from_secs_f64(STARTUP_S)), ..Account::default() };
    // The reader only packs and otherwise waits for threads; without threads it does all the work.
    let packing = if threads > 0 { pack_s / steady_s.max(pack_s) } else { 1.0 };
    account.shares.count(Cause::Reader, Duration::from_secs_f64(waits_s.max(0.0) * packing));
    account.shares.count(Cause::Evaluation, Duration::from_secs_f64(waits_s.max(0.0) * (1.0 - packing)));
    let locks = if processes > 0 { why::Locks::Elsewhere } else { why::Locks::Here };
    let why = why::parts(&account, Shares::default(), locks, &stages, wall_s);
    let rest = waited::share_out(&why, &mut stages);
    let workers =
        (processes > 0).then(|| WorkersReport { workers: vec![Default::default(); processes], ..Default::default() });
    let mut report = Report {
        execution: Execution {
            threads,
            threads_busy_share: busy_s / threads.max(1) as f64 * steady_s / wall_s,
            cores: world.cores,
            ..Execution::default()
        },
        wall_s,
        delivered: BATCHES,
        waits: Waits {
            consumer_wait_share: (waits_s + STARTUP_S) / wall_s,
            steady_wait_share: (waits_s / steady_s).max(0.0),
            first_wait_s: STARTUP_S,
            startup_share: rest.startup,
            handover_share: rest.handover,
            aside_share: rest.aside,
            why,
            ..Waits::default()
        },
        workers,
        stages,
        ..scenes::nothing()
    };
    report.verdict = verdict::judge(&report);
    report
}

pub(super) fn stage(id: usize, name: &str, role: Role, place: Place, self_s: f64) -> StageReport {
    StageReport {
        id,
        name: name.into(),
        params: String::new(),
        place,
        wait_share: 0.0,
        work: StageWork { self_s, ..StageWork::default() },
        interpreted: false,
        self_us_per_element: self_s * 1e6 / BATCHES as f64,
        p99_us: 0.0,
        elements: BATCHES,
        elements_per_s: 0.0,
        bytes_per_s: 0.0,
        hosts: Vec::new(),
        traits: Traits { role, in_order: role == Role::Stateful, ..Traits::default() },
    }
}

/// Returns the elements per second of the run after `change`.
fn followed(world: &World, Crew(threads, processes): Crew, change: Change) -> f64 {
    match change {
        Change::Threads(threads) => world.rate(threads, 0),
        Change::Workers { workers, threads_per_worker } => world.rate(workers * threads_per_worker, workers),
        Change::Cheaper(0) => World { cpu_s: 1e-9, blocked_s: 0.0, server: 1e9, ..*world }.rate(threads, processes),
        Change::Cheaper(_) => World { suffix_s: 1e-9, ..*world }.rate(threads, processes),
        other => panic!("in these worlds nothing is in the way but work: {other:?}"),
    }
}

fn scenarios() -> Vec<(World, Crew)> {
    let ms = 1e-3;
    let waits = World { blocked_s: 2.0 * ms, cpu_s: 0.02 * ms, ..NOTHING };
    let computes = World { cpu_s: ms, ..NOTHING };
    let holds = World { locks: true, ..computes };
    let lets_go = World { locks: true, ..waits };
    let mixed = World { cpu_s: ms, blocked_s: 4.0 * ms, locks: true, ..NOTHING };
    let eight = |world: World| World { cores: 8, ..world };
    vec![
        (waits, Crew(0, 0)),
        (waits, Crew(2, 0)),
        (waits, Crew(16, 0)),
        (waits, Crew(2, 1)),
        (World { blocked_s: 5.0 * ms, step_s: ms, ..waits }, Crew(0, 0)),
        (World { blocked_s: 5.0 * ms, step_s: ms, ..waits }, Crew(2, 0)),
        (World { server: 600.0, ..waits }, Crew(2, 0)),
        (World { suffix_s: 0.5 * ms, ..waits }, Crew(2, 0)),
        (computes, Crew(0, 0)),
        (computes, Crew(1, 0)),
        (computes, Crew(2, 0)),
        (World { step_s: 0.4 * ms, ..computes }, Crew(1, 1)),
        (eight(computes), Crew(0, 0)),
        (eight(computes), Crew(3, 0)),
        (holds, Crew(0, 0)),
        (holds, Crew(2, 0)),
        (eight(holds), Crew(4, 0)),
        (eight(holds), Crew(2, 2)),
        (lets_go, Crew(0, 0)),
        (lets_go, Crew(2, 2)),
        (mixed, Crew(0, 0)),
        (mixed, Crew(2, 2)),
        (World { suffix_s: 3.0 * ms, ..computes }, Crew(2, 0)),
        (World { step_s: 5.0 * ms, ..computes }, Crew(0, 0)),
    ]
}

#[test]
fn advice_that_is_followed_brings_what_it_says_and_no_more() {
    let mut given = 0;
    for (world, crew) in scenarios() {
        let report = report(&world, crew);
        let before = world.rate(crew.0, crew.1);
        for advice in &report.verdict.advice {
            let gain = followed(&world, crew, advice.change) / before;
            let told = advice.expected_speedup;
            // Predicted gains are capped at a factor of ten.
            assert!(told <= 10.0 && gain >= 0.999, "{world:?} {crew:?}: {advice:?} brings {gain:.2}");
            let hidden = world.server < 1e6;
            assert!(hidden || gain >= 1.0 + 0.6 * (told - 1.0), "{world:?} {crew:?}: {advice:?} brings {gain:.2}");
            assert!(gain <= 1.05 * told || told == 10.0, "{world:?} {crew:?}: {advice:?} brings {gain:.2}");
            given += 1;
        }
    }
    assert!(given >= 20, "{given}");
}

#[test]
fn functions_that_hold_the_lock_are_sent_to_processes_and_no_others() {
    for (world, crew) in scenarios() {
        for advice in report(&world, crew).verdict.advice {
            match advice.change {
                Change::Workers { workers, .. } if workers > crew.1 => {
                    assert!(world.locks && world.cpu_s > 0.1e-3, "{world:?} {crew:?}: {advice:?}");
                }
                Change::Threads(_) if world.locks => assert!(world.blocked_s > 0.0, "{world:?} {crew:?}: {advice:?}"),
                _ => {}
            }
        }
    }
}

#[test]
fn nobody_is_told_that_threads_gain_nothing_where_they_do() {
    for (world, crew) in scenarios() {
        let report = report(&world, crew);
        let more = world.rate(64, crew.1) / world.rate(crew.0, crew.1);
        let denied = report.verdict.advice.iter().any(|advice| advice.text.contains("gain nothing"));
        assert!(!denied || more < 1.05, "{world:?} {crew:?}: {:?}", report.verdict);
        let threads = |change| matches!(change, Change::Threads(n) if n > crew.0);
        let advised = report.verdict.advice.iter().any(|advice| threads(advice.change));
        let pays = crew.1 == 0 && more > 1.3 && world.server > 1e6 && !world.locks;
        assert!(!pays || advised, "{world:?} {crew:?}: {:?}", report.verdict);
    }
}

#[test]
fn start_up_is_a_limit_of_its_own() {
    let fed = World { step_s: 0.01, cpu_s: 1e-4, ..NOTHING };
    let slow_start = report(&fed, Crew(2, 0));
    assert_eq!(slow_start.verdict.bottleneck, "start-up", "{:?}", slow_start.verdict);
    assert!(slow_start.waits.consumer_wait_share > 0.1 && slow_start.verdict.advice.is_empty());
    let mut short = report(&World { cpu_s: 0.001, ..NOTHING }, Crew(2, 0));
    assert!(short.verdict.text.contains(". After that, source (stage 0) limits the run"), "{:?}", short.verdict);
    assert!(!short.verdict.advice.is_empty());
    short.delivered = 8;
    let verdict = verdict::judge(&short);
    assert!(verdict.bottleneck == "start-up" && verdict.advice.is_empty(), "{verdict:?}");
    assert!(!verdict.text.contains("stage"), "{verdict:?}");
}
