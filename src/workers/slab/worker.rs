//! The worker's side of a slab: it writes where it was told to.
//!
//! # Why no two write, and none reads what is written
//! - **Between processes**: the parent alone grants extents, and one that is granted is granted to nobody else. It
//!   reads one only after the worker's word that it is done, which arrives over a channel that orders memory, and
//!   grants it again only when all views have gone. It takes one from a worker that has not answered only after that
//!   process ended.
//! - **Inside a worker**: extents that are open at once do not overlap; the second is refused.
//! - **After its word** a worker must not touch the extent: an [`ExtentMut`] is dropped first.
//!
//! # What a worker that writes through wild pointers can spoil
//! Each has a memory file of its own, no descriptor of it, and access to the pages that were granted to it before and no
//! others: a write anywhere else ends it. So it can spoil what it is writing and what it has written, never what another
//! worker wrote. It cannot be kept from its own pages once it is done with them: taking the right to write away and giving
//! it back costs as much as copying the bytes. The parent looks whether the first words of what it was given are still the
//! same, and ends the run if they are not. It checks every offset and length that it reads before it uses it, and uses what
//! it read then, so that no such worker leads it outside the slab.
#![expect(unsafe_code, reason = "granted bytes are written by address; the module says why no one else does")]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use super::error::SlabError;
use super::extents::{ExtentId, PAGE};
use super::memory::{Memory, Window};
use crate::error::Result;
use crate::sync::Locked;

/// The slab of the parent process, in a worker.
pub(crate) struct WorkerSlab<M: Memory = Window> {
    memory: M,
    /// The extent that is being written now.
    open: Mutex<Vec<ExtentId>>,
}

impl WorkerSlab {
    /// Maps the inherited memory `file`, and closes it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it is anything but a sealed memory file.
    pub(crate) fn map(file: OwnedFd) -> Result<Arc<Self>> {
        Ok(Self::over(Window::map(file)?))
    }
}

impl<M: Memory> WorkerSlab<M> {
    pub(super) fn over(memory: M) -> Arc<Self> {
        Arc::new(Self { memory, open: Mutex::default() })
    }

    /// The bytes of an extent that the parent granted to this process, exclusively, until they are dropped.
    ///
    /// The bytes hold what was there before, or 0.
    ///
    /// # Errors
    /// [`SlabError::Outside`] for what is no part of the slab, [`SlabError::Overlap`] for what is open already,
    /// [`SlabError::Unopened`] if the system refuses access.
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

impl<M: Memory> fmt::Debug for WorkerSlab<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkerSlab({} bytes, {} extents open)", self.memory.len(), self.open().len())
    }
}

/// The bytes of a granted extent, writable by no one else.
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

impl<M: Memory> fmt::Debug for ExtentMut<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtentMut({})", self.extent)
    }
}
