//! Answers that cannot be, or that end a range early.

use super::*;

#[test]
fn an_answer_that_cannot_be_is_not_delivered_and_ends_its_worker() {
    let answer = |indices, last, used| Evaluated { indices, last, used, ..Evaluated::default() };
    for (lie, why) in [
        (answer(11, false, 8), "11 of 10 elements"),
        (answer(0, false, 8), "0 of 10 elements"),
        (answer(10, true, 8), "the last: true"),
        (answer(10, false, 1 << 30), "more than it was given"),
    ] {
        let mut harness = Harness::new(options());
        let liar = harness.join(0, Worker::default());
        let inbox = harness.submit(0..10, How::Slots);
        harness.done(0, &liar.last_task(), lie);
        assert!(liar.is_killed() && harness.killed(0).unwrap().contains(why), "{:?}", harness.killed(0));
        assert_eq!((inbox.indices(), inbox.errors()), (0, vec![]));
        // The range is done again, by a worker that is there when the liar is gone.
        let honest = harness.join(1, Worker::default());
        assert_eq!(honest.tasks(), [], "memory of a range is free only after its worker has ended");
        harness.dies(0, KILLED);
        harness.finish(1, &honest.last_task());
        assert_eq!(inbox.indices(), 10);
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_not_counted_and_its_range_is_done_again() {
    let mut harness = Harness::new(options());
    let garbler = harness.join(0, Worker::default());
    let inbox = harness.submit(0..10, How::Slots);
    inbox.0.locked().garbled = true;
    harness.finish(0, &garbler.last_task());
    assert!(harness.killed(0).unwrap().contains("cannot be read"));
    inbox.0.locked().garbled = false;
    let honest = harness.join(1, Worker::default());
    harness.coordinator.dispatch();
    let task = honest.last_task();
    assert_eq!((task.start, task.end), (0, 10));
    assert_eq!(harness.coordinator.tuning.indices, 0);
}

#[test]
fn a_lane_may_end_early_and_a_range_may_not() {
    let mut harness = Harness::new(options());
    let worker = harness.join(0, Worker::default());
    let inbox = harness.submit(0..10, lane());
    harness.done(0, &worker.last_task(), Evaluated { indices: 4, last: true, used: 8, ..Evaluated::default() });
    assert_eq!((inbox.indices(), worker.is_killed()), (4, false));
    assert_eq!(worker.tasks().len(), 1, "nothing is left of it");
}

#[test]
fn a_task_or_an_extent_that_a_worker_does_not_have_ends_it() {
    let mut harness = Harness::new(options());
    let worker = harness.join(0, Worker::default());
    harness.submit(0..10, How::Slots);
    let task = worker.last_task();
    harness.finish(0, &task);
    assert!(!worker.is_killed());
    harness.finish(0, &task);
    assert!(worker.is_killed() && harness.killed(0).unwrap().contains("which it does not have"));
    let other = harness.join(1, Worker::default());
    harness.coordinator.receive(1, FromWorker::Returned(task.extent));
    assert!(other.is_killed() && harness.killed(1).unwrap().contains("which it does not keep"));
}

#[test]
fn a_lane_is_read_on_behind_a_task_that_needed_more_memory() {
    let mut harness = Harness::new(options());
    let worker = harness.join(0, Worker::default());
    harness.submit(0..10, lane());
    let first = worker.last_task();
    harness.need(0, Need { id: first.id, bytes: 3 * MIB, kept: false });
    let second = worker.last_task();
    assert_eq!(second.lane.unwrap().after, Some(first.id));
    assert_eq!(second.extent.len() as u64, 3 * MIB);
}
