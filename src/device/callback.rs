//! Callbacks on threads of the plugin. Such a thread must not wait for the plugin.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` as part of a callback.
pub(super) fn inside(work: impl FnOnce()) {
    let outer = INSIDE.replace(true);
    work();
    INSIDE.set(outer);
}

/// Runs `work`, which may wait for the plugin: on a new thread inside a callback, else on this thread.
pub(super) fn outside(work: impl FnOnce() + Send + 'static) {
    if !INSIDE.get() {
        return work();
    }
    if let Err(error) = std::thread::Builder::new().name("gristmill-device".into()).spawn(work) {
        tracing::warn!(%error, "no thread was started to end clients and unpin memory, so they stay");
    }
}
