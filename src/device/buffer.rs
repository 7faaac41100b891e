//! Arrays on a device.
#![expect(unsafe_code, reason = "the plugin reads the host's memory, and owns the device's")]

use std::ptr::NonNull;

use bytemuck::Zeroable;

use super::abi::*;
use super::client::{Client, Device};
use super::event::Event;
use super::host::HostBytes;
use crate::element::{Array, BufferMut, DType};
use crate::error::{Error, ErrorKind, Result};

/// An array in device memory, or in transfer to it. Dropping the buffer frees the memory.
///
/// Computations may be started on the buffer immediately. They wait for its transfer.
pub struct DeviceBuffer {
    raw: NonNull<RawBuffer>,
    dtype: DType,
    shape: Vec<usize>,
    client: Client,
}

// SAFETY: buffers are used from any thread, and the plugin synchronises.
unsafe impl Send for DeviceBuffer {}
// SAFETY: as above.
unsafe impl Sync for DeviceBuffer {}

/// A host array to send.
pub(super) struct Transfer<'a> {
    pub(super) dtype: DType,
    pub(super) shape: &'a [usize],
    pub(super) host: HostBytes,
    pub(super) semantics: Semantics,
}

impl Device {
    /// Starts a copy of `array` to the device. Keeps the host memory until the plugin has read it.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) with the plugin's message, such as exhausted device memory.
    pub fn put(&self, array: &Array) -> Result<DeviceBuffer> {
        let host = HostBytes::shared(array.buffer());
        let semantics = Semantics::UntilTransferCompletes;
        self.send(Transfer { dtype: array.dtype(), shape: array.shape(), host, semantics }, Release::WhenDone, drop)
    }

    /// Starts a transfer. Keeps the host memory until the plugin reports that it is no longer needed, then calls `done`
    /// with the outcome, on any thread.
    pub(super) fn send(
        &self,
        transfer: Transfer<'_>,
        release: Release,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<DeviceBuffer> {
        let Transfer { dtype, shape, host, semantics } = transfer;
        let dims = dims(dtype, shape, host.bytes().len())?;
        let client = self.client();
        let args = BufferFromHostBuffer {
            client: client.raw(),
            data: host.bytes().as_ptr().cast(),
            buffer_type: buffer_type(dtype),
            dims: dims.as_ptr(),
            dims_len: dims.len(),
            semantics: semantics as i32,
            device: self.raw(),
            ..Zeroable::zeroed()
        };
        // SAFETY: the length matches dtype and shape, checked by `dims`. The bytes neither move nor change while `host`
        // lives, and `keep` holds `host` until the plugin is done with them.
        let sent = unsafe { client.api().call(args) }.map_err(|failure| client.error(failure))?;
        let nothing = || client.gave_nothing("PJRT_Client_BufferFromHostBuffer");
        // Wrapped first, so that the buffer is freed on every path.
        let shape = shape.to_vec();
        let buffer = NonNull::new(sent.buffer).map(|raw| DeviceBuffer { raw, dtype, shape, client: client.clone() });
        match NonNull::new(sent.done_with_host_buffer) {
            // SAFETY: the call returned this event, and its caller owns the event.
            Some(event) => keep(host, &unsafe { Event::new(event, client) }, release, done),
            None => {
                // Without an event, there is no signal that the plugin has read the memory.
                std::mem::forget(host);
                return Err(nothing());
            }
        }
        buffer.ok_or_else(nothing)
    }
}

/// The time at which the host memory is released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Release {
    /// After the plugin is done with the memory.
    #[default]
    WhenDone,
    /// Right after the call: a deliberate bug that the race test must find.
    #[cfg(test)]
    TooEarly,
}

/// Keeps `host` until `event` is ready, then calls `done` with the outcome.
fn keep(host: HostBytes, event: &Event, release: Release, done: impl FnOnce(Result<()>) + Send + 'static) {
    match release {
        Release::WhenDone => {}
        #[cfg(test)]
        Release::TooEarly => return,
    }
    if let Some(outcome) = event.outcome() {
        drop(host);
        return done(outcome);
    }
    let held = host.clone();
    let registered = event.on_ready(move |outcome| {
        drop(held);
        done(outcome);
    });
    if registered.is_err() && event.wait().is_err() && !matches!(event.is_ready(), Ok(true)) {
        // The plugin may still read the memory.
        std::mem::forget(host);
    }
}

/// Converts the shape for the plugin, if it needs exactly `len` bytes. The plugin does not check the length.
fn dims(dtype: DType, shape: &[usize], len: usize) -> Result<Vec<i64>> {
    let need = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d));
    let dims = shape.iter().map(|&d| i64::try_from(d).ok()).collect::<Option<Vec<_>>>();
    match dims {
        Some(dims) if need == Some(len) => Ok(dims),
        _ => Err(Error::data(format!("a transfer of {dtype}{shape:?} needs {need:?} bytes, got {len}"))),
    }
}

/// Converts the shape that a plugin reports for a buffer, if its size in bytes fits in `isize`. Reads allocate this
/// size.
fn shape(dtype: DType, dims: &[i64]) -> Result<Vec<usize>> {
    let shape = dims.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<Vec<_>>>();
    // Skips dimensions of 0, so that later products of any dimensions fit too.
    let fits = |shape: &Vec<usize>| {
        let bytes = shape.iter().filter(|&&d| d > 0).try_fold(dtype.size(), |n, &d| n.checked_mul(d));
        bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok())
    };
    let impossible = || Error::new(ErrorKind::Device, format!("a device buffer of {dtype}{dims:?} cannot be"));
    shape.filter(fits).ok_or_else(impossible)
}

