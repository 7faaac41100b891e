//! Holders of an extent: first the worker that writes it, then the views that read it.
#![expect(unsafe_code, reason = "leased bytes are read by address; `Held::bytes` says why no one writes them")]

use std::fmt;
use std::sync::Arc;

use super::areas::Areas;
use super::error::SlabError;
use super::extents::ExtentId;
use super::memory::Memory;
use super::parent::Slab;
use crate::element::{Buffer, BufferMut, Owner};

/// An extent that returns when this is dropped.
struct Held<M: Memory> {
    slab: Arc<Slab<M>>,
    extent: ExtentId,
}

impl<M: Memory> Held<M> {
    /// Its first `used` bytes.
    ///
    /// # Safety
    /// `used` is no more than it has, and the worker that it was granted to has said that it is done, or is dead.
    unsafe fn bytes(&self, used: usize) -> &[u8] {
        let start = self.extent.bytes().start;
        // A worker that writes there all the same, by a wild pointer, breaks this: then the bytes are other bytes, and
        // whoever reads them twice may see two. `wire` reads every word once, and the coordinator looks for such workers.
        // SAFETY: the extent lies inside its slab, and `used` inside the extent (the caller). Only a grant gives the
        // right to write; this is the one grant of these pages until `self` goes, and its worker does not write any
        // more (the caller).
        unsafe { self.slab.memory.read(start..start + used) }
    }
}

impl<M: Memory> Drop for Held<M> {
    fn drop(&mut self) {
        self.slab.give_back(self.extent);
    }
}

/// The right of one worker to write one extent. Dropping it gives the extent back.
///
/// # The holder's part
/// **Keep it for as long as the worker may write**: until it said that it is done, which ends this by
/// [`into_lease`](Self::into_lease) or [`copy_out`](Self::copy_out), or until its process was reaped.
#[must_use = "a grant that is dropped is given back"]
pub(crate) struct Grant<M: Memory = Areas>(Held<M>);

impl<M: Memory> Grant<M> {
    pub(super) fn new(slab: Arc<Slab<M>>, extent: ExtentId) -> Self {
        Self(Held { slab, extent })
    }

    /// The grant as the worker is told.
    pub(crate) fn extent(&self) -> ExtentId {
        self.0.extent
    }

    /// Bytes that may be written: what was asked for, in whole pages.
    pub(crate) fn len(&self) -> usize {
        self.0.extent.len()
    }

    /// Whether it is of the reserve, so that its bytes must be copied out.
    pub(crate) fn is_reserve(&self) -> bool {
        self.0.slab.is_reserve(self.0.extent)
    }

    /// The worker is done and wrote `used` bytes: views may read them. Pages behind them are free at once.
    ///
    /// # Errors
    /// [`SlabError::Overrun`] for more bytes than there are, [`SlabError::Reserve`] for a grant of the reserve,
    /// [`SlabError::Forked`] in a forked process. The grant comes back with them.
    pub(crate) fn into_lease(mut self, used: usize) -> Result<Lease<M>, Refused<M>> {
        match self.check_used(used).and_then(|()| self.0.slab.lease(self.0.extent, used)) {
            Ok(kept) => {
                self.0.extent = kept;
                Ok(Lease { held: self.0, used })
            }
            Err(error) => Err(Refused { grant: self, error }),
        }
    }

    /// The worker is done and wrote `used` bytes: this is a private copy of them. The extent is free at once.
    ///
    /// # Errors
    /// As for [`into_lease`](Self::into_lease), but the reserve is no reason.
    pub(crate) fn copy_out(self, used: usize) -> Result<Buffer, Refused<M>> {
        if let Err(error) = self.check_used(used).and_then(|()| self.0.slab.check_process()) {
            return Err(Refused { grant: self, error });
        }
        let mut copy = BufferMut::zeroed(used);
        // SAFETY: `used` was checked; that the worker is done is the holder's part, stated above.
        copy.as_mut_bytes().copy_from_slice(unsafe { self.0.bytes(used) });
        self.0.slab.count_copy(used);
        Ok(copy.freeze())
    }

    /// The bytes as views have them: leased, or copied where the grant is of the reserve.
    ///
    /// # Errors
    /// As for [`copy_out`](Self::copy_out).
    #[cfg(test)]
    pub(crate) fn into_buffer(self, used: usize) -> Result<Buffer, Refused<M>> {
        if self.is_reserve() {
            return self.copy_out(used);
        }
        Ok(Buffer::from_owner(Arc::new(self.into_lease(used)?)))
    }

    fn check_used(&self, used: usize) -> Result<(), SlabError> {
        let limit = self.len();
        if used > limit { Err(SlabError::Overrun { used, limit }) } else { Ok(()) }
    }
}

impl<M: Memory> fmt::Debug for Grant<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grant({})", self.0.extent)
    }
}

/// A grant that cannot become bytes. The worker that claims so is alive and may still write: the grant must outlive it.
#[derive(Debug)]
pub(crate) struct Refused<M: Memory = Areas> {
    pub(crate) grant: Grant<M>,
    pub(crate) error: SlabError,
}

/// Bytes that a worker wrote, held for those who read them: the owner behind the buffers of an element.
///
/// The extent returns when it is dropped, on whatever thread that is.
pub(crate) struct Lease<M: Memory = Areas> {
    held: Held<M>,
    used: usize,
}

impl<M: Memory> Owner for Lease<M> {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `used` was checked when the lease was made, which its maker did when the worker was done.
        unsafe { self.held.bytes(self.used) }
    }
}

impl<M: Memory> fmt::Debug for Lease<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({} bytes in {})", self.used, self.held.extent)
    }
}
