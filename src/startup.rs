//! Notes of what is made once and may take long, for a report's line of start-up: a tokenizer, an index, the first row group.
//!
//! Makers say so where they make it, and need not know for whom; whoever has waited asks what was made in that time. In a
//! process with several loaders each sees what was made while it waited.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::fork::OwnLock;

/// Shorter times explain nothing.
const LEAST: Duration = Duration::from_millis(1);
/// Number of notes that are remembered.
const MOST: usize = 256;

/// Something that was made.
#[derive(Clone, Copy, Debug)]
struct Made {
    what: &'static str,
    began: Instant,
    ended: Instant,
}

static MADE: OwnLock<VecDeque<Made>> = OwnLock::new(Mutex::default);

/// Makes something that a run may have to wait for.
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
    // Of what is made again and again it is one that goes on.
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

/// Lists what was made between two moments, and for how much of the time between them it was being made, on any number of threads.
pub(crate) fn made_between(from: Instant, to: Instant) -> Vec<(&'static str, Duration)> {
    let clipped = |made: &Made| Made { began: made.began.max(from), ended: made.ended.min(to), ..*made };
    let mut all: Vec<Made> = MADE.lock().iter().map(clipped).filter(|made| made.began < made.ended).collect();
    all.sort_by_key(|made| made.began);
    let mut sums: Vec<(&'static str, Duration, Instant)> = Vec::new();
    for Made { what, began, ended } in all {
        match sums.iter_mut().find(|(other, ..)| *other == what) {
            Some((_, sum, until)) => {
                // What several threads make at a time counts once.
                *sum += ended.saturating_duration_since(began.max(*until));
                *until = ended.max(*until);
            }
            None => sums.push((what, ended - began, ended)),
        }
    }
    sums.into_iter().map(|(what, sum, _)| (what, sum)).filter(|(_, sum)| *sum >= LEAST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_in_the_time_counts_once() {
        // Something that takes its time to be made.
        // A sleep takes at least as long as it is told to, so each of these is remembered.
        let make = |what| making(what, || std::thread::sleep(2 * LEAST));
        make("something before");
        let from = Instant::now();
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(|| make("something of three")))));
        making("something short", || ());
        let to = Instant::now();
        make("something after");
        let mut made = made_between(from, to);
        // Other tests make things, too.
        made.retain(|(what, _)| what.starts_with("something"));
        assert_eq!(made.len(), 1, "{made:?}");
        assert!(made[0].0 == "something of three" && (2 * LEAST..=to - from).contains(&made[0].1), "{made:?}");
    }
}