impl DeviceBuffer {
    /// Takes ownership of a buffer that a computation returned.
    ///
    /// # Safety
    /// `raw` must be a buffer of this client without another owner.
    pub(super) unsafe fn adopt(raw: NonNull<RawBuffer>, client: &Client) -> Result<Self> {
        let mut buffer = Self { raw, dtype: DType::U8, shape: Vec::new(), client: client.clone() };
        // SAFETY: the only pointer is the buffer.
        let said = unsafe { buffer.call(BufferElementType { buffer: raw.as_ptr(), ..Zeroable::zeroed() }) }?;
        let kind = said.buffer_type;
        let unknown = || Error::unsupported(format!("a device buffer of PJRT's type {kind}, which no dtype here is"));
        buffer.dtype = dtype_of(kind).ok_or_else(unknown)?;
        // SAFETY: the only pointer is the buffer.
        let said = unsafe { buffer.call(BufferDimensions { buffer: raw.as_ptr(), ..Zeroable::zeroed() }) }?;
        if said.dims_len > 0 && !said.dims.is_null() {
            // SAFETY: the plugin reported address and length of the dimensions, which live as long as the buffer.
            let dims = unsafe { std::slice::from_raw_parts(said.dims, said.dims_len) };
            buffer.shape = shape(buffer.dtype, dims)?;
        }
        Ok(buffer)
    }

    /// Returns the number type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the dimensions, outermost first; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the size of the numbers in bytes.
    pub fn nbytes(&self) -> usize {
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product::<usize>() * self.dtype.size() }
    }

    /// Returns the client of the device.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the event that is ready once the buffer is complete: its transfer, or the computation that produces it.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) if the plugin returns no event.
    pub fn ready(&self) -> Result<Event> {
        // SAFETY: the only pointer is the buffer.
        let said = unsafe { self.call(BufferReadyEvent { buffer: self.raw(), ..Zeroable::zeroed() }) }?;
        let event = NonNull::new(said.event).ok_or_else(|| self.client.gave_nothing("PJRT_Buffer_ReadyEvent"))?;
        // SAFETY: the call returned this event, and its caller owns the event.
        Ok(unsafe { Event::new(event, &self.client) })
    }

    /// Copies the numbers to the host. Blocks until the buffer and the copy are complete.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) if the transfer, the computation or this copy failed.
    pub fn to_array(&self) -> Result<Array> {
        let mut target = BufferMut::zeroed(self.nbytes());
        // Row-major, regardless of the device's layout.
        let minor_to_major: Vec<i64> = (0..self.shape.len() as i64).rev().collect();
        let mut layout = MemoryLayout { struct_size: size_of::<MemoryLayout>(), ..Zeroable::zeroed() };
        layout.tiled.struct_size = size_of::<Tiled>();
        layout.tiled.minor_to_major = minor_to_major.as_ptr();
        layout.tiled.minor_to_major_len = minor_to_major.len();
        let args = BufferToHostBuffer {
            buffer: self.raw(),
            layout: &raw const layout,
            target: target.as_mut_bytes().as_mut_ptr().cast(),
            target_len: self.nbytes(),
            ..Zeroable::zeroed()
        };
        // SAFETY: the layout lives through the call. The target has the declared length and lives until the event is
        // ready.
        let read = unsafe { self.call(args) }?;
        let event = NonNull::new(read.event).ok_or_else(|| self.client.gave_nothing("PJRT_Buffer_ToHostBuffer"))?;
        // SAFETY: the call returned this event, and its caller owns the event.
        unsafe { Event::new(event, &self.client) }.wait()?;
        Array::new(self.dtype, &self.shape, target.freeze())
    }

    /// Returns the address of the buffer: in host memory for a CPU, in device memory otherwise. For inspection, not for
    /// reads.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device) if the plugin does not report addresses.
    pub fn address(&self) -> Result<usize> {
        // SAFETY: the only pointer is the buffer.
        Ok(unsafe { self.call(BufferUnsafePointer { buffer: self.raw(), ..Zeroable::zeroed() }) }?.address)
    }

    pub(super) fn raw(&self) -> *mut RawBuffer {
        self.raw.as_ptr()
    }

    /// Calls a function that takes this buffer.
    ///
    /// # Safety
    /// All other memory that `args` point to must stay valid through the call, and until any event that the call
    /// returns.
    unsafe fn call<A: Args>(&self, args: A) -> Result<A> {
        // SAFETY: the buffer lives as long as `self`. The caller guarantees the rest.
        unsafe { self.client.api().call(args) }.map_err(|failure| self.client.error(failure))
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let args = BufferDestroy { buffer: self.raw(), ..Zeroable::zeroed() };
        // SAFETY: the buffer is not used again, and the plugin tracks pending uses. A failure changes nothing.
        let _ = unsafe { self.client.api().call(args) };
    }
}

debug_as!(DeviceBuffer, |self, f| {
    write!(f, "DeviceBuffer({}{:?} on {})", self.dtype, self.shape, self.client.platform())
});
