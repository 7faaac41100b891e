//! Blocks in processes that code in a worker forks.
//!
//! A fork has no mapping of the slab, so it cannot write there. It does inherit all other memory, including arrays whose bytes
//! are in blocks. Used blocks are therefore copied for the fork, to the same addresses, as ordinary memory.
#![expect(unsafe_code, reason = "memory of a fork is set up by address, in the handlers of the C library")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{MutexGuard, Once, OnceLock};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use super::blocks::Blocks;
use super::{ADMITS, CURRENT};

thread_local! {
    /// Lock held by the forking thread during the fork.
    static HELD: RefCell<Option<MutexGuard<'static, BTreeMap<usize, Blocks>>>> = const { RefCell::new(None) };
}

/// Bytes of a page of the system. Copies of blocks cover whole pages.
const SYSTEM_PAGE: usize = 4096;

/// Returns true if the system has pages of [`SYSTEM_PAGE`] bytes. Larger pages prevent copies of blocks, so blocks are disabled.
pub(super) fn knows_pages() -> bool {
    static KNOWS: OnceLock<bool> = OnceLock::new();
    // SAFETY: the call reads a number.
    *KNOWS.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) } == SYSTEM_PAGE as libc::c_long)
}

/// Installs the fork handlers, so that later forks get their copies.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the three may be called around any fork: they take a lock, which is of this module alone, and make system
        // calls; memory is freed and allocated by nobody but them.
        let refused = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        // The call fails only if memory of a few bytes is not available.
        assert_eq!(refused, 0, "no memory");
    });
}

/// Returns the system pages of all used blocks.
fn pages(all: &BTreeMap<usize, Blocks>) -> impl Iterator<Item = (usize, usize)> {
    all.iter().filter(|(_, blocks)| blocks.shared).flat_map(|(&start, blocks)| {
        blocks.places().map(move |(place, len)| {
            let from = (start + place) / SYSTEM_PAGE * SYSTEM_PAGE;
            (from, (start + place + len).next_multiple_of(SYSTEM_PAGE) - from)
        })
    })
}

fn advise(all: &BTreeMap<usize, Blocks>, advice: Advice) {
    for (from, len) in pages(all) {
        let from = ptr::with_exposed_provenance_mut::<c_void>(from);
        // SAFETY: it changes nothing for this process. The pages are mapped: the extent is, whose start and length are multiples
        // of a page.
        let _ = unsafe { rustix::mm::madvise(from, len, advice) };
    }
}

extern "C" fn before() {
    let all = super::all();
    advise(&all, Advice::LinuxDoFork);
    HELD.set(Some(all));
}

extern "C" fn in_parent() {
    if let Some(all) = HELD.take() {
        advise(&all, Advice::LinuxDontFork);
    }
}

extern "C" fn in_child() {
    let Some(all) = HELD.take() else { return };
    for (from, len) in pages(&all) {
        if copy(from, len).is_err() {
            // An unmapped page is safer than a page of the worker.
            // SAFETY: the pages are mapped, by what the parent let this process have.
            let _ = unsafe { rustix::mm::munmap(ptr::with_exposed_provenance_mut(from), len) };
        }
    }
    // This process writes no extent.
    CURRENT.set(0);
    ADMITS.set(None);
}

/// Replaces shared memory with private memory of this process that has the same contents.
fn copy(from: usize, len: usize) -> rustix::io::Result<()> {
    let place = ptr::with_exposed_provenance_mut::<c_void>(from);
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: the system chooses an address where nothing is.
    let copy = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, access, flags)? };
    // SAFETY: both have `len` bytes, and the copy is new. Nobody else runs in this process; others may write to what is copied,
    // as they may to all memory that is copied by a fork.
    unsafe { ptr::copy_nonoverlapping(place.cast::<u8>(), copy.cast::<u8>(), len) };
    let moves = rustix::mm::MremapFlags::MAYMOVE;
    // SAFETY: the copy is mapped, and nobody has a reference to it; the place is mapped, and what refers to it goes on to see the
    // same bytes there.
    let moved = unsafe { rustix::mm::mremap_fixed(copy, len, len, moves, place) };
    if moved.is_err() {
        // SAFETY: it is mapped, and nobody has it.
        let _ = unsafe { rustix::mm::munmap(copy, len) };
    }
    moved.map(drop)
}
