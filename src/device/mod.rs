//! Accelerators through the PJRT C API, which TPUs, GPUs and XLA's CPU support. Batches are in device memory before the
//! step that needs them.
//!
//! A [`Plugin`] is loaded from a shared library and creates a [`Client`] for its [`Device`]s. [`DevicePut`] sends the
//! batches of a loader to a [`Placement`] ahead of time. Their [`DeviceBuffer`]s are arguments of an [`Executable`].
//! [`Event`]s report the completion of background work.
//!
//! Supports versions 0.57 and later 0.x of the API. Tested on Linux.

mod abi;
mod batch;
mod buffer;
mod callback;
mod client;
mod discover;
mod event;
mod executable;
mod host;
mod in_flight;
mod memory;
mod options;
mod placement;
mod plugin;
mod put;
mod recycle;
mod slots;
mod staging;
#[cfg(test)]
mod tests;

pub use batch::{DeviceArray, DeviceBatch};
pub use buffer::DeviceBuffer;
pub use client::{Client, ClientOption, Device};
pub use discover::{FoundPlugin, discover, site_packages};
pub use event::Event;
pub use executable::Executable;
pub use options::PutOptions;
pub use placement::Placement;
pub use plugin::Plugin;
pub use put::{DevicePut, PutStats};
pub use recycle::keep_freed_memory;
pub use staging::Staging;
pub(crate) use staging::arrays;
