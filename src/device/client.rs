//! Clients and their devices.
#![expect(unsafe_code, reason = "clients and devices are the plugin's objects")]

use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Zeroable;

use super::abi::*;
use super::callback;
use crate::error::{Error, ErrorKind, Result};

/// The value of a client option; see [`Plugin::client_with`](super::Plugin::client_with).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientOption<'a> {
    /// Text.
    Str(&'a str),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f32),
    /// True or false.
    Bool(bool),
}

/// A plugin's connection to its devices. Clones share the connection, which closes when the last clone, device and
/// buffer are dropped.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    api: &'static Api,
    raw: Raw,
    platform: String,
    devices: Vec<DeviceInfo>,
}

/// A raw client, destroyed with its last user.
struct Raw(NonNull<RawClient>);

struct DeviceInfo {
    raw: NonNull<RawDevice>,
    id: i32,
    kind: String,
}

// SAFETY: clients are used from any thread, and the plugin synchronises.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}
// SAFETY: devices belong to the client, live as long as the client, and are used from any thread.
unsafe impl Send for DeviceInfo {}
// SAFETY: as above.
unsafe impl Sync for DeviceInfo {}

impl Client {
    pub(super) fn new(api: &'static Api, options: &[(&str, ClientOption<'_>)]) -> Result<Self> {
        let options: Vec<NamedValue> = options.iter().map(|(name, value)| named(name, value)).collect();
        let args = ClientCreate { options: options.as_ptr(), options_len: options.len(), ..Zeroable::zeroed() };
        // SAFETY: the options have the declared length and live through the call.
        let created = unsafe { api.call(args) }.map_err(|failure| api.error(&failure))?;
        let raw = NonNull::new(created.client).ok_or_else(|| nothing(api, "PJRT_Client_Create"))?;
        let mut inner = Inner { api, raw: Raw(raw), platform: String::new(), devices: Vec::new() };
        inner.platform = inner.read_platform().map_err(|failure| api.error(&failure))?;
        inner.devices = inner.read_devices().map_err(|failure| api.error(&failure))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the platform name from the plugin: `cpu`, `cuda`, `tpu`.
    pub fn platform(&self) -> &str {
        &self.inner.platform
    }

    /// Returns the path of the plugin.
    pub fn plugin_path(&self) -> &Path {
        self.inner.api.path()
    }

    /// Returns the devices that this process can send to, in the plugin's order.
    pub fn devices(&self) -> Vec<Device> {
        (0..self.inner.devices.len()).map(|index| Device { client: self.clone(), index }).collect()
    }

    /// Returns the device at `index` of [`devices`](Self::devices).
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if `index` is out of range.
    pub fn device(&self, index: usize) -> Result<Device> {
        let count = self.inner.devices.len();
        if index >= count {
            let message = format!("no device {index}: the client of platform {} has {count}", self.platform());
            return Err(Error::config(message).path(self.plugin_path()));
        }
        Ok(Device { client: self.clone(), index })
    }

    pub(super) fn api(&self) -> &'static Api {
        self.inner.api
    }

    pub(super) fn raw(&self) -> *mut RawClient {
        self.inner.raw.0.as_ptr()
    }

    pub(super) fn error(&self, failure: Failure) -> Error {
        self.inner.api.error(&failure)
    }

    /// Makes the error for a successful call that returned no object, which violates the API.
    #[cold]
    pub(super) fn gave_nothing(&self, call: &str) -> Error {
        nothing(self.inner.api, call)
    }

    /// Returns true if both are clones of a single client.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

#[cold]
fn nothing(api: &Api, call: &str) -> Error {
    Error::new(ErrorKind::Device, format!("{call} reported success but returned nothing")).path(api.path())
}

impl Inner {
    fn read_platform(&self) -> Result<String, Failure> {
        let args = ClientPlatformName { client: self.raw.0.as_ptr(), ..Zeroable::zeroed() };
        // SAFETY: the client is alive.
        let said = unsafe { self.api.call(args) }?;
        // SAFETY: the text lives as long as the client.
        Ok(unsafe { text(said.name, said.name_len) })
    }

    fn read_devices(&self) -> Result<Vec<DeviceInfo>, Failure> {
        let args = ClientAddressableDevices { client: self.raw.0.as_ptr(), ..Zeroable::zeroed() };
        // SAFETY: the client is alive.
        let said = unsafe { self.api.call(args) }?;
        if said.devices.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the list lives as long as the client.
        let devices = unsafe { std::slice::from_raw_parts(said.devices, said.devices_len) };
        devices.iter().filter_map(|device| NonNull::new(*device)).map(|raw| self.describe(raw)).collect()
    }

    fn describe(&self, raw: NonNull<RawDevice>) -> Result<DeviceInfo, Failure> {
        let device = raw.as_ptr();
        // SAFETY: devices and their descriptions live as long as the client.
        let described = unsafe { self.api.call(DeviceGetDescription { device, ..Zeroable::zeroed() }) }?;
        let description = described.description;
        // SAFETY: as above.
        let id = unsafe { self.api.call(DescriptionId { description, ..Zeroable::zeroed() }) }?.id;
        // SAFETY: as above.
        let kind = unsafe { self.api.call(DescriptionKind { description, ..Zeroable::zeroed() }) }?;
        // SAFETY: the text lives as long as the description.
        let kind = unsafe { text(kind.kind, kind.kind_len) };
        Ok(DeviceInfo { raw, id, kind })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (api, raw) = (self.api, Raw(self.raw.0));
        // Destroying a client waits for its threads.
        callback::outside(move || destroy(api, raw));
    }
}

fn destroy(api: &Api, raw: Raw) {
    // SAFETY: all objects of the client hold the client, so none is left. A failure changes nothing.
    let _ = unsafe { api.call(ClientDestroy { client: raw.0.as_ptr(), ..Zeroable::zeroed() }) };
}

fn named(name: &str, value: &ClientOption<'_>) -> NamedValue {
    let (kind, value, value_len) = match *value {
        ClientOption::Str(text) => (named::STRING, text.as_ptr() as u64, text.len()),
        ClientOption::Int(number) => (named::INT64, number as u64, 1),
        ClientOption::Float(number) => (named::FLOAT, number.to_bits().into(), 1),
        ClientOption::Bool(yes) => (named::BOOL, yes.into(), 1),
    };
    NamedValue {
        struct_size: size_of::<NamedValue>(),
        extensions: std::ptr::null_mut::<c_void>(),
        name: name.as_ptr(),
        name_len: name.len(),
        kind,
        value,
        value_len,
    }
}

debug_as!(Client, |self, f| {
    write!(f, "Client({}, {} devices of {:?})", self.platform(), self.inner.devices.len(), self.inner.api)
});

/// An accelerator. Clones refer to one device.
#[derive(Clone)]
pub struct Device {
    client: Client,
    index: usize,
}

impl Device {
    /// Returns the id that the plugin assigned to the device.
    pub fn id(&self) -> i32 {
        self.info().id
    }

    /// Returns the kind of device, as named by the plugin.
    pub fn kind(&self) -> &str {
        &self.info().kind
    }

    /// Returns the client of the device.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn raw(&self) -> *mut RawDevice {
        self.info().raw.as_ptr()
    }

    fn info(&self) -> &DeviceInfo {
        &self.client.inner.devices[self.index]
    }
}

debug_as!(Device, |self, f| write!(f, "Device({} {}, {})", self.client.platform(), self.id(), self.kind()));
