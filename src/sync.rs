//! Locks that ignore poisoning.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

/// Access to the value of a lock, even if a thread has panicked while holding the lock.
///
/// Locks of this crate hold values that are consistent between any two steps.
/// A panic of a user's function is reported as an error of its element, and must not become an error of all later elements.
pub(crate) trait Regardless<T> {
    /// Returns the guard, or the value.
    fn regardless(self) -> T;
}

impl<T> Regardless<T> for LockResult<T> {
    #[inline]
    fn regardless(self) -> T {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Access to a lock [regardless](Regardless) of panics.
pub(crate) trait Locked<T> {
    /// Locks the value, and returns the guard.
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
