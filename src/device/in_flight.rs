//! Batches that were sent, and of which something is still to be heard.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::event::Event;
use crate::error::{Error, Result};
use crate::sync::Locked;

/// A batch that was sent, as far as there is something to wait for.
pub(super) struct Late {
    pub(super) index: u64,
    pub(super) started: Instant,
    /// Of its buffers.
    pub(super) events: Vec<Event>,
    pub(super) host: Arc<HostUse>,
}

impl Late {
    /// Whether its transfers are over, and with `host_too` whether the plugin has done with its memory on the host.
    ///
    /// # Errors
    /// The first that went wrong, be others over or not.
    pub(super) fn outcome(&self, host_too: bool) -> Result<bool> {
        let mut over = !host_too || self.host.is_free();
        for event in &self.events {
            match event.outcome() {
                Some(outcome) => outcome?,
                None => over = false,
            }
        }
        self.host.take_trouble().map_or(Ok(over), Err)
    }
}

/// The plugin's word on a batch's memory on the host.
#[derive(Debug, Default)]
pub(super) struct HostUse {
    transfers: AtomicUsize,
    trouble: Mutex<Option<Error>>,
}

impl HostUse {
    /// Counts a transfer; what it gives is to be called with its end.
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

    fn is_free(&self) -> bool {
        self.transfers.load(Ordering::Acquire) == 0
    }

    fn take_trouble(&self) -> Option<Error> {
        self.trouble.locked().take()
    }
}
