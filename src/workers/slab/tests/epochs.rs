//! A slab at its limit for twenty epochs, with views of all of them held.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::file_of;
use super::mapping::{descriptors_and_mappings, inode};
use crate::element::Buffer;
use crate::workers::slab::{ExtentId, Grant, PAGE, Slab, WorkerSlab};

const PAGES: usize = 96;
const RESERVE: usize = 8;
const EPOCHS: u64 = 20;
const PER_EPOCH: u64 = 120;
/// More than the slab holds, so that it is always full.
const HELD: usize = 40;

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    (x ^ (x >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d)
}

/// Any bytes, of which each element is a window that starts elsewhere.
static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| (0..8 * PAGE as u64).map(|at| mix(at) as u8).collect());

/// An element is a function of its number: up to 7 pages.
fn expected(element: u64) -> &'static [u8] {
    let start = element as usize * (PAGE / (EPOCHS * PER_EPOCH) as usize);
    &BYTES[start..][..length(element)]
}

fn length(element: u64) -> usize {
    1 + mix(element) as usize % (7 * PAGE)
}

fn check(element: u64, bytes: &[u8]) {
    assert!(bytes == expected(element), "element {element}");
}

struct Task {
    element: u64,
    extent: ExtentId,
    dies: bool,
}

/// A worker with a mapping of its own. One that is to die spoils its extent and says nothing but that it is dead.
fn worker(file: OwnedFd, tasks: Receiver<Task>, done: Sender<(u64, bool)>) {
    let slab = WorkerSlab::map(file).unwrap();
    for Task { element, extent, dies } in tasks {
        let mut bytes = slab.extent_mut(extent).unwrap();
        if dies {
            bytes.fill(0xdd);
        } else {
            bytes[..length(element)].copy_from_slice(expected(element));
        }
        drop(bytes);
        done.send((element, !dies)).unwrap();
    }
}

struct Run {
    slab: Arc<Slab>,
    tasks: Sender<Task>,
    done: Receiver<(u64, bool)>,
    workers: Vec<JoinHandle<()>>,
    flying: HashMap<u64, Grant>,
    ready: HashMap<u64, Buffer>,
    refusals: u64,
}

impl Run {
    fn start(slab: &Arc<Slab>) -> Self {
        let ((tasks, to_do), (finished, done)) = (unbounded(), bounded(8));
        let start = |_| {
            let (file, to_do, finished) =
                (file_of(slab).try_clone_to_owned().unwrap(), to_do.clone(), finished.clone());
            std::thread::spawn(move || worker(file, to_do, finished))
        };
        let workers = (0..2).map(start).collect();
        Self { slab: slab.clone(), tasks, done, workers, flying: HashMap::new(), ready: HashMap::new(), refusals: 0 }
    }

    fn send(&mut self, element: u64, grant: Grant, dies: bool) {
        self.tasks.send(Task { element, extent: grant.extent(), dies }).unwrap();
        self.flying.insert(element, grant);
    }

    /// Grants in order, up to four at once; from the reserve if nothing is under way.
    fn dispatch(&mut self, from: u64, end: u64) {
        for element in from..end.min(from + 4) {
            if self.flying.contains_key(&element) || self.ready.contains_key(&element) {
                continue;
            }
            let alone = self.flying.is_empty() && self.ready.is_empty();
            let grant = self.slab.grant(length(element), 0).or_else(|| {
                self.refusals += 1;
                alone.then(|| self.slab.grant_reserve(length(element), 0).unwrap())
            });
            let Some(grant) = grant else { return };
            self.send(element, grant, mix(element).is_multiple_of(11));
        }
    }

    fn next(&mut self, element: u64, end: u64) -> Buffer {
        loop {
            if let Some(buffer) = self.ready.remove(&element) {
                return buffer;
            }
            self.dispatch(element, end);
            let (finished, lives) = self.done.recv().unwrap();
            let grant = self.flying.remove(&finished).unwrap();
            if lives {
                self.ready.insert(finished, grant.into_buffer(length(finished)).unwrap());
            } else {
                let reserve = grant.is_reserve();
                drop(grant);
                let again = if reserve { Slab::grant_reserve } else { Slab::grant };
                self.send(finished, again(&self.slab, length(finished), 0).unwrap(), false);
            }
        }
    }

    fn stop(self) -> u64 {
        drop(self.tasks);
        self.workers.into_iter().for_each(|worker| worker.join().unwrap());
        self.refusals
    }
}

#[test]
fn views_of_twenty_epochs_keep_their_bytes() {
    let slab = Slab::create(PAGES * PAGE, RESERVE * PAGE, 1, || ()).unwrap();
    let inode = inode(file_of(&slab));
    let (mut held, mut refusals): (Vec<(u64, Buffer)>, u64) = (Vec::new(), 0);
    for epoch in 0..EPOCHS {
        // Other workers in every epoch.
        let mut run = Run::start(&slab);
        let range = epoch * PER_EPOCH..(epoch + 1) * PER_EPOCH;
        for element in range.clone() {
            let buffer = run.next(element, range.end);
            check(element, buffer.as_bytes());
            // The first of each epoch stays to the end; of the others, some leave in any order.
            held.push((element, buffer));
            let others: Vec<usize> = (0..held.len()).filter(|&at| held[at].0 % PER_EPOCH != 0).collect();
            if others.len() > HELD {
                held.swap_remove(others[mix(element) as usize % others.len()]);
            }
        }
        refusals += run.stop();
        held.iter().for_each(|(element, buffer)| check(*element, buffer.as_bytes()));
        assert_eq!(descriptors_and_mappings(inode), (1, 1), "epoch {epoch}");
    }
    let stats = slab.stats();
    assert!(refusals > 500 && stats.copies > 200, "{refusals} refusals, {stats:?}");
    let leased = EPOCHS * PER_EPOCH - stats.copies;
    assert!(leased > 1000 && stats.leases > 10 && stats.granted_bytes == 0, "{leased} leased, {stats:?}");
    assert!(stats.high_water_bytes > (PAGES - RESERVE) * PAGE, "{stats:?}");

    drop(slab);
    held.iter().for_each(|(element, buffer)| check(*element, buffer.as_bytes()));
    assert_eq!(descriptors_and_mappings(inode), (1, 1));
    drop(held);
    assert_eq!(descriptors_and_mappings(inode), (0, 0));
}
