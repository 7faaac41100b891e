//! Interleavings of grants, leases, returns and limit changes on a few pages: `cargo test -p loom-model loom`, in a
//! package of these files alone.
//!
//! Each page has a cell that loom watches. A worker writes to the cell while it has the grant, and views read it while
//! they have the lease. Giving the page's memory back writes to it too. Loom fails if two of these accesses overlap or
//! are unordered, or if all threads wait.
#![expect(unsafe_code, reason = "a stand-in for shared memory")]

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::extents::PAGE;
use super::heap::Heap;
use super::lease::{Grant, Lease};
use super::memory::Memory;
use super::parent::Slab;
use super::stats::SlabStats;
use crate::element::Owner;
use crate::error::Result;

/// Memory with a watched cell per page.
#[derive(Debug)]
struct Watched {
    heap: Heap,
    cells: Vec<UnsafeCell<u64>>,
}

impl Watched {
    fn new(pages: usize) -> Self {
        Self { heap: Heap::new(pages), cells: (0..pages).map(|_| UnsafeCell::new(0)).collect() }
    }

    fn cells(&self, bytes: Range<usize>) -> &[UnsafeCell<u64>] {
        &self.cells[bytes.start / PAGE..bytes.end.div_ceil(PAGE)]
    }
}

// SAFETY: loom checks every access to the cells, whatever thread it is on.
unsafe impl Send for Watched {}
// SAFETY: as above.
unsafe impl Sync for Watched {}

// SAFETY: the memory is that of the heap.
unsafe impl Memory for Watched {
    fn at(&self, byte: usize) -> NonNull<u8> {
        self.heap.at(byte)
    }

    fn len(&self) -> usize {
        self.heap.len()
    }

    fn punch(&self, bytes: Range<usize>) -> Result<()> {
        self.cells(bytes).iter().for_each(|cell| cell.with_mut(|_| ()));
        Ok(())
    }
}

/// Performs the worker's write, between its task and its report.
fn write(slab: &Slab<Watched>, grant: &Grant<Watched>) {
    slab.memory.cells(grant.extent().bytes()).iter().for_each(|cell| cell.with_mut(|_| ()));
}

fn read(slab: &Slab<Watched>, lease: &Lease<Watched>) {
    let start = lease.bytes().as_ptr() as usize - slab.memory.at(0).as_ptr() as usize;
    slab.memory.cells(start..start + lease.bytes().len()).iter().for_each(|cell| cell.with(|_| ()));
}

fn lease(slab: &Slab<Watched>, grant: Grant<Watched>, pages: usize) -> Lease<Watched> {
    write(slab, &grant);
    grant.into_lease(pages * PAGE).unwrap()
}

/// A slab, and the signal on which refused callers wait for memory.
struct Waiting {
    slab: Arc<Slab<Watched>>,
    woken: Arc<(Mutex<bool>, Condvar)>,
}

impl Waiting {
    fn new(pages: usize, reserve: usize) -> Self {
        let woken = Arc::new((Mutex::new(false), Condvar::new()));
        let waker = woken.clone();
        let wake = move || {
            *waker.0.lock().unwrap() = true;
            waker.1.notify_one();
        };
        Self { slab: Slab::over(Watched::new(pages), reserve * PAGE, wake), woken }
    }

    /// Waits until the grant succeeds. Waits forever if a wake-up is lost.
    fn grant(&self, pages: usize) -> Grant<Watched> {
        loop {
            if let Some(grant) = self.slab.grant(pages * PAGE, 0) {
                return grant;
            }
            let mut woken = self.woken.0.lock().unwrap();
            while !*woken {
                woken = self.woken.1.wait(woken).unwrap();
            }
            *woken = false;
        }
    }

    fn assert_all_free(&self) {
        let SlabStats { granted_bytes, leased_bytes, leases, free_bytes, limit_bytes, longest_free_bytes, .. } =
            self.slab.stats();
        assert_eq!((granted_bytes, leased_bytes, leases), (0, 0, 0));
        assert_eq!((free_bytes, longest_free_bytes), (limit_bytes, limit_bytes));
    }
}

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    // LOOM_MAX_PREEMPTIONS raises the bound: 5 takes ten times as long.
    builder.preemption_bound.get_or_insert(3);
    builder.check(f);
}

