//! The surroundings of every thread that may call a user's function.

use std::sync::OnceLock;

/// Runs the body of a thread in the surroundings that functions of another language need.
pub(crate) type Around = fn(&mut (dyn FnMut() + Send));

static AROUND: OnceLock<Around> = OnceLock::new();

/// Has `around` put around every thread that starts from now on. The first one stands.
#[cfg(feature = "python")]
pub(crate) fn surround(around: Around) {
    let _ = AROUND.set(around);
}

/// Runs `body`, which is that of a whole thread.
pub(crate) fn run(body: impl FnOnce() + Send) {
    let Some(around) = AROUND.get() else { return body() };
    let mut body = Some(body);
    around(&mut || {
        if let Some(body) = body.take() {
            body();
        }
    });
}
