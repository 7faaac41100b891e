//! The number of threads and processes follows what the consumer needs, on a real machine.
//!
//! What the tuner decides is tested by scenes, in `src/tune/scenes`. Each sleep here stands for a source that waits.

use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::tune::Knob;
use gristmill::{Executor, IterDataset, Load, MapDatasetExt, Report, Result};

fn waits(ms: u64) -> Result<impl IterDataset<Item = i64>> {
    let wait = move |x| {
        // The work of an element, which takes no core.
        std::thread::sleep(Duration::from_millis(ms));
        x
    };
    Ok(Range::new(0, 1 << 40).map(wait).to_iter())
}

/// Takes elements, in their order, until `is_grown`. A test that never gets there is ended by its time limit.
fn grown<D: IterDataset<Item = i64> + 'static>(
    mut loader: gristmill::Loader<D>,
    is_grown: impl Fn(&Report) -> bool,
) -> Report {
    let mut next = 0;
    loop {
        for _ in 0..20 {
            assert_eq!(loader.next().unwrap().unwrap(), next);
            next += 1;
        }
        let report = loader.report();
        if is_grown(&report) {
            return report;
        }
    }
}

#[test]
fn threads_grow_beyond_the_cores_where_elements_wait() {
    let loader = waits(2).unwrap().loader().executor(Executor::Auto).build().unwrap();
    let report = grown(loader, |report| report.execution.threads >= 16);
    assert!(!report.decisions.is_empty() && report.is_tuned, "{report}");
}

#[cfg(all(feature = "workers", target_os = "linux"))]
mod in_workers {
    use std::sync::{Mutex, PoisonError};

    use gristmill::workers::{MpOptions, PickLimits, mp_prefetch, pick_performance_config};

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_worker_gets_more_threads_than_cores_where_elements_wait() {
        let loader = mp_prefetch(waits, 5, MpOptions::auto().ram_budget(1 << 30)).unwrap().build().unwrap();
        let report = grown(loader, |report| report.execution.threads >= 24);
        let source = &report.stages[1];
        assert!(report.is_tuned && source.work.blocked_s > 0.7 * source.work.self_s, "{report}");
        assert!(report.waits.startup.join(" ").contains("the first worker was ready after"), "{report}");
    }

    /// From one thread on, for elements that wait for something: more threads are better, and it finds that out.
    #[test]
    fn threads_are_added_while_it_runs_and_the_order_stays() {
        let options = MpOptions::auto().workers(1).worker_heap(64 * MIB).ram_budget(400 * MIB).threads_per_worker(4);
        let options = options.start_threads(1).start_window(1).tick(Duration::from_millis(100));
        let loader = mp_prefetch(waits, 5, options).unwrap().build().unwrap();
        let report = grown(loader, |report| report.workers.as_ref().unwrap().threads_per_worker == 4);
        let decisions = report.workers.unwrap().decisions;
        assert!(decisions.iter().any(|d| d.knob == Knob::Threads && d.to > d.from), "{decisions:?}");
    }

    /// What threads of a process share, and those of another do not.
    static LOCK: Mutex<()> = Mutex::new(());

    fn locked(ms: u64) -> Result<impl IterDataset<Item = i64>> {
        let wait = move |x| {
            let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            // The work of an element, which takes no core.
            std::thread::sleep(Duration::from_millis(ms));
            x
        };
        Ok(Range::new(0, 1 << 40).map(wait).to_iter())
    }

    #[test]
    fn processes_are_added_where_threads_wait_for_each_other() {
        let options = MpOptions::auto().max_workers(3).ram_budget(600 * MIB).start_threads(1);
        let loader = mp_prefetch(locked, 5, options.tick(Duration::from_millis(100))).unwrap().build().unwrap();
        let report = grown(loader, |report| report.workers.as_ref().unwrap().workers.len() == 3).workers.unwrap();
        let heaps: u64 = report.workers.iter().map(|worker| worker.heap_limit_bytes).sum();
        assert!(heaps + report.slab_bytes <= 600 * MIB && report.replaced == 0, "{report:?}");
        let decisions = &report.decisions;
        assert!(decisions.iter().any(|d| d.knob == Knob::Processes && d.to > d.from), "{decisions:?}");
    }

    #[test]
    fn options_that_are_chosen_by_a_run_have_threads_beyond_the_cores_where_elements_wait() {
        let limits = PickLimits::new().ram_budget(512 * MIB).time(Duration::from_secs(2));
        let config = pick_performance_config(waits, 5, &limits).unwrap();
        let cores = std::thread::available_parallelism().unwrap().get();
        assert!(config.threads_per_worker >= (2 * cores).min(64), "{config:?}");
        assert!(config.chosen.batches_per_s > config.start.batches_per_s, "{config:?}");
    }
}
