//! Accelerators, by the PJRT C API that TPUs, GPUs and XLA's CPU speak: batches in their memory before the step that needs
//! them.
//!
//! A [`Plugin`] is loaded from a shared library and gives a [`Client`] of its [`Device`]s. [`DevicePut`] sends a loader's
//! batches to a [`Placement`] ahead of time; their [`DeviceBuffer`]s are arguments of an [`Executable`]. What happens in the
//! background has [`Event`]s.
//!
//! Versions 0.57 and later of the API work; Linux is where it is tested.

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
