//! Ctrl-C: the first signal makes the run save and stop, a later signal stops it at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::{IterDataset, Loader, Result};

use crate::cli::output;

static ASKED: AtomicBool = AtomicBool::new(false);
static SAVED: AtomicBool = AtomicBool::new(false);

/// Time after the first signal in which further signals have no effect.
/// `timeout` signals both the process and its group, and schedulers repeat their signals.
const SAME_WISH: Duration = Duration::from_secs(1);
/// Interval between two checks for an interrupt.
const PATIENCE: Duration = Duration::from_millis(50);
/// Exit code of a run that ended before it had saved.
const UNSAVED: i32 = 131;

/// Makes SIGINT, SIGTERM and SIGHUP request a stop instead of ending the run. For loops that check [`asked`].
pub(crate) fn listen() {
    let mut first: Option<Instant> = None;
    // Fails only if a handler exists already, which then stays in place.
    let _ = ctrlc::set_handler(move || {
        let begun = *first.get_or_insert_with(Instant::now);
        match wish(ASKED.swap(true, Ordering::SeqCst), begun.elapsed(), SAVED.load(Ordering::SeqCst)) {
            Wish::Stop => output::say("stopping; once more to stop at once"),
            Wish::Same => {}
            Wish::Exit(code) => {
                if code == UNSAVED {
                    output::say("stopped at once: the position of the run is not saved");
                }
                std::process::exit(code);
            }
        }
    });
}

/// Effect of a signal.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    /// The run saves and stops.
    Stop,
    /// No effect: the signal repeats the first signal.
    Same,
    Exit(i32),
}

/// Decides the effect of a signal that arrives `time` after the first.
fn wish(is_asked: bool, time: Duration, is_saved: bool) -> Wish {
    match is_asked {
        false => Wish::Stop,
        true if time <= SAME_WISH => Wish::Same,
        true => Wish::Exit(if is_saved { 130 } else { UNSAVED }),
    }
}

/// Returns true if a stop was requested.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Records that the state is saved, so that stopping at once loses nothing.
pub(crate) fn saved() {
    SAVED.store(true, Ordering::SeqCst);
}

/// Returns the next element, or `Pending` if a stop is requested before it arrives.
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
