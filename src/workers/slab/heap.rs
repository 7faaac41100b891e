//! Memory of this process alone, for tests of everything but the mapping.
#![expect(unsafe_code, reason = "a stand-in for shared memory")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::extents::PAGE;
use super::memory::Memory;
use crate::error::{Error, ErrorKind, Result};

/// Zeroed pages. A clone is another view of the same pages, as a second mapping is.
#[derive(Clone, Debug)]
pub(super) struct Heap(Arc<Block>);

#[derive(Debug)]
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    punches: AtomicUsize,
    refuses: AtomicBool,
}

// SAFETY: the block belongs to no thread; its bytes are used by the contracts of `Memory`.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Heap {
    pub(super) fn new(pages: usize) -> Self {
        let layout = Layout::from_size_align(pages * PAGE, PAGE).unwrap();
        // SAFETY: tests ask for 1 page or more.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Self(Arc::new(Block { start, layout, punches: AtomicUsize::new(0), refuses: AtomicBool::new(false) }))
    }

    /// Returns the number of pages given back so far.
    pub(super) fn punched_pages(&self) -> usize {
        self.0.punches.load(Ordering::Relaxed)
    }

    /// Sets whether [`punch`](Memory::punch) fails from now on.
    pub(super) fn refuse(&self, refuses: bool) {
        self.0.refuses.store(refuses, Ordering::Relaxed);
    }
}

// SAFETY: the block is there until the last clone goes, and never moves.
unsafe impl Memory for Heap {
    fn at(&self, byte: usize) -> NonNull<u8> {
        assert!(byte <= self.len());
        // SAFETY: the byte lies inside the block, or just behind its end.
        unsafe { self.0.start.add(byte) }
    }

    fn len(&self) -> usize {
        self.0.layout.size()
    }

    fn punch(&self, bytes: Range<usize>) -> Result<()> {
        if self.0.refuses.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io, "refused"));
        }
        self.0.punches.fetch_add(bytes.len() / PAGE, Ordering::Relaxed);
        // SAFETY: the range is inside, and nobody's: only what is emptied is punched.
        unsafe { self.write(bytes) }.fill(0);
        Ok(())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: what `new` allocated, with the same layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
