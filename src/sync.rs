//! Locks whose holder may have panicked.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Takes what a lock guards, whether or not a thread has panicked while it had it.
///
/// Locks of this crate hold what is whole between any two of its steps; and a panic of a user's function is told as an error of its
/// element, which must not become one of every element after it.
pub(crate) trait Regardless<T> {
    /// The guard, or the value.
    fn regardless(self) -> T;
}

impl<T> Regardless<T> for LockResult<T> {
    #[inline]
    fn regardless(self) -> T {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a lock [regardless](Regardless) of panics.
pub(crate) trait Locked<T> {
    /// The lock's guard.
    fn locked(&self) -> MutexGuard<'_, T>;
}

impl<T> Locked<T> for Mutex<T> {
    #[inline]
    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().regardless()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_the_value_to_others() {
        let lock = Mutex::new(1);
        let panicked = std::panic::catch_unwind(|| {
            let mut held = lock.locked();
            *held += 1;
            panic!("boom");
        });
        assert!(panicked.is_err() && lock.is_poisoned());
        assert_eq!(*lock.locked(), 2);
    }
}
