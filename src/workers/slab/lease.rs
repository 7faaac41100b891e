//! Holders of an extent: first the worker that writes it, then the views that read it.
#![expect(unsafe_code, reason = "leased bytes are read by address; `Held::bytes` explains why they do not change")]

use std::sync::Arc;

use super::areas::Areas;
use super::error::SlabError;
use super::extents::ExtentId;
use super::memory::Memory;
use super::parent::Slab;
use crate::element::{Buffer, BufferMut, Owner};

/// An extent that is given back on drop.
struct Held<M: Memory> {
    slab: Arc<Slab<M>>,
    extent: ExtentId,
}

impl<M: Memory> Held<M> {
    /// Returns the first `used` bytes.
    ///
    /// # Safety
    /// `used` is at most the extent's length. The worker that the extent was granted to has reported that it is done,
    /// or is dead.
    unsafe fn bytes(&self, used: usize) -> &[u8] {
        let start = self.extent.bytes().start;
        // A worker that still writes there through a wild pointer breaks this. The bytes then change, and two reads may
        // differ. `wire` reads every word once, and the coordinator looks for such workers.
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

/// Permission for a worker to write an extent. Dropping it gives the extent back.
///
/// # Duty of the holder
/// **Keep the grant while the worker may write.** Writing ends when the worker reports that it is done; the grant then
/// ends by [`into_lease`](Self::into_lease) or [`copy_out`](Self::copy_out). Otherwise the grant must last until the
/// worker's process is reaped.
#[must_use = "a grant that is dropped is given back"]
pub(crate) struct Grant<M: Memory = Areas>(Held<M>);

impl<M: Memory> Grant<M> {
    pub(super) fn new(slab: Arc<Slab<M>>, extent: ExtentId) -> Self {
        Self(Held { slab, extent })
    }

    /// Returns the extent to send to the worker.
    pub(crate) fn extent(&self) -> ExtentId {
        self.0.extent
    }

    /// Returns the writable bytes: the requested bytes, rounded up to whole pages.
    pub(crate) fn len(&self) -> usize {
        self.0.extent.len()
    }

    /// Returns true if the grant is of the reserve, so that its bytes must be copied out.
    pub(crate) fn is_reserve(&self) -> bool {
        self.0.slab.is_reserve(self.0.extent)
    }

    /// Turns the grant into a lease on `used` bytes, after the worker has reported that it is done.
    ///
    /// Views may then read the bytes. Pages after the used bytes are free at once.
    ///
    /// # Errors
    /// [`SlabError::Overrun`] if `used` exceeds the extent; [`SlabError::Reserve`] for a grant of the reserve;
    /// [`SlabError::Forked`] in a forked process. Each error returns the grant.
    pub(crate) fn into_lease(mut self, used: usize) -> Result<Lease<M>, Refused<M>> {
        match self.check_used(used).and_then(|()| self.0.slab.lease(self.0.extent, used)) {
            Ok(kept) => {
                self.0.extent = kept;
                Ok(Lease { held: self.0, used })
            }
            Err(error) => Err(Refused { grant: self, error }),
        }
    }

    /// Copies `used` bytes to private memory, after the worker has reported that it is done. The extent is free at
    /// once.
    ///
    /// # Errors
    /// As for [`into_lease`](Self::into_lease), except that grants of the reserve are accepted.
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

    /// Returns the bytes as views get them: leased, or copied if the grant is of the reserve.
    ///
    /// # Errors
    /// As for [`copy_out`](Self::copy_out).
    #[cfg(test)]
    pub(crate) fn into_buffer(self, used: usize) -> Result<Buffer, Refused<M>> {
        if self.is_reserve() { self.copy_out(used) } else { Ok(Buffer::from_owner(Arc::new(self.into_lease(used)?))) }
    }

    fn check_used(&self, used: usize) -> Result<(), SlabError> {
        let limit = self.len();
        if used > limit { Err(SlabError::Overrun { used, limit }) } else { Ok(()) }
    }
}

debug_as!(<M: Memory> Grant<M>, |self, f| write!(f, "Grant({})", self.0.extent));

/// A refused grant. Its worker is alive and may still write, so the grant must outlive the worker.
#[derive(Debug)]
pub(crate) struct Refused<M: Memory = Areas> {
    pub(crate) grant: Grant<M>,
    pub(crate) error: SlabError,
}

/// Bytes that a worker wrote, held for their readers. A lease owns the memory of an element's buffers.
///
/// Dropping the lease returns the extent, on any thread.
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

debug_as!(<M: Memory> Lease<M>, |self, f| write!(f, "Lease({} bytes in {})", self.used, self.held.extent));
