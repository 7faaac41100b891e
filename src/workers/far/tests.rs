//! Workers of threads in this process, reached by a driver that loses some of them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::messages::Request;
use super::*;
use crate::dataset::map::Range;
use crate::dataset::{BoxIter, Stage};
use crate::error::Result;
use crate::sync::Locked;
use crate::workers::control::ToWorker;
use crate::{IterDatasetExt, Load, Loader, MapDatasetExt};

const BLOCK: u64 = 128 << 10;

/// Elements of nothing to 64 KiB, and some that are left out.
fn pipeline() -> BoxIter<Vec<i64>> {
    let sized = |x: i64| vec![x; if x % 91 == 0 { 8000 } else { x as usize % 60 }];
    Range::new(0, 3000).shuffle(7).filter(|x| x % 13 != 4).map(sized).to_iter().window_shuffle(9, 3).boxed()
}

/// How a driver treats its workers.
#[derive(Clone, Copy, Default)]
struct Manners {
    /// Every so many-th answer is lost with its worker, but none twice; 0 for none.
    loses: u64,
    /// The third worker does not start.
    refuses: bool,
    /// Two answers say something else than their blocks: fewer than workers may die over an element.
    garbles: bool,
    /// The first worker answers nothing any more behind its tenth answer, and does not end.
    hangs: bool,
}

/// Drives workers that are threads, until the pass has ended.
fn drive(driver: &Driver, manners: Manners) {
    let (answers, blocks) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    // Tasks whose answers were lost, by their first index: over one that is lost three times three workers have died, which ends the pass.
    let lost = Arc::<Mutex<HashSet<u64>>>::default();
    threads::drive(driver, |number| {
        if manners.refuses && number == 2 {
            driver.not_started(number, "no machine has room".to_owned());
            return None;
        }
        let (driver, answers, blocks, lost) = (driver.clone(), answers.clone(), blocks.clone(), lost.clone());
        Some(Box::new(move |told| {
            let worker = Evaluator::new("here".to_owned(), || Ok(pipeline()));
            driver.started(number, format!("thread {number}"), format!("machine {number}"));
            let mut own = 0;
            for message in told {
                let (answer, block) = worker.hear(&message).unwrap();
                let count = answers.fetch_add(1, Ordering::Relaxed) + 1;
                let is_lost = |message: &[u8]| match Request::read(message).unwrap().message {
                    ToWorker::Task(task) => lost.locked().insert(task.start),
                    _ => true,
                };
                if manners.loses > 0 && count.is_multiple_of(manners.loses) && is_lost(&message) {
                    return driver.gone(number, "its machine is gone".to_owned(), true);
                }
                own += 1;
                if manners.hangs && number == 0 && own > 10 {
                    continue;
                }
                let block = match block {
                    Some(block) if manners.garbles && [2, 5].contains(&blocks.fetch_add(1, Ordering::Relaxed)) => {
                        block.slice(0..block.len() / 2)
                    }
                    block => block,
                };
                driver.answered(number, &answer, block, None);
            }
        }))
    });
}

/// Starts a pass whose workers are driven like that.
fn start(workers: (usize, usize), ram_budget: u64, manners: Manners) -> Result<Loader<BoxIter<Vec<i64>>>> {
    let (driver, exchange) = exchange();
    thread::spawn(move || drive(&driver, manners));
    let stages = (&pipeline() as &dyn Stage).lines();
    // Of a few answers it cannot be told which is late.
    let block = if manners.hangs { BLOCK / 8 } else { BLOCK };
    let options =
        FarOptions { workers, threads: 2, ram_budget, block, hedge: Some(3.0), stages, ..FarOptions::default() };
    pipeline().loader().backend(FarLaunch::new(exchange, options)).build()
}

fn read(workers: (usize, usize), ram_budget: u64, manners: Manners) -> Vec<Vec<i64>> {
    start(workers, ram_budget, manners).unwrap().collect::<Result<_>>().unwrap()
}