#[test]
fn a_page_is_in_one_pair_of_hands() {
    model(|| {
        let waiting = Waiting::new(2, 0);
        let part = |slab: Arc<Slab<Watched>>| {
            move || {
                if let Some(grant) = slab.grant(PAGE, 0) {
                    let lease = lease(&slab, grant, 1);
                    read(&slab, &lease);
                }
            }
        };
        let others = [0, 1].map(|_| thread::spawn(part(waiting.slab.clone())));
        // Fits only when both threads have returned their pages.
        if let Some(grant) = waiting.slab.grant(2 * PAGE, 0) {
            write(&waiting.slab, &grant);
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        waiting.assert_all_free();
    });
}

#[test]
fn the_last_of_the_views_returns_the_extent() {
    model(|| {
        let waiting = Waiting::new(1, 0);
        let lease = lease(&waiting.slab, waiting.grant(1), 1);
        // Loom's reference counter replaces the standard counter, whose ordering loom cannot see.
        let view = loom::sync::Arc::new(lease);
        let other = {
            let (slab, view) = (waiting.slab.clone(), view.clone());
            thread::spawn(move || read(&slab, &view))
        };
        read(&waiting.slab, &view);
        drop(view);
        write(&waiting.slab, &waiting.grant(1));
        other.join().unwrap();
        waiting.assert_all_free();
    });
}

#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let waiting = Waiting::new(3, 0);
        let first = lease(&waiting.slab, waiting.grant(2), 2);
        let second = waiting.grant(1);
        let one = {
            let slab = waiting.slab.clone();
            thread::spawn(move || {
                read(&slab, &first);
                drop(first);
            })
        };
        let two = {
            let slab = waiting.slab.clone();
            thread::spawn(move || drop(lease(&slab, second, 1)))
        };
        // All three pages: refused until the last page is back, regardless of earlier wake-ups.
        write(&waiting.slab, &waiting.grant(3));
        one.join().unwrap();
        two.join().unwrap();
        waiting.assert_all_free();
    });
}

#[test]
fn the_unused_part_of_a_grant_wakes_too() {
    model(|| {
        let waiting = Waiting::new(2, 0);
        let whole = waiting.grant(2);
        let other = {
            let slab = waiting.slab.clone();
            thread::spawn(move || lease(&slab, whole, 1))
        };
        write(&waiting.slab, &waiting.grant(1));
        drop(other.join().unwrap());
        waiting.assert_all_free();
    });
}

#[test]
fn moving_the_limit_takes_no_memory_that_is_in_use() {
    model(|| {
        let waiting = Waiting::new(3, 1);
        let held = lease(&waiting.slab, waiting.grant(2), 2);
        let consumer = {
            let slab = waiting.slab.clone();
            thread::spawn(move || {
                read(&slab, &held);
                drop(held);
            })
        };
        let ledger = {
            let slab = waiting.slab.clone();
            thread::spawn(move || {
                slab.set_limit(PAGE).unwrap();
                slab.set_limit(2 * PAGE).unwrap();
            })
        };
        // Grants at most one page while the limit is low, then both.
        write(&waiting.slab, &waiting.grant(1));
        write(&waiting.slab, &waiting.grant(2));
        consumer.join().unwrap();
        ledger.join().unwrap();
        waiting.assert_all_free();
        assert_eq!(waiting.slab.stats().bound_bytes, 3 * PAGE);
    });
}

#[test]
fn the_limit_may_rise_while_it_is_lowered() {
    model(|| {
        let waiting = Waiting::new(2, 0);
        let other = {
            let slab = waiting.slab.clone();
            thread::spawn(move || slab.set_limit(PAGE).unwrap())
        };
        waiting.slab.set_limit(2 * PAGE).unwrap();
        if let Some(grant) = waiting.slab.grant(2 * PAGE, 0) {
            write(&waiting.slab, &grant);
        }
        other.join().unwrap();
        waiting.slab.set_limit(2 * PAGE).unwrap();
        waiting.assert_all_free();
    });
}

#[test]
fn the_reserve_serves_when_nothing_else_does() {
    model(|| {
        let waiting = Waiting::new(2, 1);
        let held = lease(&waiting.slab, waiting.grant(1), 1);
        let consumer = {
            let slab = waiting.slab.clone();
            thread::spawn(move || {
                read(&slab, &held);
                drop(held);
            })
        };
        let grant = waiting.slab.grant(PAGE, 0).or_else(|| waiting.slab.grant_reserve(PAGE, 0)).unwrap();
        write(&waiting.slab, &grant);
        drop(grant.copy_out(8).unwrap());
        consumer.join().unwrap();
        waiting.assert_all_free();
        assert_eq!(waiting.slab.stats().copies, 1);
    });
}
