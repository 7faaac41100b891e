//! Ctrl-C: the first asks the run to save and stop, the second stops at once.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From here on SIGINT, SIGTERM and SIGHUP ask the run to stop.
pub(crate) fn listen() {
    // Fails only if a handler is there already: then that one stays.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
}

/// Whether somebody asked.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
