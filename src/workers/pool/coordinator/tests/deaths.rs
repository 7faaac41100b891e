//! Deaths of workers, and the elements that are blamed for them.

use super::*;

#[test]
fn a_worker_that_was_killed_here_did_it_by_its_own_doing() {
    // Deaths from outside end a run only after a minute; of the own doing, ten for each worker do.
    let ends = |death: Death, kill: bool| {
        let mut harness = Harness::new(options().workers(1).ram_budget(86 * MIB));
        (0..12).find(|&number| {
            harness.join(number, Worker::default());
            if kill {
                harness.coordinator.workers.kill(number, "it lies".to_owned());
            }
            harness.dies(number, death);
            harness.coordinator.failure.is_some()
        })
    };
    assert_eq!(ends(OWN, false), Some(10));
    assert_eq!(ends(KILLED, false), None);
    assert_eq!(ends(KILLED, true), Some(10));
}

#[test]
fn only_a_worker_that_was_not_sent_home_counts_as_replaced() {
    let mut harness = Harness::new(options());
    for number in 0..3 {
        harness.join(number, Worker::default());
    }
    harness.coordinator.workers.resize(2);
    harness.coordinator.workers.stop_leaving();
    let home = harness.coordinator.workers.all.iter().find(|(_, worker)| worker.stop_sent).map(|(&number, _)| number);
    assert_eq!(home, Some(2));
    harness.dies(2, OWN);
    assert_eq!((harness.coordinator.workers.replaced, harness.noted("workers replaced")), (0, 0));
    harness.dies(1, OWN);
    assert_eq!((harness.coordinator.workers.replaced, harness.noted("workers replaced: died")), (1, 1));
}

#[test]
fn an_element_is_blamed_after_three_workers_that_were_alone_with_it() {
    for poison in [Poison::Error, Poison::Skip] {
        let mut harness = Harness::new(options().on_poison(poison));
        let inbox = harness.submit(4..6, How::Slots);
        let mut deaths = 0;
        // The second element alone is done.
        for number in 0..20 {
            let worker = harness.join(number, Worker::default());
            harness.coordinator.dispatch();
            let Some(task) = worker.tasks().pop() else { break };
            match task.start {
                4 => {
                    deaths += 1;
                    harness.dies(number, OWN);
                }
                _ => {
                    assert_eq!(poison, Poison::Skip);
                    harness.finish(number, &task);
                    break;
                }
            }
        }
        // Three over both, and one more over the first of them.
        assert_eq!(deaths, 4);
        let outcome = inbox.0.locked();
        match poison {
            Poison::Error => {
                let [error] = &outcome.errors[..] else { panic!("{:?}", outcome.errors) };
                assert!(error.starts_with("element 4: 3 workers died over this element"), "{error}");
            }
            Poison::Skip => assert_eq!((outcome.skipped, outcome.indices, outcome.errors.len()), (1, 1, 0)),
        }
    }
}

#[test]
fn a_death_over_tasks_of_others_is_blamed_on_no_element() {
    for of_anybody in [false, true] {
        let mut harness = Harness::new(options());
        let inbox = harness.submit(4..5, How::Slots);
        for number in 0..9 {
            let worker = harness.join(number, Worker::default());
            harness.coordinator.dispatch();
            // A task that may have ended a worker has the next worker for itself.
            assert_eq!(worker.last_task().alone, of_anybody && number > 0);
            harness.dies(number, Death { outside: false, of_others: !of_anybody, of_anybody });
        }
        assert_eq!(inbox.errors(), [""; 0]);
        let worker = harness.join(9, Worker::default());
        harness.coordinator.dispatch();
        assert_eq!(worker.last_task().alone, of_anybody);
        harness.dies(9, OWN);
        assert_eq!(inbox.errors().len(), usize::from(of_anybody));
    }
}

#[test]
fn a_suspect_range_has_a_worker_for_itself() {
    let mut harness = Harness::new(options());
    let first = harness.join(0, Worker::default());
    harness.submit(0..4, How::Slots);
    harness.submit(4..8, How::Slots);
    assert_eq!(first.tasks().len(), 2);
    harness.dies(0, OWN);
    let second = harness.join(1, Worker::default());
    harness.coordinator.dispatch();
    let starts = |worker: &Worker| worker.tasks().iter().map(|task| (task.start, task.alone)).collect::<Vec<_>>();
    assert_eq!(starts(&second), [(0, true)]);
    harness.finish(1, &second.last_task());
    assert_eq!(starts(&second), [(0, true), (4, true)]);
}

#[test]
fn only_an_overdue_task_is_blamed_for_a_worker_that_hung() {
    let mut harness = Harness::new(options().deadline(Duration::from_secs(60)));
    let worker = harness.join(0, Worker::default());
    harness.submit(0..4, How::Slots);
    harness.submit(4..8, How::Slots);
    harness.coordinator.workers.check_deadlines(Duration::from_secs(60));
    assert!(!worker.is_killed());
    let late = worker.tasks()[0].id;
    harness.coordinator.workers.all.get_mut(&0).unwrap().tasks.get_mut(&late).unwrap().since -= Duration::from_secs(61);
    harness.coordinator.workers.check_deadlines(Duration::from_secs(60));
    assert!(worker.is_killed() && harness.killed(0).unwrap().contains("deadline of 60s"));
    harness.dies(0, KILLED);
    let mut deaths = BTreeMap::new();
    while let Some(job) = harness.coordinator.queue.pop() {
        deaths.insert(job.left.start, job.crashes.deaths);
    }
    assert_eq!(deaths, BTreeMap::from([(0, 1), (4, 0)]));
}

#[test]
fn a_pipeline_that_cannot_be_made_ends_the_run_and_a_worker_that_panics_does_not() {
    let failure = || crate::error::Told::in_words(&Error::config("no such file"));
    let mut harness = Harness::new(options());
    harness.join(0, Worker::default());
    let inbox = harness.submit(0..10, How::Slots);
    harness.coordinator.receive(0, FromWorker::Failed(failure()));
    assert!(harness.coordinator.failure.is_none() && harness.killed(0).unwrap().contains("no such file"));
    harness.coordinator.workers.all.get_mut(&0).unwrap().ready = false;
    harness.coordinator.receive(0, FromWorker::Failed(failure()));
    assert!(harness.coordinator.failure.is_some());
    assert_eq!(inbox.errors().len(), 1);
    assert_eq!(harness.submit(0..10, How::Slots).errors().len(), 1, "nobody waits for a run that is over");
}

#[test]
fn an_element_is_not_blamed_for_a_worker_that_had_others() {
    let mut harness = Harness::new(options().retries(1));
    harness.join(0, Worker::default());
    let [good, bad] = [0, 1].map(|index| harness.submit(index..index + 1, How::Slots));
    harness.dies(0, OWN);
    assert_eq!((good.errors().len(), bad.errors().len()), (0, 0));
    let second = harness.join(1, Worker::default());
    harness.coordinator.dispatch();
    harness.finish(1, &second.last_task());
    harness.dies(1, OWN);
    assert_eq!((good.indices(), bad.errors().len()), (1, 1));
}
