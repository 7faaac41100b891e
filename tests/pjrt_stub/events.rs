//! Events.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex};

use crate::checked;
use crate::status::{Error, fail};

type Callback = unsafe extern "C" fn(*mut Error, *mut c_void);

/// What an event and the work behind it share.
#[derive(Default)]
pub struct Promise {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Once it is over: nothing, or what went wrong.
    outcome: Option<Option<String>>,
    callbacks: Vec<(Callback, usize)>,
}

impl Promise {
    pub fn set(&self, error: Option<&str>) {
        let mut state = self.state.lock().unwrap();
        if state.outcome.is_some() {
            return;
        }
        state.outcome = Some(error.map(str::to_owned));
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.changed.notify_all();
        for (callback, argument) in callbacks {
            // SAFETY: it was registered with this argument, and is called once.
            unsafe { callback(as_error(error), argument as *mut c_void) };
        }
    }

    /// Blocks until it is over; then what went wrong.
    pub fn wait(&self) -> Option<String> {
        let state = self.changed.wait_while(self.state.lock().unwrap(), |state| state.outcome.is_none()).unwrap();
        state.outcome.clone().flatten()
    }
}

fn as_error(error: Option<&str>) -> *mut Error {
    error.map_or(std::ptr::null_mut(), |message| fail(13, message))
}

pub struct Event(Arc<Promise>);

pub fn event(promise: &Arc<Promise>) -> *mut Event {
    Box::into_raw(Box::new(Event(promise.clone())))
}

#[repr(C)]
pub struct Args {
    size: usize,
    extensions: *const c_void,
    event: *mut Event,
}

pub unsafe extern "C" fn destroy(args: *mut Args) -> *mut Error {
    let args = checked!(args, "PJRT_Event_Destroy_Args", 24);
    // SAFETY: it came from `event`, and is not used again.
    drop(unsafe { Box::from_raw(args.event) });
    std::ptr::null_mut()
}

#[repr(C)]
pub struct IsReadyArgs {
    size: usize,
    extensions: *const c_void,
    event: *mut Event,
    is_ready: bool,
}

pub unsafe extern "C" fn is_ready(args: *mut IsReadyArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Event_IsReady_Args", 25);
    // SAFETY: a live event.
    args.is_ready = unsafe { &*args.event }.0.state.lock().unwrap().outcome.is_some();
    std::ptr::null_mut()
}

pub unsafe extern "C" fn error(args: *mut Args) -> *mut Error {
    let args = checked!(args, "PJRT_Event_Error_Args", 24);
    // SAFETY: a live event.
    match unsafe { &*args.event }.0.state.lock().unwrap().outcome.as_ref() {
        Some(outcome) => as_error(outcome.as_deref()),
        None => fail(9, "the event is not ready"),
    }
}

pub unsafe extern "C" fn wait(args: *mut Args) -> *mut Error {
    let args = checked!(args, "PJRT_Event_Await_Args", 24);
    // SAFETY: a live event.
    as_error(unsafe { &*args.event }.0.wait().as_deref())
}

#[repr(C)]
pub struct OnReadyArgs {
    size: usize,
    extensions: *const c_void,
    event: *mut Event,
    callback: Callback,
    argument: *mut c_void,
}

pub unsafe extern "C" fn on_ready(args: *mut OnReadyArgs) -> *mut Error {
    let args = checked!(args, "PJRT_Event_OnReady_Args", 40);
    // SAFETY: a live event.
    let mut state = unsafe { &*args.event }.0.state.lock().unwrap();
    match state.outcome.clone() {
        None => state.callbacks.push((args.callback, args.argument as usize)),
        Some(outcome) => {
            drop(state);
            // SAFETY: it is called once.
            unsafe { (args.callback)(as_error(outcome.as_deref()), args.argument) };
        }
    }
    std::ptr::null_mut()
}
