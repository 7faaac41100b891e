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
        let mut desk = Desk::new(options());
        let liar = desk.join(0, Worker::default());
        let inbox = desk.submit(0..10, How::Slots);
        desk.done(0, &liar.last_task(), lie);
        assert!(liar.is_killed() && desk.killed(0).unwrap().contains(why), "{:?}", desk.killed(0));
        assert_eq!((inbox.indices(), inbox.errors()), (0, vec![]));
        // The range is done again, by a worker that is there when the liar is gone.
        let honest = desk.join(1, Worker::default());
        assert_eq!(honest.tasks(), [], "memory of a range is free only after its worker has ended");
        desk.dies(0, KILLED);
        desk.finish(1, &honest.last_task());
        assert_eq!(inbox.indices(), 10);
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_not_counted_and_its_range_is_done_again() {
    let mut desk = Desk::new(options());
    let garbler = desk.join(0, Worker::default());
    let inbox = desk.submit(0..10, How::Slots);
    inbox.0.locked().garbled = true;
    desk.finish(0, &garbler.last_task());
    assert!(desk.killed(0).unwrap().contains("cannot be read"));
    inbox.0.locked().garbled = false;
    let honest = desk.join(1, Worker::default());
    desk.coordinator.hand_out();
    let task = honest.last_task();
    assert_eq!((task.start, task.end), (0, 10));
    assert_eq!(desk.coordinator.indices, 0);
}

#[test]
fn a_lane_may_end_early_and_a_range_may_not() {
    let mut desk = Desk::new(options());
    let worker = desk.join(0, Worker::default());
    let inbox = desk.submit(0..10, lane());
    desk.done(0, &worker.last_task(), Evaluated { indices: 4, last: true, used: 8, ..Evaluated::default() });
    assert_eq!((inbox.indices(), worker.is_killed()), (4, false));
    assert_eq!(worker.tasks().len(), 1, "nothing is left of it");
}

#[test]
fn a_task_or_an_extent_that_a_worker_does_not_have_ends_it() {
    let mut desk = Desk::new(options());
    let worker = desk.join(0, Worker::default());
    desk.submit(0..10, How::Slots);
    let task = worker.last_task();
    desk.finish(0, &task);
    assert!(!worker.is_killed());
    desk.finish(0, &task);
    assert!(worker.is_killed() && desk.killed(0).unwrap().contains("which it does not have"));
    let other = desk.join(1, Worker::default());
    desk.coordinator.listen(1, FromWorker::Returned(task.extent));
    assert!(other.is_killed() && desk.killed(1).unwrap().contains("which it does not keep"));
}

#[test]
fn a_lane_is_read_on_behind_a_task_that_needed_more_memory() {
    let mut desk = Desk::new(options());
    let worker = desk.join(0, Worker::default());
    desk.submit(0..10, lane());
    let first = worker.last_task();
    desk.need(0, Need { id: first.id, bytes: 3 * MIB, kept: false });
    let second = worker.last_task();
    assert_eq!(second.lane.unwrap().after, Some(first.id));
    assert_eq!(second.extent.len() as u64, 3 * MIB);
}
