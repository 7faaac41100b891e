//! Budgets and their division.

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn the_parts_never_exceed_the_budget() {
    for workers in [0, 1, 2, 5] {
        for budget in [700, 1000, 2048, 100_000].map(|mib| mib * MIB) {
            let plan = Plan::new(&MpOptions::auto().workers(workers).ram_budget(budget), 8, 0).unwrap();
            assert!(
                plan.slab_bytes + workers as u64 * (plan.heap_bytes + plan.needs.beside_heap_bytes) <= budget,
                "{plan:?}"
            );
            assert!(plan.threads_per_worker >= 1 && plan.max_element_bytes <= plan.slab_bytes / 2);
        }
    }
}

#[test]
fn workers_that_come_later_share_what_the_first_had() {
    for budget in [700, 1000, 2048, 100_000].map(|mib| mib * MIB) {
        let options = MpOptions::auto().max_workers(6).ram_budget(budget);
        let plan = Plan::new(&options, 4, 0).unwrap();
        // The number of threads that fit into half of a heap.
        let most = ((plan.solo_heap_bytes / 2 / THREAD) as usize).min(MANY_THREADS);
        assert_eq!(
            (plan.start_workers, plan.active_threads, plan.threads_per_worker, plan.threads_in_all),
            (1, 4, most, most)
        );
        assert!(plan.solo_heap_bytes >= budget / 2 && plan.slab_bytes + plan.pool_bytes <= budget, "{plan:?}");
        for n in 1..=plan.workers {
            assert!(
                n as u64 * (plan.share(n) + plan.needs.beside_heap_bytes) <= plan.pool_bytes
                    && plan.share(n) >= plan.needs.least_heap_bytes,
                "{plan:?}"
            );
        }
        assert_eq!(plan.workers_with(0), plan.workers);
        assert_eq!(plan.workers_with(plan.solo_heap_bytes), 1);
        assert_eq!(plan.workers_with(plan.share(2)), 2);
        assert_eq!(Plan::new(&options.clone().workers(2), 4, 0).unwrap().start_workers, 2);
        let given = Plan::new(&options.worker_heap(100 * MIB), 4, 0).unwrap();
        assert_eq!((given.share(1), given.solo_heap_bytes), (100 * MIB, 100 * MIB));
        assert!(given.workers <= 6 && given.slab_bytes + given.pool_bytes <= budget);
    }
}

#[test]
fn workers_keep_half_of_the_slab_at_most_and_each_thread_has_two_extents() {
    for (workers, slab) in [(1, 2), (1, 40), (3, 20), (5, 4000)] {
        let options = MpOptions::auto().workers(workers).worker_heap(64 * MIB);
        let plan = Plan::new(&options.ram_budget((66 * workers as u64 + slab) * MIB), 2, 0).unwrap();
        // Memory for the largest element is reserved for the next element in order.
        let shared = plan.slab_bytes - plan.max_element_bytes;
        let kept = plan.keep() * workers as u64;
        assert!(kept <= shared / 2 && kept + workers as u64 > shared / 2, "{plan:?}");
        for threads in [1, 16, 17, 64] {
            let part = plan.part_bytes(threads) as u64;
            // Two for each thread, and two for elements that are assembled in this process.
            let extents = 2 * (threads.max(FAR_THREADS) as u64 + 1);
            assert!(part <= PART && extents * part <= shared, "{part} bytes for each of {threads} threads");
            assert!(part == PART || extents * (part + 1) > shared, "{part} bytes for each of {threads} threads");
        }
    }
}

#[test]
fn an_element_takes_half_of_the_slab_at_most() {
    let options = || MpOptions::auto().workers(2).worker_heap(64 * MIB).ram_budget((132 + 40) * MIB);
    let largest = |bytes: u64| Plan::new(&options().max_element(bytes), 2, 0).map(|plan| plan.max_element_bytes);
    assert_eq!(Plan::new(&options(), 2, 0).unwrap().max_element_bytes, 10 * MIB);
    assert_eq!(largest(20 * MIB).unwrap(), 20 * MIB);
    let error = largest(20 * MIB + 1).unwrap_err();
    assert!(error.message().ends_with("and half of the shared memory of 40 MiB is 20 MiB"), "{error}");
}

