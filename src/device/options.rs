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
    setters! {
        /// Sets the number of batches sent ahead, including the batch that the next call hands out. The default is 2,
        /// the minimum 1.
        pub depth(batches: usize) => depth = batches.max(1);

        /// Sets the maximum number of slots for batches that are copied before the transfer. The default is the depth
        /// plus 1.
        pub slots: usize;

        /// Sets the time after which an incomplete transfer is an error. The default is 60 seconds.
        pub timeout: Duration;

        /// Sets whether batches are copied before the transfer; see [`Staging`].
        pub staging: Staging;

        /// Lets buffers on the platform `cpu` view host memory instead of copying it. The memory is held while the
        /// buffers live. Off by default; an error on any other platform.
        ///
        /// Slots are allocated on demand without a limit: a consumer that keeps batches keeps their memory.
        pub zero_copy: bool;

        /// Pins the slots so that devices read them directly (`PJRT_Client_DmaMap`), and copies all batches into slots.
        /// Off by default. Slots stay unpinned if the plugin does not support pinning.
        pub pinned: bool;
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
