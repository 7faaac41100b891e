//! Thread limit of a worker shared by several passes: first come, first served, and suspect tasks run alone.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

use crate::sync::{Locked, Regardless};

/// Limits how many tasks are evaluated at once. Admits tasks first come, first served, so passes with equal demand get
/// equal shares.
pub(super) struct Semaphore {
    most: usize,
    state: Mutex<Admission>,
    changed: Condvar,
}

#[derive(Default)]
struct Admission {
    next: u64,
    waiting: VecDeque<u64>,
    inside: usize,
    /// Whether the task inside must be alone.
    alone: bool,
}

impl Semaphore {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for a place, or for all places if `alone`; dropping the pass frees the place.
    pub(super) fn acquire(&self, alone: bool) -> Permit<'_> {
        let mut state = self.state.locked();
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back(ticket);
        while !(state.waiting.front() == Some(&ticket) && state.admits(alone, self.most)) {
            state = self.changed.wait(state).regardless();
        }
        state.waiting.pop_front();
        state.inside += 1;
        state.alone = alone;
        drop(state);
        // The next task in the queue may fit, too.
        self.changed.notify_all();
        Permit(self)
    }
}

impl Admission {
    fn admits(&self, alone: bool, most: usize) -> bool {
        if alone { self.inside == 0 } else { self.inside < most && !self.alone }
    }
}

/// A place of a [`Semaphore`].
pub(super) struct Permit<'a>(&'a Semaphore);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.locked();
        state.inside -= 1;
        state.alone = false;
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_than_so_many_are_inside_and_nobody_beside_one_that_is_to_be_alone() {
        let (semaphore, inside, most) = (Semaphore::new(3), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for n in 0..24 {
                let (semaphore, inside, most) = (&semaphore, &inside, &most);
                scope.spawn(move || {
                    let alone = n % 6 == 0;
                    let pass = semaphore.acquire(alone);
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    assert!(!alone || now == 1, "{now}");
                    // Others try to enter meanwhile.
                    thread::sleep(Duration::from_millis(2));
                    assert!(!alone || inside.load(Ordering::SeqCst) == 1);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(pass);
                });
            }
        });
        assert!(most.into_inner() <= 3);
    }

    #[test]
    fn places_are_free_for_others_and_for_a_lone_pass_when_nobody_is_inside() {
        let semaphore = Semaphore::new(3);
        let admits = |alone| semaphore.state.locked().admits(alone, semaphore.most);
        let mut inside = Vec::new();
        for _ in 0..3 {
            assert!(admits(false));
            inside.push(semaphore.acquire(false));
            assert!(!admits(true));
        }
        assert!(!admits(false), "all places are taken");
        inside.pop();
        assert!(admits(false) && !admits(true));
        inside.clear();
        let _lone = semaphore.acquire(true);
        assert!(!admits(false) && !admits(true));
    }
}
