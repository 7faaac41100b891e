//! Shared and private memory of workers against the budget.

use super::*;

#[test]
fn a_worker_keeps_no_more_shared_memory_than_its_part_of_half() {
    let mut harness = Harness::new(options());
    // 20 MiB, without the 5 for the head of the line, by half, for three workers.
    assert_eq!(harness.coordinator.workers.begin.keep, 5 * MIB / 2);
    let worker = harness.join(0, Worker::default());
    harness.submit(0..10, How::Slots);
    let mut kept = Vec::new();
    let keep = |harness: &mut Harness, kept: &mut Vec<ExtentId>| {
        let task = worker.last_task();
        harness.need(0, Need { id: task.id, bytes: MIB, kept: false });
        let task = worker.last_task();
        assert_eq!(task.extent.len() as u64, MIB);
        kept.push(task.extent);
        harness.need(0, Need { id: task.id, bytes: 0, kept: true });
    };
    keep(&mut harness, &mut kept);
    keep(&mut harness, &mut kept);
    assert!(!worker.is_killed());
    // One that is returned counts no more.
    harness.coordinator.receive(0, FromWorker::Returned(kept[0]));
    keep(&mut harness, &mut kept);
    assert!(!worker.is_killed());
    keep(&mut harness, &mut kept);
    assert!(worker.is_killed());
    assert_eq!(harness.killed(0), Some("it keeps 3 MiB of shared memory, of 2.5 MiB at most"));
    assert_eq!(harness.noted("ranges evaluated again because a function keeps an array"), 3);
}

#[test]
fn a_worker_of_a_run_without_arrays_in_the_slab_keeps_nothing() {
    let mut harness = Harness::new(MpOptions { arrays_in_slab: false, ..options() });
    let worker = harness.join(0, Worker::default());
    harness.submit(0..10, How::Slots);
    harness.need(0, Need { id: worker.last_task().id, bytes: 0, kept: true });
    assert!(worker.is_killed());
}

#[test]
fn an_element_above_the_largest_is_refused_and_others_are_not() {
    let mut harness = Harness::new(options());
    let worker = harness.join(0, Worker::default());
    let inbox = harness.submit(3..10, How::Slots);
    harness.need(0, Need { id: worker.last_task().id, bytes: 5 * MIB, kept: false });
    assert_eq!(worker.last_task().extent.len() as u64, 5 * MIB);
    harness.need(0, Need { id: worker.last_task().id, bytes: 5 * MIB + 1, kept: false });
    let errors = inbox.errors();
    assert!(errors.len() == 1 && errors[0].starts_with("element 3: an element of 5"), "{errors:?}");
}

/// Options of a run whose number of workers is left to the tuner: the first has all of the pool.
fn tuned() -> MpOptions {
    MpOptions::auto().max_workers(6).threads_per_worker(2).ram_budget(1000 * MIB)
}

#[test]
fn the_most_private_memory_that_was_seen_bounds_the_number_of_workers() {
    let mut harness = Harness::new(tuned());
    let worker = harness.join(0, Worker::default());
    let most = harness.coordinator.plan.workers;
    assert_eq!((most, harness.coordinator.memory.most_workers()), (6, 6));
    harness.submit(0..4, How::Slots);
    worker.memory.store(110 * MIB, Ordering::Relaxed);
    harness.finish(0, &worker.last_task());
    // Half as much again, 165 MiB, fits three times into the 500 that workers have.
    let allowed = harness.coordinator.memory.most_workers();
    assert_eq!(allowed, harness.coordinator.plan.workers_with(165 * MIB));
    assert!((2..=3).contains(&allowed), "{allowed}");
    // A worker that needs less later does not lower it.
    worker.memory.store(0, Ordering::Relaxed);
    harness.coordinator.workers.all.get_mut(&0).unwrap().measured = None;
    let Coordinator { memory, workers, .. } = &mut harness.coordinator;
    memory.observe_heap(workers.all.get_mut(&0).unwrap());
    assert_eq!(harness.coordinator.memory.most_workers(), allowed);
}

