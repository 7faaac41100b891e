//! Options of sending batches.

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
    /// Batches on their way at a time, the one that is handed out counted; 2 at first, at least 1.
    pub fn depth(mut self, batches: usize) -> Self {
        self.depth = batches.max(1);
        self
    }

    /// Slots for batches that are copied before they are sent, at most; one more than the depth at first.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// Sets how long a transfer may take before it is an error; 60 seconds at first.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether batches are copied before they are sent: see [`Staging`].
    pub fn staging(mut self, staging: Staging) -> Self {
        self.staging = staging;
        self
    }

    /// Lets buffers on the platform `cpu` view the host's memory instead of copying it, which is then held as long as they
    /// are. Off at first; an error on any other platform.
    ///
    /// Slots are made as they are needed: a consumer that keeps batches keeps their memory.
    pub fn zero_copy(mut self, yes: bool) -> Self {
        self.zero_copy = yes;
        self
    }

    /// Maps the slots for the device's own reading, where the plugin can (`PJRT_Client_DmaMap`), and copies all batches into
    /// them. Off at first; without effect on plugins that cannot.
    pub fn pinned(mut self, yes: bool) -> Self {
        self.pinned = yes;
        self
    }

    /// Slots at most: what the buffers view is held by the consumer, who must not wait for itself.
    pub(super) fn most_slots(&self) -> usize {
        match self.slots {
            _ if self.zero_copy => usize::MAX,
            0 => self.depth + 1,
            slots => slots,
        }
    }
}
