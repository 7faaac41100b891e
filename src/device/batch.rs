//! Batches on devices.

use std::time::Duration;

use super::buffer::DeviceBuffer;
use super::event::{Event, wait_all};
use crate::element::{DType, Name};
use crate::error::{Error, Result};

/// A batch in device memory, or in transfer to it.
///
/// Batches are handed out before their transfers complete. Computations started on the buffers wait for the transfers.
#[derive(Debug)]
pub struct DeviceBatch {
    pub(super) index: u64,
    pub(super) columns: Vec<(Name, DeviceArray)>,
}

/// An array of a batch: a buffer on each device of the placement.
#[derive(Debug)]
pub struct DeviceArray {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    pub(super) shards: Vec<DeviceBuffer>,
    pub(super) ready: Vec<Event>,
}

impl DeviceBatch {
    /// Returns the position of the batch in the stream, from 0.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Returns the array `name`; inside a tree, the name is a path such as `left/tokens`.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) that lists the existing names.
    pub fn array(&self, name: &str) -> Result<&DeviceArray> {
        let found = self.columns.iter().find(|(column, _)| column == name);
        found.map(|(_, array)| array).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
            Error::data(format!("no array {name:?}; the batch has {}", names.join(", "))).index(self.index)
        })
    }

    /// Iterates over names and arrays, in the order of the batch.
    pub fn arrays(&self) -> impl ExactSizeIterator<Item = (&str, &DeviceArray)> {
        self.columns.iter().map(|(name, array)| (name.as_str(), array))
    }

    /// Iterates over the events of all transfers.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.columns.iter().flat_map(|(_, array)| &array.ready)
    }

    /// Returns the total bytes on all devices.
    pub fn nbytes(&self) -> usize {
        self.columns.iter().flat_map(|(_, array)| &array.shards).map(DeviceBuffer::nbytes).sum()
    }

    /// Blocks until all transfers of the batch are complete.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device), with the index of the batch, if a transfer failed or is not
    /// complete after `patience`.
    pub fn wait(&self, patience: Duration) -> Result<()> {
        wait_all(self.events(), patience).map_err(|error| error.index(self.index))
    }
}

impl DeviceArray {
    /// Returns the number type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the dimensions of the whole array, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the part on each device, in the order of the placement.
    pub fn shards(&self) -> &[DeviceBuffer] {
        &self.shards
    }

    /// Returns the part on the first device, which is the whole array if the placement has a single device.
    pub fn buffer(&self) -> &DeviceBuffer {
        &self.shards[0]
    }
}
