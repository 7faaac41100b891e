//! Ctrl-C: the first asks the run to save and stop, a later one stops at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::{IterDataset, Loader, Result};

use crate::cli::output;

static ASKED: AtomicBool = AtomicBool::new(false);
static SAVED: AtomicBool = AtomicBool::new(false);

/// Signals so soon behind the first are the same wish: `timeout` tells the process and its group, a scheduler repeats itself.
const SAME_WISH: Duration = Duration::from_secs(1);
/// Between two looks whether somebody asked.
const PATIENCE: Duration = Duration::from_millis(50);
/// The exit code of a run that ended before it had saved.
const UNSAVED: i32 = 131;

/// From here on SIGINT, SIGTERM and SIGHUP ask the run to stop; before, they end it. For loops that look at [`asked`].
pub(crate) fn listen() {
    let mut first: Option<Instant> = None;
    // Fails only if a handler is there already: then that one stays.
    let _ = ctrlc::set_handler(move || {
        let begun = *first.get_or_insert_with(Instant::now);
        if !ASKED.swap(true, Ordering::SeqCst) {
            output::say("stopping; once more to stop at once");
        } else if begun.elapsed() > SAME_WISH {
            if SAVED.load(Ordering::SeqCst) {
                std::process::exit(130);
            }
            output::say("stopped at once: where the run was is not saved");
            std::process::exit(UNSAVED);
        }
    });
}

/// Whether somebody asked.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Notes that nothing is lost any more by stopping at once.
pub(crate) fn saved() {
    SAVED.store(true, Ordering::SeqCst);
}

/// The next element, or that somebody asked to stop before it was there.
pub(crate) fn next<D: IterDataset + 'static>(loader: &mut Loader<D>) -> Poll<Option<Result<D::Item>>> {
    loop {
        if asked() {
            return Poll::Pending;
        }
        if let Poll::Ready(next) = loader.next_within(PATIENCE) {
            return Poll::Ready(next);
        }
    }
}
