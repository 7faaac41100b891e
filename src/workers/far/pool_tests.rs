//! Passes that lease the same workers, which are threads of this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::dataset::map::Range;
use crate::dataset::{BoxIter, Stage};
use crate::error::{Error, Result};
use crate::report::Report;
use crate::tune::Decision;
use crate::{IterDatasetExt, Load, MapDatasetExt};

const BLOCK: u64 = 128 << 10;

/// Elements of nothing to 2 KiB that take a moment, and count into `made`; with `fails`, one of them fails.
fn pipeline(made: &Arc<AtomicU64>, fails: bool) -> BoxIter<Vec<i64>> {
    let made = made.clone();
    let sized = move |x: i64| {
        made.fetch_add(1, Ordering::Relaxed);
        // The work of an element.
        thread::sleep(Duration::from_micros(100));
        if fails && x == 555 { Err(Error::data("it fails")) } else { Ok(vec![x; x as usize % 250]) }
    };
    Range::new(0, 4000).shuffle(7).filter(|x| x % 13 != 4).try_map(sized).to_iter().window_shuffle(9, 3).boxed()
}

type Pool = Vec<Pooled<BoxIter<Vec<i64>>>>;

/// Workers whose pipelines count into `made`; the payload says whether it fails.
fn pool(workers: usize, made: &Arc<AtomicU64>) -> Arc<Pool> {
    let worker = |n| {
        let made = made.clone();
        let note = |_: &str, _| panic!("it is suspected");
        let make = move |payload| Ok(pipeline(&made, payload == b"fails"));
        Pooled::new(format!("host {n}"), 2, 4 * BLOCK as usize, note, make)
    };
    Arc::new((0..workers).map(worker).collect())
}

/// Leases workers as a pass wants them, until that has ended. Behind its `dies`th message nothing is heard of it any more.
fn drive(driver: &Driver, pool: &Arc<Pool>, payload: &'static str, name: &str, dies: Option<u64>) {
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut sent = 0;
    while let Ok(order) = driver.next_order(Duration::from_millis(50)) {
        if dies.is_some_and(|after| sent > after) {
            return;
        }
        match order {
            Some(Order::Start { number, place }) => {
                places.insert(number, place);
                pool[place].join(name.to_owned(), payload, payload.into());
                driver.started(number, format!("{name} {number}"), format!("host {place}"));
            }
            Some(Order::Send { number, message }) => {
                sent += 1;
                let (driver, pool, place, lease) = (driver.clone(), pool.clone(), places[&number], name.to_owned());
                thread::spawn(move || match pool[place].hear(&lease, &message) {
                    Ok((answer, block)) => driver.answered(number, &answer, block, None),
                    Err(error) => driver.gone(number, error.to_string(), true),
                });
            }
            Some(Order::End { number } | Order::Kill { number }) => {
                if let Some(place) = places.remove(&number) {
                    pool[place].leave(name);
                    driver.gone(number, "it was let go".to_owned(), false);
                }
            }
            None => {}
        }
    }
    places.values().for_each(|place| pool[*place].leave(name));
}

/// Reads a pass that leases `pool` under that name.
fn read(pool: &Arc<Pool>, payload: &'static str, name: &'static str) -> Result<(Vec<Vec<i64>>, Report)> {
    let (driver, exchange) = exchange();
    let leased = pool.clone();
    let driver = thread::spawn(move || drive(&driver, &leased, payload, name, None));
    let stages = (&pipeline(&Arc::default(), false) as &dyn Stage).lines();
    let workers = (pool.len(), pool.len());
    let options = FarOptions { workers, threads: 2, hedge: Some(3.0), shared: true, stages, ..FarOptions::default() };
    let mut loader = pipeline(&Arc::default(), false).loader().backend(FarLaunch::new(exchange, options)).build()?;
    let all = loader.by_ref().collect::<Result<_>>();
    let report = loader.report();
    drop(loader);
    driver.join().unwrap();
    Ok((all?, report))
}

