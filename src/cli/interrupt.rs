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
        match wish(ASKED.swap(true, Ordering::SeqCst), begun.elapsed(), SAVED.load(Ordering::SeqCst)) {
            Wish::Stop => output::say("stopping; once more to stop at once"),
            Wish::Same => {}
            Wish::Exit(code) => {
                if code == UNSAVED {
                    output::say("stopped at once: where the run was is not saved");
                }
                std::process::exit(code);
            }
        }
    });
}

/// The effect of a signal.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    /// The run saves and stops.
    Stop,
    /// None: the first signal counts.
    Same,
    Exit(i32),
}

/// Decides about a signal, `time` after the first.
fn wish(is_asked: bool, time: Duration, is_saved: bool) -> Wish {
    match is_asked {
        false => Wish::Stop,
        true if time <= SAME_WISH => Wish::Same,
        true => Wish::Exit(if is_saved { 130 } else { UNSAVED }),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_within_a_second_are_one_and_a_later_signal_ends_the_process() {
        for (is_asked, ms, is_saved, expected) in [
            (false, 0, false, Wish::Stop),
            (false, 5000, true, Wish::Stop),
            (true, 0, false, Wish::Same),
            (true, 1000, false, Wish::Same),
            (true, 1000, true, Wish::Same),
            (true, 1001, false, Wish::Exit(131)),
            (true, 1001, true, Wish::Exit(130)),
        ] {
            assert_eq!(wish(is_asked, Duration::from_millis(ms), is_saved), expected, "{is_asked}, {ms}, {is_saved}");
        }
    }
}
