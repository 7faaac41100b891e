//! The worker's side of a slab, which writes to granted extents.
//!
//! # Why no two processes write, and none reads bytes while they are written
//! - **Between processes**: only the parent grants extents, each to a single worker at a time. It reads an extent only
//!   after the worker's message that it is done, which arrives over a channel that orders memory. It grants the extent
//!   again only when all views have gone. It takes an extent from a worker that has not answered only after that
//!   process has ended.
//! - **Inside a worker**: open extents do not overlap; opening an overlapping extent is refused.
//! - **After its message**, a worker must not touch the extent: the [`ExtentMut`] is dropped first.
//!
//! # Damage that a worker can do through wild pointers
//! Each worker has a separate memory file, no descriptor of it, and access only to pages that were granted to it
//! before. A write anywhere else ends the worker. So a worker can damage only its own output, present or past, never
//! the output of another worker.
//!
//! Nothing stops a worker from writing to its own pages after it is done. Taking write access away and giving it back
//! costs as much as copying the bytes. The parent compares the first words of its leases with their earlier values, and
//! ends the run if they have changed. It checks every offset and length before use, and uses the value that it checked.
//! So no such worker can lead the parent outside the slab.
#![expect(unsafe_code, reason = "granted bytes are written by address; the module explains why no one else writes")]

use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use super::error::SlabError;
use super::extents::{ExtentId, PAGE};
use super::memory::{Memory, Window};
use crate::error::Result;
use crate::sync::Locked;

/// Slab of the parent process, as mapped by a worker.
pub(crate) struct WorkerSlab<M: Memory = Window> {
    memory: M,
    /// Extents that are being written now.
    open: Mutex<Vec<ExtentId>>,
}

impl WorkerSlab {
    /// Maps the inherited memory `file` and closes it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if `file` is not a sealed memory file.
    pub(crate) fn map(file: OwnedFd) -> Result<Arc<Self>> {
        Ok(Self::over(Window::map(file)?))
    }
}

impl<M: Memory> WorkerSlab<M> {
    pub(super) fn over(memory: M) -> Arc<Self> {
        Arc::new(Self { memory, open: Mutex::default() })
    }

    /// Opens an extent that the parent granted to this process. Access is exclusive until the value is dropped.
    ///
    /// The bytes hold their previous contents, or 0.
    ///
    /// # Errors
    /// [`SlabError::Outside`] if the extent is not inside the slab; [`SlabError::Overlap`] if it overlaps an open
    /// extent; [`SlabError::Unopened`] if the system refuses access.
    pub(crate) fn extent_mut(self: &Arc<Self>, extent: ExtentId) -> Result<ExtentMut<M>, SlabError> {
        let pages = self.memory.len() / PAGE;
        if u64::from(extent.page) + u64::from(extent.pages) > pages as u64 {
            return Err(SlabError::Outside { extent, pages });
        }
        let mut open = self.open();
        if let Some(&held) = open.iter().find(|held| overlap(**held, extent)) {
            return Err(SlabError::Overlap { extent, held });
        }
        if let Err(error) = self.memory.open(extent.bytes()) {
            tracing::error!(%error, "a granted extent stays closed");
            return Err(SlabError::Unopened(extent));
        }
        open.push(extent);
        drop(open);
        Ok(ExtentMut { slab: self.clone(), extent })
    }

    fn open(&self) -> MutexGuard<'_, Vec<ExtentId>> {
        self.open.locked()
    }
}

fn overlap(a: ExtentId, b: ExtentId) -> bool {
    let (a, b) = (a.bytes(), b.bytes());
    a.start < b.end && b.start < a.end
}

debug_as!(<M: Memory> WorkerSlab<M>, |self, f| {
    write!(f, "WorkerSlab({} bytes, {} extents open)", self.memory.len(), self.open().len())
});

/// The bytes of a granted extent, with exclusive write access.
pub(crate) struct ExtentMut<M: Memory = Window> {
    slab: Arc<WorkerSlab<M>>,
    extent: ExtentId,
}

impl<M: Memory> Deref for ExtentMut<M> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the extent was checked to lie inside, and opened. It is granted to this process, so no other writes to it, and
        // open here, so nothing else in this process does; `self` is borrowed, so it does not.
        unsafe { self.slab.memory.read(self.extent.bytes()) }
    }
}

impl<M: Memory> DerefMut for ExtentMut<M> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { self.slab.memory.write(self.extent.bytes()) }
    }
}

impl<M: Memory> Drop for ExtentMut<M> {
    fn drop(&mut self) {
        self.slab.open().retain(|open| *open != self.extent);
    }
}

debug_as!(<M: Memory> ExtentMut<M>, |self, f| write!(f, "ExtentMut({})", self.extent));
