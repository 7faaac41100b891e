//! Events: completion of a plugin's background work.
#![expect(unsafe_code, reason = "events are the plugin's objects")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytemuck::Zeroable;

use super::abi::{EventAwait, EventDestroy, EventError, EventIsReady, EventOnReady, Failure, RawError, RawEvent};
use super::callback;
use super::client::Client;
use crate::error::{Error, Result};
use crate::sync::{Locked, Regardless};

/// The completion of background work of a plugin, such as a transfer or a computation. Clones share the event.
#[derive(Clone)]
pub struct Event {
    inner: Arc<Inner>,
}

struct Inner {
    raw: NonNull<RawEvent>,
    /// The signal of [`Event::wait_timeout`], created by its first call that has to wait.
    signal: OnceLock<Arc<Signal>>,
    client: Client,
}

// SAFETY: events are used from any thread, and the plugin synchronises.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Event {
    /// Takes ownership of `raw`.
    ///
    /// # Safety
    /// `raw` must be an event of this client without another owner.
    pub(super) unsafe fn new(raw: NonNull<RawEvent>, client: &Client) -> Self {
        Self { inner: Arc::new(Inner { raw, signal: OnceLock::new(), client: client.clone() }) }
    }

    /// Returns true if the work has ended, successfully or not. Never blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) if the plugin cannot report the state.
    pub fn is_ready(&self) -> Result<bool> {
        let args = EventIsReady { event: self.raw(), ..Zeroable::zeroed() };
        // SAFETY: the event lives as long as `self`.
        self.checked(unsafe { self.inner.client.api().call(args) }).map(|args| args.is_ready != 0)
    }

    /// Returns the outcome, [`ErrorKind::Device`](crate::ErrorKind::Device) on failure, or `None` before the end. Never
    /// blocks.
    pub fn outcome(&self) -> Option<Result<()>> {
        match self.is_ready() {
            Ok(false) => None,
            Err(error) => Some(Err(error)),
            Ok(true) => {
                let args = EventError { event: self.raw(), ..Zeroable::zeroed() };
                // SAFETY: the event lives as long as `self`, and is ready.
                Some(self.checked(unsafe { self.inner.client.api().call(args) }).map(drop))
            }
        }
    }

    /// Blocks until the work has ended.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) if the background work failed.
    pub fn wait(&self) -> Result<()> {
        let args = EventAwait { event: self.raw(), ..Zeroable::zeroed() };
        // SAFETY: the event lives as long as `self`.
        self.checked(unsafe { self.inner.client.api().call(args) }).map(drop)
    }

    /// Blocks until the work has ended, for at most `patience`. Returns false after a timeout.
    ///
    /// # Errors
    /// Fails like [`wait`](Self::wait).
    pub fn wait_timeout(&self, patience: Duration) -> Result<bool> {
        if let Some(outcome) = self.outcome() {
            return outcome.map(|()| true);
        }
        let signal = if let Some(signal) = self.inner.signal.get() { signal.clone() } else { self.new_signal()? };
        if signal.wait(patience) { self.wait().map(|()| true) } else { Ok(false) }
    }

    fn new_signal(&self) -> Result<Arc<Signal>> {
        let signal = Arc::new(Signal::default());
        let given = signal.clone();
        self.on_ready(move |_| given.set())?;
        // Another thread may have registered a signal first; both signals get set.
        let _ = self.inner.signal.set(signal.clone());
        Ok(signal)
    }

    /// Calls `f` with the outcome after the work has ended. Calls it immediately on this thread if the work has ended
    /// already, else later on a thread of the plugin.
    ///
    /// `f` should be short, wait for nothing and take no lock that is held around calls of this module. A panic in `f`
    /// aborts the process.
    ///
    /// If the event never becomes ready, `f` and its captures are never dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) if the plugin refuses the callback. `f` is then dropped.
    pub fn on_ready(&self, f: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let callback = Box::new(Registered { event: self.clone(), call: Box::new(f) });
        let argument = Box::into_raw(callback);
        let args =
            EventOnReady { event: self.raw(), callback: Some(fire), argument: argument.cast(), ..Zeroable::zeroed() };
        // SAFETY: the event is alive. The argument holds it until `fire` is called.
        self.checked(unsafe { self.inner.client.api().call(args) }).map(drop).inspect_err(|_| {
            // SAFETY: a plugin that refuses the callback never calls it, so the argument has no other owner.
            drop(unsafe { Box::from_raw(argument) });
        })
    }

    fn raw(&self) -> *mut RawEvent {
        self.inner.raw.as_ptr()
    }

    fn checked<T>(&self, result: Result<T, Failure>) -> Result<T> {
        result.map_err(|failure| self.inner.client.api().error(&failure))
    }
}

debug_as!(Event, |self, f| f.debug_struct("Event").field("is_ready", &self.is_ready().ok()).finish());

impl Drop for Inner {
    fn drop(&mut self) {
        let args = EventDestroy { event: self.raw.as_ptr(), ..Zeroable::zeroed() };
        // SAFETY: the event is not used again. A failure changes nothing.
        let _ = unsafe { self.client.api().call(args) };
    }
}

struct Registered {
    event: Event,
    call: Box<dyn FnOnce(Result<()>) + Send>,
}

/// Runs a registered callback. The plugin calls this function.
///
/// # Safety
/// `argument` must come from `on_ready` and be used once. `error` must be null or owned by the callee.
unsafe extern "C" fn fire(error: *mut RawError, argument: *mut c_void) {
    // SAFETY: the argument is the box from `on_ready`, and only this call receives it.
    let Registered { event, call } = *unsafe { Box::from_raw(argument.cast::<Registered>()) };
    callback::inside(move || {
        call(outcome(&event, error));
        drop(event);
    });
}

fn outcome(event: &Event, error: *mut RawError) -> Result<()> {
    let Some(error) = NonNull::new(error) else { return Ok(()) };
    let api = event.inner.client.api();
    // SAFETY: the callee owns the error (see `fire`), which is not used again.
    let failure = unsafe { api.failure("an event", error) };
    Err(api.error(&failure))
}

/// A flag that is set once, with any number of waiters.
#[derive(Default)]
struct Signal {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    fn set(&self) {
        *self.is_set.locked() = true;
        self.changed.notify_all();
    }

    fn wait(&self, patience: Duration) -> bool {
        let is_set = self.is_set.locked();
        let waited = self.changed.wait_timeout_while(is_set, patience, |is_set| !*is_set);
        *waited.regardless().0
    }
}

/// Waits for all `events`, for at most `patience` in total.
pub(super) fn wait_all<'a>(events: impl IntoIterator<Item = &'a Event>, patience: Duration) -> Result<()> {
    let start = Instant::now();
    for event in events {
        if !event.wait_timeout(patience.saturating_sub(start.elapsed()))? {
            return Err(Error::new(crate::ErrorKind::Device, format!("a transfer is not over after {patience:?}"))
                .path(event.inner.client.api().path()));
        }
    }
    Ok(())
}
