//! Plugins: shared libraries that speak PJRT.
#![expect(unsafe_code, reason = "a library of somebody else is loaded and asked for its table")]

use std::ffi::c_void;
use std::fmt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Mutex;

use bytemuck::Zeroable;

use super::abi::{Api, PluginInitialize};
use super::client::{Client, ClientOption};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// A loaded plugin: the driver of one kind of accelerator. Copies are the same plugin.
///
/// It stays loaded until the process ends: its threads outlive every client.
///
/// # Fork
/// Threads of a plugin do not survive a fork. In a fork of the process that loaded it, whatever calls the plugin is an error of
/// kind [`ErrorKind::Worker`], and clients, buffers, events and programs are dropped without a call.
#[derive(Clone, Copy)]
pub struct Plugin {
    api: &'static Api,
}

/// All that are loaded; each was initialised once.
static LOADED: Mutex<Vec<&'static Api>> = Mutex::new(Vec::new());

impl Plugin {
    /// Loads the plugin at `path`, checks its version and initialises it, once in a process however often this is called.
    ///
    /// # The user's part
    /// The file is code, and it runs in this process with all of its rights: load only what you trust.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] for a file that cannot be loaded; [`ErrorKind::Unsupported`] for one that is no PJRT plugin, and for
    /// versions other than 0.57 to 0.x; [`ErrorKind::Device`] if it does not initialise; [`ErrorKind::Worker`] in a fork of a
    /// process that has loaded it. They name the path.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let table = table_of(path)?;
        let mut loaded = LOADED.locked();
        if let Some(api) = loaded.iter().find(|api| api.is(table)) {
            return api.check_process().map(|()| Self { api });
        }
        // SAFETY: the library just gave the table, and is never unloaded.
        let api = unsafe { Api::new(table, path) }?;
        // SAFETY: the function takes nothing but the size, and is called before any other.
        unsafe { api.call(PluginInitialize::zeroed()) }.map_err(|failure| api.error(&failure))?;
        let api = Box::leak(Box::new(api));
        loaded.push(api);
        Ok(Self { api })
    }

    /// The file it was loaded from first.
    pub fn path(&self) -> &Path {
        self.api.path()
    }

    /// Major and minor version of its PJRT API.
    pub fn version(&self) -> (i32, i32) {
        self.api.version()
    }

    /// A client of the devices that the plugin finds.
    ///
    /// # Errors
    /// As [`client_with`](Self::client_with).
    pub fn client(&self) -> Result<Client> {
        self.client_with(&[])
    }

    /// The same with options, which are the plugin's own: XLA's CPU plugins know `cpu_device_count`, an integer.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] with what the plugin said: most say so where they find no device or do not know an option.
    pub fn client_with(&self, options: &[(&str, ClientOption<'_>)]) -> Result<Client> {
        Client::new(self.api, options)
    }
}

/// Loads the library for good, and asks for its table.
fn table_of(path: &Path) -> Result<NonNull<c_void>> {
    if let Err(error) = std::fs::metadata(path) {
        return Err(Error::io(error, path));
    }
    // SAFETY: that its code may run is the user's part, stated at `load`.
    let library = unsafe { libloading::Library::new(path) }.map_err(|e| {
        Error::new(ErrorKind::Io, format!("cannot be loaded: {}", root_cause(&e))).path(path).caused_by(e)
    })?;
    // Its threads and callbacks may run at any time from now on.
    let library = std::mem::ManuallyDrop::new(library);
    type GetPjrtApi = unsafe extern "C" fn() -> *mut c_void;
    // SAFETY: the function of this name has this type in every plugin.
    let function = unsafe { library.get::<GetPjrtApi>(c"GetPjrtApi") }
        .map_err(|_| Error::unsupported("is no PJRT plugin: it has no function GetPjrtApi").path(path))?;
    // SAFETY: it takes nothing, and may be called at any time.
    NonNull::new(unsafe { function() })
        .ok_or_else(|| Error::new(ErrorKind::Device, "GetPjrtApi gave no table of functions").path(path))
}

fn root_cause(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |e| e.source()).last().map_or_else(String::new, ToString::to_string)
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plugin({:?})", self.api)
    }
}
