//! Workers side by side, each with a memory file of its own.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::element::Owner;
use crate::workers::slab::{PAGE, Slab, Spoilt, WorkerSlab};

fn worker(slab: &Slab, place: usize) -> Arc<WorkerSlab> {
    let file: OwnedFd = slab.file(place).unwrap().try_clone_to_owned().unwrap();
    WorkerSlab::map(file).unwrap()
}

/// Pages that a worker's memory file takes up.
fn committed(slab: &Slab, place: usize) -> usize {
    rustix::fs::fstat(slab.file(place).unwrap()).unwrap().st_blocks as usize * 512 / PAGE
}

#[test]
fn what_one_worker_writes_is_out_of_reach_of_another() {
    let slab = Slab::create(4 * PAGE, 0, 2, || ()).unwrap();
    let (first, second) = (worker(&slab, 0), worker(&slab, 1));
    let grant = slab.grant(PAGE, 0).unwrap();
    let extent = grant.extent();
    first.extent_mut(extent).unwrap().fill(1);
    let lease = grant.into_lease(PAGE).unwrap();
    // It was never granted to the second, which writes there all the same.
    second.extent_mut(extent).unwrap().fill(2);
    assert!(lease.bytes().iter().all(|&b| b == 1));
}

#[test]
fn a_page_has_memory_in_one_file_at_most() {
    let slab = Slab::create(4 * PAGE, 0, 3, || ()).unwrap();
    let workers = [0, 1, 2].map(|place| worker(&slab, place));
    for round in 0..9 {
        let place = round % 3;
        let grant = slab.grant(4 * PAGE, place).unwrap();
        let mut extent = workers[place].extent_mut(grant.extent()).unwrap();
        assert_eq!([0, 1, 2].map(|place| committed(&slab, place)), [0; 3], "what was there went back");
        extent.fill(round as u8 + 1);
        drop(extent);
        let lease = grant.into_lease(4 * PAGE).unwrap();
        assert!(lease.bytes().iter().all(|&b| b == round as u8 + 1));
        assert_eq!(committed(&slab, place), 4);
    }
}

#[test]
fn a_worker_gets_the_memory_again_that_it_had() {
    let slab = Slab::create(64 * PAGE, 0, 2, || ()).unwrap();
    // Each has all of its own back before the other asks.
    let pages = |place, many: usize| {
        let grants: Vec<_> = (0..many).map(|_| slab.grant(4 * PAGE, place).unwrap()).collect();
        grants.iter().map(|grant| grant.extent().page).collect::<std::collections::BTreeSet<_>>()
    };
    let (first, second) = (pages(0, 3), pages(1, 3));
    assert!(first.is_disjoint(&second), "there is memory that nobody has");
    for _ in 0..20 {
        assert_eq!((pages(0, 3), pages(1, 3)), (first.clone(), second.clone()));
    }
    // 16 such extents are all there is.
    assert_eq!(pages(0, 16).len(), 16);
}

#[test]
fn a_worker_that_writes_to_what_it_handed_over_is_found() {
    let woken = Arc::new(AtomicUsize::new(0));
    let count = woken.clone();
    let wake = move || {
        count.fetch_add(1, Ordering::Relaxed);
    };
    let slab = Slab::create(8 * PAGE, 0, 2, wake).unwrap();
    let worker = worker(&slab, 1);
    let lease = |byte| {
        let grant = slab.grant(2 * PAGE, 1).unwrap();
        worker.extent_mut(grant.extent()).unwrap().fill(byte);
        (grant.extent(), grant.into_lease(2 * PAGE).unwrap())
    };
    let ((extent, held), (other, returned)) = (lease(1), lease(2));
    slab.look_at_leases();
    assert_eq!(slab.take_spoilt(), None);

    worker.extent_mut(extent).unwrap()[8] = 9;
    slab.look_at_leases();
    assert_eq!((slab.take_spoilt(), slab.take_spoilt()), (Some(Spoilt { place: 1, extent }), None));

    worker.extent_mut(other).unwrap().fill(0);
    drop(returned);
    assert_eq!(slab.take_spoilt(), Some(Spoilt { place: 1, extent: other }));
    assert_eq!(woken.load(Ordering::Relaxed), 1, "whoever is to know is woken");
    drop(held);
}
