//! Callbacks run on threads of the plugin, which must not wait for the plugin.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` as a part of a callback.
pub(super) fn inside(work: impl FnOnce()) {
    let outer = INSIDE.replace(true);
    work();
    INSIDE.set(outer);
}

/// Does `work`, which may wait for the plugin: here, or on a thread of its own inside a callback.
pub(super) fn outside(work: impl FnOnce() + Send + 'static) {
    if !INSIDE.get() {
        return work();
    }
    if let Err(error) = std::thread::Builder::new().name("gristmill-device".into()).spawn(work) {
        tracing::warn!(%error, "no thread to end a client or unpin memory on: they stay");
    }
}
