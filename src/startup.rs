//! Notes of slow work that is done once, for a report's line on start-up: loading a tokenizer, an index, the first row group.
//!
//! The code that does such work records it for all readers. A consumer that has waited reads the work of that time. In a process with
//! several loaders, each loader sees the work that was done while it waited.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::fork::OwnLock;

/// Minimum time to record: shorter times explain nothing.
const LEAST: Duration = Duration::from_millis(1);
/// Maximum number of notes.
const MOST: usize = 256;

/// Work that was done, with its start and end.
#[derive(Clone, Copy, Debug)]
struct Made {
    what: &'static str,
    began: Instant,
    ended: Instant,
}

static MADE: OwnLock<VecDeque<Made>> = OwnLock::new(Mutex::default);

/// Runs `make`, for which a run may have to wait, and records its time.
pub(crate) fn making<R>(what: &'static str, make: impl FnOnce() -> R) -> R {
    let began = Instant::now();
    let made = make();
    let ended = Instant::now();
    if ended - began >= LEAST {
        remember(&mut MADE.lock(), Made { what, began, ended });
    }
    made
}

fn remember(all: &mut VecDeque<Made>, made: Made) {
    // Work that continues within `LEAST` extends the last note of its kind.
    if let Some(last) = all.iter_mut().rev().find(|last| last.what == made.what)
        && made.began <= last.ended + LEAST
    {
        last.ended = last.ended.max(made.ended);
        return;
    }
    if all.len() == MOST {
        all.pop_front();
    }
    all.push_back(made);
}

/// Returns the kinds of work done between two moments, each with its time. Work of several threads at a time counts once.
pub(crate) fn made_between(from: Instant, to: Instant) -> Vec<(&'static str, Duration)> {
    let clipped = |made: &Made| Made { began: made.began.max(from), ended: made.ended.min(to), ..*made };
    let mut all: Vec<Made> = MADE.lock().iter().map(clipped).filter(|made| made.began < made.ended).collect();
    all.sort_by_key(|made| made.began);
    let mut sums: Vec<(&'static str, Duration, Instant)> = Vec::new();
    for Made { what, began, ended } in all {
        if let Some((_, sum, until)) = sums.iter_mut().find(|(other, ..)| *other == what) {
            // Work of several threads at a time counts once.
            *sum += ended.saturating_duration_since(began.max(*until));
            *until = ended.max(*until);
        } else {
            sums.push((what, ended - began, ended))
        }
    }
    sums.into_iter().map(|(what, sum, _)| (what, sum)).filter(|(_, sum)| *sum >= LEAST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_in_the_time_counts_once() {
        // A sleep lasts at least the requested time, so each of these is recorded.
        let make = |what| making(what, || std::thread::sleep(2 * LEAST));
        make("something before");
        let from = Instant::now();
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(|| make("something of three")))));
        making("something short", || ());
        let to = Instant::now();
        make("something after");
        let mut made = made_between(from, to);
        // Other tests record work, too.
        made.retain(|(what, _)| what.starts_with("something"));
        assert_eq!(made.len(), 1, "{made:?}");
        assert!(made[0].0 == "something of three" && (2 * LEAST..=to - from).contains(&made[0].1), "{made:?}");
    }
}