#[test]
fn an_element_that_may_need_all_memory_has_the_only_worker_and_others_go_home() {
    let mut harness = Harness::new(tuned());
    harness.coordinator.workers.resize(3);
    let share = harness.coordinator.staffing().1;
    for number in 0..3 {
        harness.join_with(number, share, Worker::default());
    }
    let inbox = harness.submit(0..1, How::Slots);
    for _ in 0..3 {
        let number = *harness.coordinator.workers.all.iter().find(|(_, worker)| !worker.tasks.is_empty()).unwrap().0;
        harness.dies(number, OWN);
        if harness.noted("elements tried again with the memory of all workers") == 0 {
            harness.join_with(number + 3, share, Worker::default());
            harness.coordinator.dispatch();
        }
    }
    assert_eq!(harness.noted("elements tried again with the memory of all workers"), 1);
    let solo = harness.coordinator.plan.solo_heap_bytes;
    assert_eq!(harness.coordinator.staffing(), (1, solo));
    harness.coordinator.fit_heaps();
    assert!(
        harness.coordinator.workers.all.values().all(|worker| worker.leaving),
        "each has less than that worker is to have"
    );
    assert!(!harness.has_heap(solo), "their memory is not free before they have ended");
    harness.coordinator.workers.stop_leaving();
    for number in harness.coordinator.workers.all.keys().copied().collect::<Vec<_>>() {
        harness.dies(number, OWN);
    }
    assert!(harness.has_heap(solo));
    let alone = harness.join(9, Worker::default());
    harness.coordinator.dispatch();
    harness.finish(9, &alone.last_task());
    assert_eq!((inbox.indices(), inbox.errors().len()), (1, 0));
    // Behind it the pool is shared again.
    assert_eq!(harness.coordinator.staffing(), (3, share));
}

#[test]
fn a_cap_that_is_too_large_is_lowered_or_its_worker_goes_home() {
    for lowers in [true, false] {
        let mut harness = Harness::new(tuned());
        let all = harness.coordinator.plan.solo_heap_bytes;
        harness.join(0, Worker { lowers, ..Worker::default() });
        assert_eq!(harness.coordinator.workers.all[&0].cap, all);
        harness.coordinator.workers.resize(2);
        harness.coordinator.fit_heaps();
        let worker = &harness.coordinator.workers.all[&0];
        let share = harness.coordinator.plan.share(2);
        assert_eq!((worker.cap, worker.leaving), if lowers { (share, false) } else { (all, true) });
        assert_eq!(harness.has_heap(share), lowers);
    }
}

#[test]
fn more_than_the_budget_is_noted_once() {
    let mut harness = Harness::new(MpOptions { tick: Duration::ZERO, ..options() });
    let [one, two] = [0, 1].map(|number| harness.join(number, Worker::default()));
    let budget = harness.coordinator.plan.budget_bytes;
    const NOTE: &str = "times that workers were seen to use more than ram_budget";
    one.memory.store(budget / 2, Ordering::Relaxed);
    two.memory.store(budget - budget / 2, Ordering::Relaxed);
    harness.check_budget();
    assert_eq!(harness.noted(NOTE), 0);
    two.memory.store(budget - budget / 2 + 1, Ordering::Relaxed);
    harness.check_budget();
    harness.check_budget();
    assert_eq!(harness.noted(NOTE), 1);
}

#[test]
fn all_lanes_together_have_room_for_a_segment_that_is_read_and_one_that_is_under_way() {
    let options = options();
    let plan = Plan::new(&options, 2, 0).unwrap();
    let pool = WorkerPool::start(|_| Ok(Paper::default()), Vec::new(), plan, options, Recorder::new(1)).unwrap();
    let room = (plan.slab_bytes - plan.max_element_bytes) as usize;
    for lanes in [1, 7, 30, 80] {
        let bytes = pool.lane_bytes(lanes);
        assert!(bytes <= pool.part_bytes() && (bytes == PAGE || 3 * lanes * bytes <= room), "{bytes} for {lanes}");
    }
}
