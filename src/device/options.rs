//! Options for sending batches to devices.

use std::time::Duration;

use super::buffer::Release;
use super::staging::Staging;

/// Options of [`DevicePut`](super::DevicePut).
#[derive(Clone, Debug)]
#[must_use]
pub struct PutOptions {
    pub(super) depth: usize,
    pub(super) slots: usize,
    pub(super) timeout: Duration,
    pub(super) staging: Staging,
    pub(super) zero_copy: bool,
    pub(super) pinned: bool,
    pub(super) release: Release,
}

impl Default for PutOptions {
    fn default() -> Self {
        Self {
            depth: 2,
            slots: 0,
            timeout: Duration::from_secs(60),
            staging: Staging::WhereNeeded,
            zero_copy: false,
            pinned: false,
            release: Release::WhenDone,
        }
    }
}

impl PutOptions {
    /// Sets the number of batches sent ahead, including the batch that the next call hands out. The default is 2, the
    /// minimum 1.
    pub fn depth(mut self, batches: usize) -> Self {
        self.depth = batches.max(1);
        self
    }

    /// Sets the maximum number of slots for batches that are copied before the transfer. The default is the depth plus
    /// 1.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// Sets the time after which an incomplete transfer is an error. The default is 60 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets whether batches are copied before the transfer; see [`Staging`].
    pub fn staging(mut self, staging: Staging) -> Self {
        self.staging = staging;
        self
    }

    /// Lets buffers on the platform `cpu` view host memory instead of copying it. The memory is held while the buffers
    /// live. Off by default; an error on any other platform.
    ///
    /// Slots are allocated on demand without a limit: a consumer that keeps batches keeps their memory.
    pub fn zero_copy(mut self, yes: bool) -> Self {
        self.zero_copy = yes;
        self
    }

    /// Pins the slots so that devices read them directly (`PJRT_Client_DmaMap`), and copies all batches into slots. Off
    /// by default. Slots stay unpinned if the plugin does not support pinning.
    pub fn pinned(mut self, yes: bool) -> Self {
        self.pinned = yes;
        self
    }

    /// Returns the maximum number of slots. Unlimited with `zero_copy`: the consumer holds slots through its buffers
    /// and would wait forever for a free slot.
    pub(super) fn most_slots(&self) -> usize {
        match self.slots {
            _ if self.zero_copy => usize::MAX,
            0 => self.depth + 1,
            slots => slots,
        }
    }
}
