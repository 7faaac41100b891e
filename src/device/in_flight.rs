//! Sent batches with incomplete transfers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::event::Event;
use crate::error::{Error, Result};
use crate::sync::Locked;

/// The pending events of a sent batch.
pub(super) struct Late {
    pub(super) index: u64,
    pub(super) started: Instant,
    /// The events of the buffers.
    pub(super) events: Vec<Event>,
    pub(super) host: Arc<HostUse>,
}

impl Late {
    /// Returns true if all transfers are complete. With `host_too`, also requires that the plugin is done with the host
    /// memory.
    ///
    /// # Errors
    /// Returns the first failure, even if other transfers are incomplete.
    pub(super) fn outcome(&self, host_too: bool) -> Result<bool> {
        let mut over = !host_too || self.host.transfers.load(Ordering::Acquire) == 0;
        for event in &self.events {
            if let Some(outcome) = event.outcome() { outcome? } else { over = false }
        }
        self.host.trouble.locked().take().map_or(Ok(over), Err)
    }
}

/// The plugin's use of the host memory of a batch.
#[derive(Debug, Default)]
pub(super) struct HostUse {
    transfers: AtomicUsize,
    trouble: Mutex<Option<Error>>,
}

impl HostUse {
    /// Counts a transfer and returns a function to call with its outcome.
    pub(super) fn begin(this: &Arc<Self>) -> impl FnOnce(Result<()>) + Send + 'static {
        this.transfers.fetch_add(1, Ordering::Relaxed);
        let this = this.clone();
        move |outcome| {
            if let Err(error) = outcome {
                this.trouble.locked().get_or_insert(error);
            }
            this.transfers.fetch_sub(1, Ordering::Release);
        }
    }
}
