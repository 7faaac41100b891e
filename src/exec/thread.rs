//! The surroundings of every thread that may call a user's function.

use std::cell::Cell;
use std::sync::OnceLock;

/// Function that runs the body of a thread in the surroundings that functions of another language require.
pub(crate) type Around = fn(&mut (dyn FnMut() + Send));

static AROUND: OnceLock<Around> = OnceLock::new();

/// Sets the surroundings of every thread that starts from now on. Only the first call has an effect.
pub(crate) fn surround(around: Around) {
    let _ = AROUND.set(around);
}

/// Number of an iterator over a running pipeline; 0 for none.
pub(crate) type Pass = u64;

thread_local!(static PASS: Cell<Pass> = const { Cell::new(0) });

/// Returns the pass that this thread works for.
pub(crate) fn pass() -> Pass {
    PASS.get()
}

/// Runs `work` for a pass. Threads that start meanwhile belong to that pass.
pub(crate) fn for_pass<T>(pass: Pass, work: impl FnOnce() -> T) -> T {
    struct Before(Pass);

    impl Drop for Before {
        fn drop(&mut self) {
            PASS.set(self.0);
        }
    }
    let _before = Before(PASS.replace(pass));
    work()
}

/// Runs `body`, the body of a whole thread, for the `pass` of the thread that started it.
pub(crate) fn run(pass: Pass, body: impl FnOnce() + Send) {
    PASS.set(pass);
    let Some(around) = AROUND.get() else { return body() };
    let mut body = Some(body);
    around(&mut || {
        if let Some(body) = body.take() {
            body();
        }
    });
}