#[test]
fn a_lease_ends_just_after_its_patience_and_not_before() {
    let (pool, patience, ns) = (pool(1, &Arc::default()), Duration::from_secs(60), Duration::from_nanos(1));
    let before = Instant::now();
    pool[0].join("lease".to_owned(), "pipeline", Vec::new());
    let joined = Instant::now();
    assert_eq!(pool[0].expire(before + patience, patience), 1);
    // The pass is heard of once more.
    assert!(pool[0].beat("lease"));
    let beaten = Instant::now();
    assert!(beaten > joined);
    assert_eq!(pool[0].expire(joined + patience, patience), 1);
    assert_eq!(pool[0].expire(beaten + patience + ns, patience), 0);
    assert!(!pool[0].beat("lease"));
    let error = pool[0].hear("lease", &[]).map(drop).unwrap_err();
    assert!(error.message().starts_with("its lease expired"), "{error}");
}

fn leases(pool: &Pool) -> usize {
    pool.iter().map(|worker| worker.expire(Instant::now(), Duration::MAX)).sum()
}

#[test]
fn passes_on_one_pool_have_their_streams_and_much_of_it_is_made_once() {
    let made = Arc::default();
    let pool = pool(3, &made);
    let expected = pipeline(&Arc::default(), false).collect().unwrap();
    let other = pool.clone();
    let second = thread::spawn(move || read(&other, "the same", "second").unwrap());
    let (first, report) = read(&pool, "the same", "first").unwrap();
    let (second, other) = second.join().unwrap();
    assert!(first == expected && second == expected);
    let kept = |report: &Report| report.workers.as_ref().and_then(|workers| workers.pool).unwrap();
    let (a, b) = (kept(&report), kept(&other));
    let share = (a.kept + b.kept) as f64 / (a.answers + b.answers) as f64;
    println!("{a:?} {b:?} {share:.2} {}", made.load(Ordering::Relaxed));
    // Of two passes at the same pace half of the answers could be kept ones.
    assert!(share > 0.1, "{a:?} {b:?}");
    assert!(made.load(Ordering::Relaxed) < 2 * 4000 * 12 / 13, "{made:?}");
    assert_eq!(leases(&pool), 0);
    let hosts = &report.stages[3].hosts;
    assert!(hosts.iter().all(|host| host.host.starts_with("host ")) && hosts.len() > 1, "{hosts:?}");
    assert!(report.to_string().contains("the slowest of"), "{report}");
}

#[test]
fn what_fails_in_one_pass_fails_in_no_other() {
    let made = Arc::default();
    let pool = pool(2, &made);
    let other = pool.clone();
    let failing = thread::spawn(move || read(&other, "fails", "failing"));
    let (got, _) = read(&pool, "well", "well").unwrap();
    assert!(got == pipeline(&Arc::default(), false).collect().unwrap());
    let error = failing.join().unwrap().unwrap_err();
    assert!(error.to_string().contains("it fails"), "{error}");
    assert_eq!(leases(&pool), 0);
}

#[test]
fn a_lease_of_which_nothing_is_heard_runs_out_and_says_so() {
    let made = Arc::default();
    let pool = pool(2, &made);
    let (driver, exchange) = exchange();
    let leased = pool.clone();
    let driver = thread::spawn(move || drive(&driver, &leased, "the same", "dead", Some(20)));
    let stages = (&pipeline(&made, false) as &dyn Stage).lines();
    let options = FarOptions { workers: (2, 2), threads: 2, shared: true, stages, ..FarOptions::default() };
    let loader = pipeline(&made, false).loader().backend(FarLaunch::new(exchange, options)).build().unwrap();
    driver.join().unwrap();
    // Others go on meanwhile, and behind that.
    let (got, _) = read(&pool, "the same", "alive").unwrap();
    assert!(got == pipeline(&Arc::default(), false).collect().unwrap());
    assert_eq!(leases(&pool), 2);
    assert!(pool[0].beat("dead"));
    let later = Instant::now() + Duration::from_nanos(1);
    assert_eq!(pool.iter().map(|worker| worker.expire(later, Duration::ZERO)).sum::<usize>(), 0);
    assert!(!pool[0].beat("dead"));
    let error = pool[0].hear("dead", b"").unwrap_err();
    assert!(error.to_string().contains("its lease expired"), "{error}");
    std::mem::forget(loader);
}

/// The pass of one worker that is driven like that.
fn driven(drive: impl FnOnce(Driver) + Send + 'static) -> Result<Vec<Vec<i64>>> {
    let (driver, exchange) = exchange();
    thread::spawn(move || drive(driver));
    let stages = (&pipeline(&Arc::default(), false) as &dyn Stage).lines();
    let options = FarOptions { threads: 2, shared: true, stages, ..FarOptions::default() };
    pipeline(&Arc::default(), false).loader().backend(FarLaunch::new(exchange, options)).build()?.collect()
}

