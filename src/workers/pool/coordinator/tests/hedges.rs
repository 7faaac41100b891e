//! Late tasks that another machine does too.

use super::*;

/// Workers of two machines, of which late tasks are asked of the other; 20 tasks took a millisecond each.
fn hedged() -> (Harness, [Worker; 2]) {
    let mut harness = Harness::new(MpOptions { hedge: Some(3.0), ..options() });
    let on = |node: &str| Worker { node: node.to_owned(), ..Worker::default() };
    let workers = [harness.join(0, on("a")), harness.join(1, on("b"))];
    (0..20).for_each(|_| harness.coordinator.queue.answer_times.note(Duration::from_millis(1)));
    (harness, workers)
}

/// Has every task look as if it had been sent a minute ago.
fn age(harness: &mut Harness) {
    let tasks = harness.coordinator.workers.all.values_mut().flat_map(|worker| worker.tasks.values_mut());
    tasks.for_each(|task| task.since -= Duration::from_secs(60));
}

#[test]
fn of_two_answers_to_a_late_task_the_first_counts() {
    for late_one_is_first in [true, false] {
        let (mut harness, [one, two]) = hedged();
        let inbox = harness.submit(0..10, How::Slots);
        assert_eq!((one.tasks().len(), two.tasks().len()), (1, 0));
        harness.coordinator.hedge();
        harness.coordinator.dispatch();
        assert_eq!(two.tasks().len(), 0, "it is not late yet");
        age(&mut harness);
        harness.coordinator.hedge();
        harness.coordinator.dispatch();
        assert_eq!(two.tasks().len(), 1);
        let (tasks, order) = ([one.last_task(), two.last_task()], if late_one_is_first { [0, 1] } else { [1, 0] });
        for at in order {
            harness.finish(at as u64, &tasks[at]);
            assert_eq!(inbox.indices(), 10);
        }
        assert!(!one.is_killed() && !two.is_killed());
        assert_eq!(harness.noted("ranges asked of another worker"), 1);
    }
}

#[test]
fn of_one_machine_another_worker_is_asked() {
    let mut harness = Harness::new(MpOptions { hedge: Some(3.0), ..options() });
    let on = |node: &str| Worker { node: node.to_owned(), ..Worker::default() };
    let [one, two] = [harness.join(0, on("a")), harness.join(1, on("a"))];
    (0..20).for_each(|_| harness.coordinator.queue.answer_times.note(Duration::from_millis(1)));
    let inbox = harness.submit(0..10, How::Slots);
    age(&mut harness);
    harness.coordinator.hedge();
    harness.coordinator.dispatch();
    assert_eq!((one.tasks().len(), two.tasks().len()), (1, 1));
    harness.finish(1, &two.last_task());
    assert_eq!(inbox.indices(), 10);
    assert_eq!(harness.noted("ranges asked of another worker"), 1);
    // A worker by itself is asked once.
    let mut harness = Harness::new(MpOptions { hedge: Some(3.0), ..options() });
    let one = harness.join(0, on("a"));
    (0..20).for_each(|_| harness.coordinator.queue.answer_times.note(Duration::from_millis(1)));
    harness.submit(0..10, How::Slots);
    age(&mut harness);
    harness.coordinator.hedge();
    harness.coordinator.dispatch();
    assert_eq!((one.tasks().len(), harness.noted("ranges asked of another worker")), (1, 0));
}

#[test]
fn an_answer_that_was_set_aside_is_of_no_other_part_of_its_range() {
    let (mut harness, [one, two]) = hedged();
    let inbox = harness.submit(0..10, How::Slots);
    age(&mut harness);
    harness.coordinator.hedge();
    harness.coordinator.dispatch();
    // The other machine does four of them, so that the range is further on.
    harness.done(1, &two.last_task(), Evaluated { indices: 4, used: 8, ..Evaluated::default() });
    assert_eq!(inbox.indices(), 4);
    let late = one.tasks().swap_remove(0);
    harness.finish(0, &late);
    assert_eq!(inbox.indices(), 4, "the first four would be delivered twice");
    let rest = [one, two].iter().flat_map(Worker::tasks).map(|task| (task.start, task.end)).collect::<Vec<_>>();
    assert!(rest.contains(&(4, 10)), "{rest:?}");
}

#[test]
fn a_range_that_may_kill_its_worker_is_asked_of_no_other_machine() {
    let (mut harness, [_, two]) = hedged();
    harness.submit(0..10, How::Slots);
    let running = harness.coordinator.workers.all.get_mut(&0).unwrap().tasks.values_mut().next().unwrap();
    running.job.crashes.deaths = 1;
    age(&mut harness);
    harness.coordinator.hedge();
    harness.coordinator.dispatch();
    assert_eq!((two.tasks().len(), harness.noted("ranges asked of another worker")), (0, 0));
}

#[test]
fn a_lane_is_asked_of_no_other_machine() {
    let (mut harness, [_, two]) = hedged();
    harness.submit(0..10, lane());
    age(&mut harness);
    harness.coordinator.hedge();
    harness.coordinator.dispatch();
    assert_eq!(two.tasks().len(), 0);
}

#[test]
fn a_worker_that_hangs_is_given_no_more_tasks_than_it_has_threads() {
    let (mut harness, [one, two]) = hedged();
    harness.coordinator.workers.all.get_mut(&1).unwrap().leaving = true;
    for at in 0..9 {
        harness.submit(10 * at..10 * at + 10, How::Slots);
    }
    // One for each thread, and one that waits.
    assert_eq!(one.tasks().len(), 3);
    harness.coordinator.workers.all.get_mut(&1).unwrap().leaving = false;
    age(&mut harness);
    harness.coordinator.hedge();
    harness.coordinator.dispatch();
    assert_eq!((one.tasks().len(), two.tasks().len()), (3, 3), "tasks that were set aside still occupy its threads");
}
