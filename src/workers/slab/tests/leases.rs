//! Grants and leases, over memory of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::element::{Buffer, Owner};
use crate::workers::slab::heap::Heap;
use crate::workers::slab::{ExtentId, ExtentMut, Lease, PAGE, Refused, Slab, SlabError, SlabStats, WorkerSlab};

type Pair = (Heap, Arc<Slab<Heap>>, Arc<WorkerSlab<Heap>>);

fn slab(pages: usize, reserve: usize) -> Pair {
    let heap = Heap::new(pages);
    (heap.clone(), Slab::over(heap.clone(), reserve * PAGE, || ()), WorkerSlab::over(heap))
}

#[test]
fn what_a_worker_writes_is_what_views_read() {
    let (_, slab, worker) = slab(8, 0);
    let grant = slab.grant(3 * PAGE - 5, 0).unwrap();
    assert_eq!((grant.len(), grant.is_reserve()), (3 * PAGE, false));
    let mut extent: ExtentMut<Heap> = worker.extent_mut(grant.extent()).unwrap();
    extent[..PAGE + 7].fill(9);
    drop(extent);
    let lease: Lease<Heap> = grant.into_lease(PAGE + 7).unwrap();
    assert_eq!(lease.bytes().as_ptr().align_offset(64), 0);
    let buffer = Buffer::from_owner(Arc::new(lease));
    // What was granted and not used is free already.
    let stats = slab.stats();
    assert_eq!((stats.leased_bytes, stats.granted_bytes, stats.longest_free_bytes), (2 * PAGE, 0, 6 * PAGE));

    let view = buffer.slice(PAGE..PAGE + 7).unwrap();
    drop(buffer);
    let elsewhere = std::thread::spawn(move || {
        assert_eq!(view.as_bytes(), [9; 7]);
        drop(view);
    });
    elsewhere.join().unwrap();
    assert_eq!((slab.stats().leases, slab.stats().free_bytes), (0, 8 * PAGE));
    assert_eq!(slab.stats().high_water_bytes, 3 * PAGE);
}

#[test]
fn pages_are_not_granted_again_while_a_view_lives() {
    let (_, slab, worker) = slab(2, 0);
    let fill = |byte: u8| {
        let grant = slab.grant(PAGE, 0).unwrap();
        worker.extent_mut(grant.extent()).unwrap().fill(byte);
        grant.into_buffer(PAGE).unwrap()
    };
    let (first, second) = (fill(1), fill(2));
    assert!(slab.grant(1, 0).is_none());
    let view = second.slice(PAGE - 1..PAGE).unwrap();
    drop((first, second));
    let third = fill(3);
    assert!(slab.grant(1, 0).is_none());
    assert_eq!((view.as_bytes(), third.as_bytes()[0]), ([2].as_slice(), 3));
    drop(view);
    assert!(slab.grant(1, 0).is_some());
}

#[test]
fn dropping_a_grant_gives_it_back() {
    let (_, slab, _) = slab(4, 0);
    let grant = slab.grant(4 * PAGE, 0).unwrap();
    assert!(slab.grant(1, 0).is_none());
    drop(grant);
    assert_eq!(slab.stats().free_bytes, 4 * PAGE);
    assert!(slab.grant(4 * PAGE + 1, 0).is_none() && slab.grant(usize::MAX, 0).is_none());
    assert_eq!(slab.grant(0, 0).unwrap().len(), PAGE);
}

#[test]
fn a_worker_that_claims_too_much_is_refused_and_keeps_its_extent() {
    let (_, slab, _) = slab(4, 0);
    let grant = slab.grant(PAGE, 0).unwrap();
    let Refused { grant, error } = grant.into_lease(PAGE + 1).unwrap_err();
    assert_eq!(error, SlabError::Overrun { used: PAGE + 1, limit: PAGE });
    let refused = grant.copy_out(usize::MAX).unwrap_err();
    assert_eq!(slab.stats().granted_bytes, PAGE);
    drop(refused);
    assert_eq!((slab.stats().granted_bytes, slab.stats().copies), (0, 0));
}

#[test]
fn the_reserve_is_copied_out_and_never_leased() {
    let (_, slab, worker) = slab(6, 2);
    let held = slab.grant(4 * PAGE, 0).unwrap().into_lease(4 * PAGE).unwrap();
    assert!(slab.grant(1, 0).is_none() && slab.grant_reserve(2 * PAGE + 1, 0).is_none());

    let grant = slab.grant_reserve(2 * PAGE, 0).unwrap();
    assert!(grant.is_reserve());
    worker.extent_mut(grant.extent()).unwrap().fill(5);
    let Refused { grant, error } = grant.into_lease(1).unwrap_err();
    assert_eq!(error, SlabError::Reserve(grant.extent()));
    let copy = grant.into_buffer(PAGE + 3).unwrap();
    // Free at once, and the copy is its own.
    worker.extent_mut(slab.grant_reserve(PAGE, 0).unwrap().extent()).unwrap().fill(6);
    assert!(copy.len() == PAGE + 3 && copy.as_bytes().iter().all(|&b| b == 5));
    let SlabStats { copies, copied_bytes, granted_bytes, .. } = slab.stats();
    assert_eq!((copies, copied_bytes, granted_bytes), (1, PAGE as u64 + 3, 0));
    drop(held);

    let copy = slab.grant(PAGE, 0).unwrap().copy_out(10).unwrap();
    assert_eq!((copy.len(), slab.stats().copies, slab.stats().free_bytes), (10, 2, 4 * PAGE));
}

#[test]
fn views_outlive_the_slab() {
    let (_, slab, worker) = slab(2, 0);
    let grant = slab.grant(PAGE, 0).unwrap();
    worker.extent_mut(grant.extent()).unwrap().fill(7);
    let buffer = grant.into_buffer(100).unwrap();
    drop((slab, worker));
    assert_eq!(buffer.as_bytes(), [7; 100]);
}