#[test]
fn a_worker_that_others_have_killed_is_nobodys_fault_here() {
    let pool = pool(1, &Arc::default());
    let got = driven(move |driver| {
        let mut dies = 12;
        while let Ok(order) = driver.next_order(Duration::from_millis(50)) {
            match order {
                Some(Order::Start { number, .. }) => {
                    pool[0].join(number.to_string(), "the same", Vec::new());
                    driver.started(number, format!("number {number}"), "host".to_owned());
                }
                Some(Order::Send { number, message }) => {
                    let Ok((answer, block)) = pool[0].hear(&number.to_string(), &message) else { continue };
                    // Answers of tasks have blocks.
                    if block.is_some() && dies > 0 {
                        dies -= 1;
                        pool[0].leave(&number.to_string());
                        driver.ended(number, "killed by another trainer's element".to_owned(), true, Blame::Others);
                    } else {
                        driver.answered(number, &answer, block, None);
                    }
                }
                Some(Order::End { number } | Order::Kill { number }) => {
                    driver.gone(number, "it was let go".to_owned(), false);
                }
                None => {}
            }
        }
    });
    assert!(got.unwrap() == pipeline(&Arc::default(), false).collect().unwrap());
}

#[test]
fn a_pool_that_is_another_ends_the_pass_at_once() {
    let error = driven(|driver| {
        while let Ok(order) = driver.next_order(Duration::from_millis(50)) {
            if let Some(Order::Start { number, .. }) = order {
                driver.refused(number, "the pool has cpus_per_actor=2, and this trainer asks for 4".to_owned());
            }
        }
    });
    let error = error.unwrap_err();
    assert!(error.to_string().contains("the pool has cpus_per_actor=2"), "{error}");
}

#[test]
fn workers_come_while_the_loop_waits_and_go_when_it_does_not() {
    let pool = pool(3, &Arc::default());
    let (driver, exchange) = exchange();
    let leased = pool.clone();
    let driver = thread::spawn(move || drive(&driver, &leased, "the same", "one", None));
    let stages = (&pipeline(&Arc::default(), false) as &dyn Stage).lines();
    let (idle, tick) = (Duration::from_millis(300), Duration::from_millis(20));
    let (workers, ram_budget, hedge) = ((1, 3), 4 << 20, None);
    let options = FarOptions {
        workers,
        threads: 2,
        ram_budget,
        block: BLOCK,
        hedge,
        idle,
        tick,
        shared: true,
        stages,
        ..FarOptions::default()
    };
    let loader = pipeline(&Arc::default(), false).loader().backend(FarLaunch::new(exchange, options)).buffer(4);
    let mut loader = loader.build().unwrap();
    let decisions = |loader: &mut crate::Loader<_>| loader.report().workers.map(|workers| workers.decisions).unwrap();
    // As fast as it goes, and then slowly.
    let mut got = Vec::new();
    for element in loader.by_ref().take(2000) {
        got.push(element.unwrap());
    }
    let first = decisions(&mut loader).first().cloned().unwrap();
    assert!(first.from == 1 && first.to > 1 && first.reason.starts_with("consumer waits"), "{first:?}");
    let fewer = |all: &[Decision]| all.iter().find(|decision| decision.reason.contains("too little to do")).cloned();
    let mut is_slow = true;
    while let Some(element) = loader.next() {
        got.push(element.unwrap());
        if is_slow {
            // The step of a slow consumer, until the workers were seen to have too little to do.
            thread::sleep(Duration::from_millis(5));
            // A report takes its time, too: few are made.
            is_slow = got.len() % 50 > 0 || fewer(&decisions(&mut loader)).is_none();
        }
    }
    assert!(got == pipeline(&Arc::default(), false).collect().unwrap());
    let all = decisions(&mut loader);
    let fewer = fewer(&all);
    assert!(fewer.is_some_and(|fewer| fewer.to + 1 == fewer.from), "{all:?}");
    assert!(loader.report().to_string().contains("tuned at"), "{all:?}");
    drop(loader);
    driver.join().unwrap();
    assert_eq!(leases(&pool), 0);
}
