//! Shared and private memory of workers against the budget.

use super::*;

#[test]
fn a_worker_keeps_no_more_shared_memory_than_its_part_of_half() {
    let mut desk = Desk::new(options());
    // 20 MiB, without the 5 for the head of the line, by half, for three workers.
    assert_eq!(desk.coordinator.keep(), 5 * MIB / 2);
    let worker = desk.join(0, Worker::default());
    desk.submit(0..10, How::Slots);
    let mut kept = Vec::new();
    let keep = |desk: &mut Desk, kept: &mut Vec<ExtentId>| {
        let task = worker.last_task();
        desk.need(0, Need { id: task.id, bytes: MIB, kept: false });
        let task = worker.last_task();
        assert_eq!(task.extent.len() as u64, MIB);
        kept.push(task.extent);
        desk.need(0, Need { id: task.id, bytes: 0, kept: true });
    };
    keep(&mut desk, &mut kept);
    keep(&mut desk, &mut kept);
    assert!(!worker.is_killed());
    // One that is returned counts no more.
    desk.coordinator.listen(0, FromWorker::Returned(kept[0]));
    keep(&mut desk, &mut kept);
    assert!(!worker.is_killed());
    keep(&mut desk, &mut kept);
    assert!(worker.is_killed());
    assert_eq!(desk.killed(0), Some("it keeps 3 MiB of shared memory, of 2.5 MiB at most"));
    assert_eq!(desk.noted("ranges evaluated again because a function keeps an array"), 3);
}

#[test]
fn a_worker_of_a_run_without_arrays_in_the_slab_keeps_nothing() {
    let mut desk = Desk::new(MpOptions { arrays_in_slab: false, ..options() });
    let worker = desk.join(0, Worker::default());
    desk.submit(0..10, How::Slots);
    desk.need(0, Need { id: worker.last_task().id, bytes: 0, kept: true });
    assert!(worker.is_killed());
}

#[test]
fn an_element_above_the_largest_is_refused_and_others_are_not() {
    let mut desk = Desk::new(options());
    let worker = desk.join(0, Worker::default());
    let inbox = desk.submit(3..10, How::Slots);
    desk.need(0, Need { id: worker.last_task().id, bytes: 5 * MIB, kept: false });
    assert_eq!(worker.last_task().extent.len() as u64, 5 * MIB);
    desk.need(0, Need { id: worker.last_task().id, bytes: 5 * MIB + 1, kept: false });
    let errors = inbox.errors();
    assert!(errors.len() == 1 && errors[0].starts_with("element 3: an element of 5"), "{errors:?}");
}

/// Options of a run whose number of workers is left to the tuner: the first has all of the pool.
fn tuned() -> MpOptions {
    MpOptions::auto().max_workers(6).threads_per_worker(2).ram_budget(1000 * MIB)
}

#[test]
fn the_most_private_memory_that_was_seen_bounds_the_number_of_workers() {
    let mut desk = Desk::new(tuned());
    let worker = desk.join(0, Worker::default());
    let most = desk.coordinator.plan.workers;
    assert_eq!((most, desk.coordinator.most_workers()), (6, 6));
    desk.submit(0..4, How::Slots);
    worker.memory.store(110 * MIB, Ordering::Relaxed);
    desk.finish(0, &worker.last_task());
    // Half as much again, 165 MiB, fits three times into the 500 that workers have.
    let allowed = desk.coordinator.most_workers();
    assert_eq!(allowed, desk.coordinator.plan.workers_with(165 * MIB));
    assert!((2..=3).contains(&allowed), "{allowed}");
    // A worker that needs less later does not lower it.
    worker.memory.store(0, Ordering::Relaxed);
    desk.coordinator.crew.get_mut(&0).unwrap().looked = None;
    desk.coordinator.look_at_heap(0);
    assert_eq!(desk.coordinator.most_workers(), allowed);
}

#[test]
fn an_element_that_may_need_all_memory_has_the_only_worker_and_others_go_home() {
    let mut desk = Desk::new(tuned());
    desk.coordinator.resize(3);
    let share = desk.coordinator.staffing().1;
    for number in 0..3 {
        desk.join_with(number, share, Worker::default());
    }
    let inbox = desk.submit(0..1, How::Slots);
    for _ in 0..3 {
        let number = *desk.coordinator.crew.iter().find(|(_, member)| !member.tasks.is_empty()).unwrap().0;
        desk.dies(number, OWN);
        if desk.noted("elements tried again with the memory of all workers") == 0 {
            desk.join_with(number + 3, share, Worker::default());
            desk.coordinator.hand_out();
        }
    }
    assert_eq!(desk.noted("elements tried again with the memory of all workers"), 1);
    let solo = desk.coordinator.plan.solo_heap_bytes;
    assert_eq!(desk.coordinator.staffing(), (1, solo));
    desk.coordinator.make_room();
    assert!(desk.coordinator.crew.values().all(|member| member.leaving), "each has less than that worker is to have");
    assert!(!desk.coordinator.has_heap(solo), "their memory is not free before they have ended");
    desk.coordinator.dismiss();
    for number in desk.coordinator.crew.keys().copied().collect::<Vec<_>>() {
        desk.dies(number, OWN);
    }
    assert!(desk.coordinator.has_heap(solo));
    let alone = desk.join(9, Worker::default());
    desk.coordinator.hand_out();
    desk.finish(9, &alone.last_task());
    assert_eq!((inbox.indices(), inbox.errors().len()), (1, 0));
    // Behind it the pool is shared again.
    assert_eq!(desk.coordinator.staffing(), (3, share));
}

#[test]
fn a_cap_that_is_too_large_is_lowered_or_its_worker_goes_home() {
    for lowers in [true, false] {
        let mut desk = Desk::new(tuned());
        let all = desk.coordinator.plan.solo_heap_bytes;
        desk.join(0, Worker { lowers, ..Worker::default() });
        assert_eq!(desk.coordinator.crew[&0].cap, all);
        desk.coordinator.resize(2);
        desk.coordinator.make_room();
        let member = &desk.coordinator.crew[&0];
        let share = desk.coordinator.plan.share(2);
        assert_eq!((member.cap, member.leaving), if lowers { (share, false) } else { (all, true) });
        assert_eq!(desk.coordinator.has_heap(share), lowers);
    }
}

#[test]
fn more_than_the_budget_is_noted_once() {
    let mut desk = Desk::new(MpOptions { tick: Duration::ZERO, ..options() });
    let [one, two] = [0, 1].map(|number| desk.join(number, Worker::default()));
    let budget = desk.coordinator.plan.budget_bytes;
    const NOTE: &str = "times that workers were seen to use more than ram_budget";
    one.memory.store(budget / 2, Ordering::Relaxed);
    two.memory.store(budget - budget / 2, Ordering::Relaxed);
    desk.coordinator.measure();
    assert_eq!(desk.noted(NOTE), 0);
    two.memory.store(budget - budget / 2 + 1, Ordering::Relaxed);
    desk.coordinator.measure();
    desk.coordinator.measure();
    assert_eq!(desk.noted(NOTE), 1);
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
