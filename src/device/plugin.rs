//! Plugins: shared libraries that implement PJRT.
#![expect(unsafe_code, reason = "an external library is loaded, and its table is read")]

use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Mutex;

use bytemuck::Zeroable;

use super::abi::{Api, PluginInitialize};
use super::client::{Client, ClientOption};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// A loaded plugin: the driver for a kind of accelerator. Copies refer to one plugin.
///
/// Plugins stay loaded until the process ends, because their threads outlive every client.
///
/// # Fork
/// Threads of a plugin do not survive a fork. In a fork of the loading process, calls of the plugin fail with
/// [`ErrorKind::Worker`], and clients, buffers, events and programs are dropped without a call.
#[derive(Clone, Copy)]
pub struct Plugin {
    api: &'static Api,
}

/// All loaded plugins, each initialised once.
static LOADED: Mutex<Vec<&'static Api>> = Mutex::new(Vec::new());

impl Plugin {
    /// Loads the plugin at `path`, checks its version and initialises it, once per process. Later calls return the
    /// loaded plugin.
    ///
    /// # The user's part
    /// The file contains code that runs in this process with all of its rights. Load only trusted files.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be loaded; [`ErrorKind::Unsupported`] if it is not a PJRT plugin, or if its
    /// version is not 0.57 or a later 0.x; [`ErrorKind::Device`] if its initialisation fails; [`ErrorKind::Worker`] in
    /// a fork of the loading process. All errors contain the path.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let table = table_of(path)?;
        let mut loaded = LOADED.locked();
        if let Some(api) = loaded.iter().find(|api| api.is(table)) {
            return api.check_process().map(|()| Self { api });
        }
        // SAFETY: the library returned the table and is never unloaded.
        let api = unsafe { Api::new(table, path) }?;
        // SAFETY: the arguments contain no pointer, and this is the first call of the plugin.
        unsafe { api.call(PluginInitialize::zeroed()) }.map_err(|failure| api.error(&failure))?;
        let api = Box::leak(Box::new(api));
        loaded.push(api);
        Ok(Self { api })
    }

    /// Returns the path of the first load.
    pub fn path(&self) -> &Path {
        self.api.path()
    }

    /// Returns the major and minor version of the plugin's PJRT API.
    pub fn version(&self) -> (i32, i32) {
        self.api.version()
    }

    /// Creates a client for the devices that the plugin finds.
    ///
    /// # Errors
    /// Fails like [`client_with`](Self::client_with).
    pub fn client(&self) -> Result<Client> {
        self.client_with(&[])
    }

    /// Creates a client with options, which depend on the plugin. XLA's CPU plugins accept `cpu_device_count`, an
    /// integer.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] with the plugin's message. Most plugins fail if they find no device or an unknown option.
    pub fn client_with(&self, options: &[(&str, ClientOption<'_>)]) -> Result<Client> {
        Client::new(self.api, options)
    }
}

/// Loads the library permanently and returns its function table.
fn table_of(path: &Path) -> Result<NonNull<c_void>> {
    if let Err(error) = std::fs::metadata(path) {
        return Err(Error::io(error, path));
    }
    // SAFETY: the user allows the library's code to run, as documented at `load`.
    let library = unsafe { libloading::Library::new(path) }.map_err(|e| {
        Error::new(ErrorKind::Io, format!("cannot be loaded: {}", root_cause(&e))).path(path).caused_by(e)
    })?;
    // The threads and callbacks of the library may run at any time from now on.
    let library = std::mem::ManuallyDrop::new(library);
    type GetPjrtApi = unsafe extern "C" fn() -> *mut c_void;
    // SAFETY: the function of this name has this type in every plugin.
    let function = unsafe { library.get::<GetPjrtApi>(c"GetPjrtApi") }
        .map_err(|_| Error::unsupported("is not a PJRT plugin: it has no function GetPjrtApi").path(path))?;
    // SAFETY: the function has no arguments and may be called at any time.
    NonNull::new(unsafe { function() })
        .ok_or_else(|| Error::new(ErrorKind::Device, "GetPjrtApi gave no table of functions").path(path))
}

fn root_cause(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |e| e.source()).last().map_or_else(String::new, ToString::to_string)
}

debug_as!(Plugin, |self, f| write!(f, "Plugin({:?})", self.api));