#[test]
fn the_stream_is_that_of_this_process_however_many_there_are_and_whatever_happens_to_them() {
    let expected = pipeline().collect().unwrap();
    for (workers, manners) in [
        ((1, 1), Manners::default()),
        ((3, 3), Manners::default()),
        ((1, 4), Manners::default()),
        ((3, 3), Manners { loses: 7, ..Manners::default() }),
        ((3, 4), Manners { refuses: true, ..Manners::default() }),
        ((2, 2), Manners { garbles: true, ..Manners::default() }),
    ] {
        assert!(read(workers, 4 << 20, manners) == expected, "{workers:?}");
    }
}

#[test]
fn what_is_under_way_and_in_use_stays_in_its_budget() {
    let budget = 1 << 20;
    let mut loader = start((3, 3), budget, Manners::default()).unwrap();
    let all: Vec<_> = loader.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!(all, pipeline().collect().unwrap());
    let workers = loader.report().workers.unwrap();
    assert!(workers.slab_high_water_bytes > 0 && workers.slab_high_water_bytes <= budget, "{workers:?}");
    assert!(workers.workers.iter().all(|worker| worker.host.as_deref() == Some("here")), "{workers:?}");
}

#[test]
fn a_pass_that_is_dropped_lets_go_of_workers_that_are_being_started() {
    let (driver, exchange) = exchange();
    let ended = Arc::<AtomicBool>::default();
    let tell = ended.clone();
    let driver = thread::spawn(move || {
        while driver.next_order(Duration::from_millis(10)).is_ok() {}
        tell.store(true, Ordering::Relaxed);
    });
    let stages = (&pipeline() as &dyn Stage).lines();
    let options = FarOptions { workers: (2, 2), hedge: Some(3.0), stages, ..FarOptions::default() };
    drop(pipeline().loader().backend(FarLaunch::new(exchange, options)).build().unwrap());
    driver.join().unwrap();
    assert!(ended.load(Ordering::Relaxed));
}

#[test]
fn another_pipeline_and_too_small_a_budget_are_refused() {
    let (_office, exchange) = exchange();
    let options = FarOptions { ram_budget: 1 << 18, hedge: Some(3.0), ..FarOptions::default() };
    let error = pipeline().loader().backend(FarLaunch::new(exchange, options)).build().err().unwrap();
    assert!(error.to_string().contains("blocks of 128 KiB need"), "{error}");
}

#[test]
fn a_worker_with_another_pipeline_ends_the_pass_with_the_stage_that_differs() {
    let (driver, exchange) = exchange();
    thread::spawn(move || drive(&driver, Manners::default()));
    let mut stages = (&pipeline() as &dyn Stage).lines();
    stages[1] = "shuffle(seed=8)".to_owned();
    let options = FarOptions { hedge: Some(3.0), stages, ..FarOptions::default() };
    let mut loader = pipeline().loader().backend(FarLaunch::new(exchange, options)).build().unwrap();
    let error = loader.next().unwrap().unwrap_err();
    assert!(error.to_string().contains("stage 1 is shuffle(seed=7), but in the parent shuffle(seed=8)"), "{error}");
}

#[test]
fn where_no_worker_can_be_started_the_pass_ends_with_the_reason() {
    let (driver, exchange) = exchange();
    thread::spawn(move || {
        while let Ok(order) = driver.next_order(Duration::from_millis(10)) {
            if let Some(Order::Start { number, .. }) = order {
                driver.cannot_start(number, "its environment cannot be made".to_owned());
            }
        }
    });
    let stages = (&pipeline() as &dyn Stage).lines();
    let options =
        FarOptions { workers: (1, 2), threads: 1, ram_budget: 4 << 20, block: BLOCK, stages, ..FarOptions::default() };
    let mut loader = pipeline().loader().backend(FarLaunch::new(exchange, options)).build().unwrap();
    let error = loader.next().unwrap().unwrap_err();
    assert!(error.to_string().contains("its environment cannot be made"), "{error}");
}

#[test]
fn what_a_machine_is_late_with_another_is_asked() {
    let mut loader = start((2, 2), 4 << 20, Manners { hangs: true, ..Manners::default() }).unwrap();
    let all: Vec<_> = loader.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!(all, pipeline().collect().unwrap());
    let report = loader.report();
    assert!(report.to_string().contains("asked of another worker"), "{report}");
    assert_eq!(report.workers.unwrap().replaced, 0);
}
