//! Placements of batches: devices, and the part of a batch for each device.

use std::ops::Range;

use super::client::{Client, Device};
use crate::element::Array;
use crate::error::{Error, Result};

/// The target devices of batches, and the part for each device.
#[derive(Clone, Debug)]
pub struct Placement {
    devices: Vec<Device>,
    split: Split,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Split {
    Rows,
    Copies,
}

impl Placement {
    /// Places whole batches on a single device.
    pub fn on(device: &Device) -> Self {
        Self { devices: vec![device.clone()], split: Split::Copies }
    }

    /// Splits the rows of each array into equal parts, in the order of the devices: data parallelism.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `devices` is empty or contains devices of several clients.
    pub fn rows(devices: &[Device]) -> Result<Self> {
        Self::new(devices, Split::Rows)
    }

    /// Copies each whole array to every device.
    ///
    /// # Errors
    /// Fails like [`rows`](Self::rows).
    pub fn copies(devices: &[Device]) -> Result<Self> {
        Self::new(devices, Split::Copies)
    }

    fn new(devices: &[Device], split: Split) -> Result<Self> {
        let Some(first) = devices.first() else { return Err(Error::config("a placement on no devices")) };
        if let Some(other) = devices.iter().find(|device| !device.client().is(first.client())) {
            return Err(Error::config(format!("{first:?} and {other:?} are of different clients")));
        }
        Ok(Self { devices: devices.to_vec(), split })
    }

    /// Returns the devices in order.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the client of the devices.
    pub fn client(&self) -> &Client {
        self.devices[0].client()
    }

    /// Returns the parts of `array`, the leaf `name` of a batch, for the devices.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the rows cannot be split evenly.
    pub(super) fn shards(&self, name: &str, array: &Array) -> Result<Shards> {
        let (count, len) = (self.devices.len(), array.bytes().len());
        let mut shape = array.shape().to_vec();
        if self.split == Split::Copies {
            return Ok(Shards { shape, len, stride: 0, count });
        }
        match shape.first_mut() {
            Some(rows) if *rows % count == 0 => *rows /= count,
            _ => {
                let text = format!("{name} is {array:?}, whose rows cannot be split evenly over {count} devices");
                return Err(Error::data(text).help("drop or pad the batches that are not full"));
            }
        }
        Ok(Shards { shape, len: len / count, stride: len / count, count })
    }
}

/// Equal parts of an array.
#[derive(Debug)]
pub(super) struct Shards {
    /// Shape of each part.
    pub(super) shape: Vec<usize>,
    /// Bytes of each part.
    pub(super) len: usize,
    /// Bytes from the start of a part to the start of the next; 0 if all parts are copies.
    stride: usize,
    count: usize,
}

impl Shards {
    /// Iterates over the byte range of each part.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let (len, stride) = (self.len, self.stride);
        (0..self.count).map(move |shard| shard * stride..shard * stride + len)
    }

    /// Returns the number of parts with distinct memory.
    pub(super) fn distinct(&self) -> usize {
        if self.stride == 0 { 1 } else { self.count }
    }

    /// Returns true if all parts start at multiples of `alignment`, with the first part at address `start`.
    pub(super) fn all_aligned(&self, start: *const u8, alignment: usize) -> bool {
        start.addr().is_multiple_of(alignment) && (self.distinct() == 1 || self.stride.is_multiple_of(alignment))
    }
}