#[test]
fn threads_are_as_many_as_were_asked_for_or_as_tuning_may_find_to_pay() {
    let plan = |options: MpOptions| Plan::new(&options.ram_budget(4096 * MIB), 4, 0).unwrap();
    let threads = |options| {
        Some(plan(options)).map(|plan| (plan.active_threads, plan.threads_per_worker, plan.threads_in_all)).unwrap()
    };
    assert_eq!(threads(MpOptions::auto()), (4, 256, 256));
    assert_eq!(threads(MpOptions::auto().workers(3)), (2, 86, 256));
    assert_eq!(threads(MpOptions::auto().start_threads(9)), (9, 256, 256));
    assert_eq!(threads(MpOptions::auto().worker_heap(64 * MIB)), (4, 16, 16), "no more than its heap has room for");
    let mut some = MpOptions::auto().max_workers(9).start_threads(1);
    some.numbers.start_workers = Some(3);
    let plan_of_some = plan(some.clone());
    assert_eq!((plan_of_some.start_workers, plan_of_some.workers, plan_of_some.has_choice()), (3, 9, true));
    assert_eq!(threads(some), (1, 256, 256));
    assert_eq!(threads(MpOptions::auto().tune(false)), (4, 4, 4));
    assert_eq!(threads(MpOptions::auto().threads_per_worker(3).workers(2)), (3, 3, 6));
    assert_eq!(plan(MpOptions::auto().workers(0)).threads_per_worker, 4);
    let far = |options| threads(MpOptions { far: true, ..options });
    assert_eq!(far(MpOptions::auto().workers(2)), (8, 128, 256));
    assert_eq!(far(MpOptions::auto().workers(2).tune(false)), (8, 8, 16));
    assert_eq!(far(MpOptions::auto().threads_per_worker(3)), (3, 3, 3));
    assert_eq!(far(MpOptions::auto().workers(0)), threads(MpOptions::auto().workers(0)));
    let (few, many) = (plan(MpOptions::auto().tune(false)), plan(MpOptions::auto()));
    assert_eq!(few.most_group(), many.most_group(), "batches are stacked where they were");
}

#[test]
fn a_configuration_that_no_worker_could_hold_is_refused_with_what_is_large() {
    let plan = |mib: u64| Plan::new(&MpOptions::auto().workers(2).ram_budget(mib * MIB), 2, 0).unwrap();
    assert!(plan(1024).check_cfg(120 * MIB, None).is_ok());
    let error = plan(1024).check_cfg(121 * MIB, Some("map: f carries 121 MiB")).unwrap_err();
    assert_eq!(
        error.message(),
        "map: f carries 121 MiB to each worker; with a copy of it and 16 MiB for other data, a worker needs \
         258 MiB of heap, but has 256 MiB"
    );
    assert!(error.help_text().unwrap().contains("ram_budget from 1 GiB to 1.02 GiB or more"), "{error}");
    let error = plan(1024).check_cfg(u64::MAX, None).unwrap_err();
    assert!(error.message().starts_with("the pipeline's configuration has"), "{error}");
    // The budget named in the help is sufficient.
    for bytes in [200, 700, 5000] {
        let needed = 4 * (2 * bytes + 16 + 2);
        assert!(plan(needed).check_cfg(bytes * MIB, None).is_ok(), "{bytes}");
    }
}

#[test]
fn too_small_a_budget_says_what_is_needed() {
    let error = Plan::new(&MpOptions::auto().workers(2).ram_budget(100 * MIB), 2, 0).unwrap_err();
    assert_eq!(
        error.message(),
        "ram_budget is 100 MiB; 2 x (64 MiB of heap + 2 MiB beside it) + 1 MiB of shared memory need 133 MiB"
    );
    assert_eq!(
        error.help_text(),
        Some("raise `ram_budget` to 133 MiB or more, use fewer workers, or set `worker_heap` to 47.5 MiB or less")
    );
    let help = |workers, mib, python| {
        let options = MpOptions { interpreted: python, ..MpOptions::auto().workers(workers).ram_budget(mib * MIB) };
        let error = Plan::new(&options, 2, 0).unwrap_err();
        error.help_text().unwrap().to_owned()
    };
    assert_eq!(help(1, 1, false), "raise `ram_budget` to 67 MiB or more");
    let one = "raise `ram_budget` to 267 MiB or more, or set `worker_heap` to 181 MiB or less";
    assert_eq!(help(1, 256, true), one);
    assert_eq!(help(4, 300, true), "raise `ram_budget` to 873 MiB or more, or use fewer workers");
    let options = MpOptions::auto().ram_budget(200 * MIB).max_element(150 * MIB);
    assert!(Plan::new(&options, 2, 0).unwrap_err().message().starts_with("max_element is 150 MiB, and half"));
}

#[test]
fn the_machine_is_asked() {
    assert!(available() > 16 * MIB && total().unwrap() >= available());
}
