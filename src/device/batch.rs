//! Batches on devices.

use std::time::Duration;

use super::buffer::DeviceBuffer;
use super::event::{Event, wait_all};
use crate::element::{DType, Name};
use crate::error::{Error, Result};

/// A batch on its way to devices, or there.
///
/// It is handed out before its transfers are over: computations that are started on its buffers wait by themselves.
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
    /// Its place in the stream, from 0.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The array of that name; inside a tree, `left/tokens`.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) that lists the names there are.
    pub fn array(&self, name: &str) -> Result<&DeviceArray> {
        let found = self.columns.iter().find(|(column, _)| column == name);
        found.map(|(_, array)| array).ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
            Error::data(format!("no array {name:?}; the batch has {}", names.join(", "))).index(self.index)
        })
    }

    /// Names and arrays, in the order of the batch.
    pub fn arrays(&self) -> impl ExactSizeIterator<Item = (&str, &DeviceArray)> {
        self.columns.iter().map(|(name, array)| (name.as_str(), array))
    }

    /// The events of all transfers.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.columns.iter().flat_map(|(_, array)| &array.ready)
    }

    /// Bytes on all devices together.
    pub fn nbytes(&self) -> usize {
        self.columns.iter().flat_map(|(_, array)| &array.shards).map(DeviceBuffer::nbytes).sum()
    }

    /// Blocks until all of it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Device`](crate::ErrorKind::Device), with the batch's index, for a transfer that failed or is not over after
    /// `patience`.
    pub fn wait(&self, patience: Duration) -> Result<()> {
        wait_all(self.events(), patience).map_err(|error| error.index(self.index))
    }
}

impl DeviceArray {
    /// The number type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions of the whole, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The part on each device, in the order of the placement.
    pub fn shards(&self) -> &[DeviceBuffer] {
        &self.shards
    }

    /// The part on the first device: all of it where there is only one.
    pub fn buffer(&self) -> &DeviceBuffer {
        &self.shards[0]
    }
}
