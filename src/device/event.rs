//! Events: what a plugin will have done.
#![expect(unsafe_code, reason = "events are the plugin's objects")]

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytemuck::Zeroable;

use super::abi::{EventAwait, EventDestroy, EventError, EventIsReady, EventOnReady, Failure, RawError, RawEvent};
use super::callback;
use super::client::Client;
use crate::error::{Error, Result};
use crate::sync::{Locked, Regardless};

/// Something that a plugin does in the background: a transfer, a computation. Clones are the same event.
#[derive(Clone)]
pub struct Event {
    inner: Arc<Inner>,
}

struct Inner {
    raw: NonNull<RawEvent>,
    /// The signal that [`Event::wait_timeout`] waits for, from its first call on.
    signal: OnceLock<Arc<Signal>>,
    client: Client,
}

// SAFETY: events are used from any thread, and the plugin synchronises.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Event {
    /// # Safety
    /// `raw` is an event of this client that nobody else will destroy.
    pub(super) unsafe fn new(raw: NonNull<RawEvent>, client: &Client) -> Self {
        Self { inner: Arc::new(Inner { raw, signal: OnceLock::new(), client: client.clone() }) }
    }

    /// Whether it is over, well or not. Never blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) if the plugin cannot say.
    pub fn is_ready(&self) -> Result<bool> {
        let args = EventIsReady { event: self.raw(), ..Zeroable::zeroed() };
        // SAFETY: the event lives as long as `self`.
        self.checked(unsafe { self.inner.client.api().call(args) }).map(|args| args.is_ready != 0)
    }

    /// Tells how it ended, with [`ErrorKind::Device`](crate::ErrorKind::Device) if badly; `None` while it has not. Never blocks.
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

    /// Blocks until it is over.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) with what went wrong in the background.
    pub fn wait(&self) -> Result<()> {
        let args = EventAwait { event: self.raw(), ..Zeroable::zeroed() };
        // SAFETY: the event lives as long as `self`.
        self.checked(unsafe { self.inner.client.api().call(args) }).map(drop)
    }

    /// Blocks until it is over, but no longer than `patience`: `false` if it is not.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, patience: Duration) -> Result<bool> {
        if let Some(outcome) = self.outcome() {
            return outcome.map(|()| true);
        }
        let signal = match self.inner.signal.get() {
            Some(signal) => signal.clone(),
            None => self.new_signal()?,
        };
        if signal.wait(patience) { self.wait().map(|()| true) } else { Ok(false) }
    }

    fn new_signal(&self) -> Result<Arc<Signal>> {
        let signal = Arc::new(Signal::default());
        let given = signal.clone();
        self.on_ready(move |_| given.set())?;
        // Another thread may have been first; both signals will be set.
        let _ = self.inner.signal.set(signal.clone());
        Ok(signal)
    }

    /// Calls `f` with the outcome once it is over: at once on this thread if it is already, else on a thread of the
    /// plugin. It should be short, wait for nothing and take no lock that is held around calls of this module. A panic
    /// in it ends the process.
    ///
    /// If the plugin never gets there, neither `f` nor what it holds is ever dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) if the plugin refuses; then `f` was dropped.
    pub fn on_ready(&self, f: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let callback = Box::new(Registered { event: self.clone(), call: Box::new(f) });
        let argument = Box::into_raw(callback);
        let args =
            EventOnReady { event: self.raw(), callback: Some(fire), argument: argument.cast(), ..Zeroable::zeroed() };
        // SAFETY: the event is alive, and stays so: the argument holds it until `fire` was called.
        self.checked(unsafe { self.inner.client.api().call(args) }).map(drop).inspect_err(|_| {
            // SAFETY: a plugin that refuses does not call back, so nobody else has the argument.
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

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("is_ready", &self.is_ready().ok()).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let args = EventDestroy { event: self.raw.as_ptr(), ..Zeroable::zeroed() };
        // SAFETY: nobody has the event any more. That it cannot be destroyed would change nothing.
        let _ = unsafe { self.client.api().call(args) };
    }
}

struct Registered {
    event: Event,
    call: Box<dyn FnOnce(Result<()>) + Send>,
}

/// The function that the plugin calls.
///
/// # Safety
/// `argument` is what `on_ready` gave, once; `error` is null or belongs to the callee.
unsafe extern "C" fn fire(error: *mut RawError, argument: *mut c_void) {
    // SAFETY: it is the box that `on_ready` took apart, and this is the one call that gets it.
    let Registered { event, call } = *unsafe { Box::from_raw(argument.cast::<Registered>()) };
    callback::inside(move || {
        call(outcome(&event, error));
        drop(event);
    });
}

fn outcome(event: &Event, error: *mut RawError) -> Result<()> {
    let Some(error) = NonNull::new(error) else { return Ok(()) };
    let api = event.inner.client.api();
    // SAFETY: the error is the callee's (`fire`), and not used again.
    let failure = unsafe { api.failure("an event", error) };
    Err(api.error(&failure))
}

/// Set once; waited for any number of times.
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

/// Waits for all of `events`, `patience` in total.
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