#[test]
fn whoever_was_refused_is_woken_once() {
    let woken = Arc::new(AtomicUsize::new(0));
    let count = woken.clone();
    let wake = move || {
        count.fetch_add(1, Ordering::Relaxed);
    };
    let slab = Slab::over(Heap::new(3), PAGE, wake);
    let woken = || woken.load(Ordering::Relaxed);
    let (a, b) = (slab.grant(PAGE, 0).unwrap(), slab.grant(PAGE, 0).unwrap());
    drop(a);
    assert_eq!(woken(), 0, "nobody waits");

    assert!(slab.grant(2 * PAGE, 0).is_none());
    drop(b.into_lease(PAGE).unwrap());
    assert_eq!(woken(), 1);
    drop(slab.grant(2 * PAGE, 0).unwrap());
    assert_eq!(woken(), 1);

    // The unused part of a grant, a raised limit and the reserve are room too.
    let whole = slab.grant(2 * PAGE, 0).unwrap();
    assert!(slab.grant(1, 0).is_none());
    let lease = whole.into_lease(1).unwrap();
    assert_eq!(woken(), 2);
    slab.set_limit(0).unwrap();
    assert!(slab.grant(1, 0).is_none());
    slab.set_limit(2 * PAGE).unwrap();
    assert_eq!(woken(), 3);
    let reserve = slab.grant_reserve(1, 0).unwrap();
    assert!(slab.grant_reserve(1, 0).is_none());
    drop(reserve);
    assert_eq!(woken(), 4);
    drop(lease);
}

#[test]
fn memory_beyond_the_limit_goes_back_to_the_system() {
    let (heap, slab, worker) = slab(10, 1);
    let low = slab.grant(2 * PAGE, 0).unwrap();
    let high = slab.grant(4 * PAGE, 0).unwrap();
    worker.extent_mut(high.extent()).unwrap().fill(8);
    let high = high.into_buffer(3 * PAGE).unwrap();

    slab.set_limit(3 * PAGE + 1).unwrap();
    // Pages 2, 3 and 4 are leased; 5 to 8 were free.
    assert_eq!(heap.punched_pages(), 4);
    let stats = slab.stats();
    assert_eq!((stats.limit_bytes, stats.bound_bytes, stats.free_bytes), (3 * PAGE, 6 * PAGE, 0));
    assert!(high.as_bytes().iter().all(|&b| b == 8));
    drop(high);
    assert_eq!(heap.punched_pages(), 7, "an extent across the limit is emptied as a whole");
    assert_eq!((slab.stats().bound_bytes, slab.stats().free_bytes), (4 * PAGE, PAGE));

    slab.set_limit(usize::MAX).unwrap();
    assert_eq!((slab.stats().bound_bytes, slab.stats().free_bytes), (10 * PAGE, 7 * PAGE));
    // The unused tail of a grant beyond the limit is emptied when the lease begins.
    let tail = slab.grant(7 * PAGE, 0).unwrap();
    slab.set_limit(2 * PAGE).unwrap();
    let lease = tail.into_lease(PAGE).unwrap();
    assert_eq!((heap.punched_pages(), slab.stats().bound_bytes), (13, 4 * PAGE));
    drop((lease, low));
    assert_eq!((heap.punched_pages(), slab.stats().bound_bytes, slab.stats().free_bytes), (14, 3 * PAGE, 2 * PAGE));
}

#[test]
fn a_limit_stays_where_the_system_takes_nothing_back() {
    let (heap, slab, _) = slab(8, 0);
    let held = slab.grant(3 * PAGE, 0).unwrap();
    heap.refuse(true);
    assert!(slab.set_limit(PAGE).is_err());
    let stats = slab.stats();
    assert_eq!((stats.limit_bytes, stats.bound_bytes, stats.longest_free_bytes), (8 * PAGE, 8 * PAGE, 5 * PAGE));
    // What cannot be emptied later is counted for ever, and granted never.
    heap.refuse(false);
    slab.set_limit(PAGE).unwrap();
    heap.refuse(true);
    drop(held);
    slab.set_limit(8 * PAGE).unwrap();
    assert_eq!((slab.stats().bound_bytes, slab.stats().free_bytes), (8 * PAGE, 5 * PAGE));
}

#[test]
fn a_worker_writes_inside_the_slab_and_each_page_once_at_a_time() {
    let (_, _, worker) = slab(4, 0);
    let id = |page, pages| ExtentId { page, pages, generation: 1 };
    for outside in [id(4, 1), id(3, 2), id(0, 5), id(u32::MAX, u32::MAX), id(1, u32::MAX)] {
        assert_eq!(worker.extent_mut(outside).unwrap_err(), SlabError::Outside { extent: outside, pages: 4 });
    }
    let held = worker.extent_mut(id(1, 2)).unwrap();
    assert!(held.iter().all(|&b| b == 0) && held.len() == 2 * PAGE);
    for (page, pages) in [(0, 2), (1, 2), (2, 1), (2, 2), (0, 4)] {
        let error = worker.extent_mut(id(page, pages)).unwrap_err();
        assert_eq!(error, SlabError::Overlap { extent: id(page, pages), held: id(1, 2) });
    }
    let beside = [worker.extent_mut(id(0, 1)).unwrap(), worker.extent_mut(id(3, 1)).unwrap()];
    drop(held);
    assert!(worker.extent_mut(id(0, 2)).is_err() && worker.extent_mut(id(1, 2)).is_ok());
    drop(beside);
    assert!(worker.extent_mut(id(0, 4)).is_ok());
}
