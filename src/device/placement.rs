//! Placements of batches: devices, and what of a batch each of them gets.

use std::ops::Range;

use super::client::{Client, Device};
use crate::element::Array;
use crate::error::{Error, Result};

/// The devices that batches go to, and what each gets of them.
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
    /// Everything on one device.
    pub fn on(device: &Device) -> Self {
        Self { devices: vec![device.clone()], split: Split::Copies }
    }

    /// The rows of each array in equal parts, in the devices' order: data parallelism.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for no devices, and for devices of several clients.
    pub fn rows(devices: &[Device]) -> Result<Self> {
        Self::new(devices, Split::Rows)
    }

    /// The whole of each array on every device.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
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

    /// The devices, in order.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The client of the devices.
    pub fn client(&self) -> &Client {
        self.devices[0].client()
    }

    /// Parts of `array` that each device gets, the leaf `name` of a batch.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if its rows cannot be split evenly.
    pub(super) fn shards(&self, name: &str, array: &Array) -> Result<Shards> {
        let (count, len) = (self.devices.len(), array.bytes().len());
        let mut shape = array.shape().to_vec();
        if self.split == Split::Copies {
            return Ok(Shards { shape, len, stride: 0, count });
        }
        match shape.first_mut() {
            Some(rows) if *rows % count == 0 => *rows /= count,
            _ => {
                let text = format!("{name} is {array:?}, whose rows are not to be split evenly over {count} devices");
                return Err(Error::data(text).help("drop or pad the batches that are not full"));
            }
        }
        Ok(Shards { shape, len: len / count, stride: len / count, count })
    }
}

/// The equal parts of an array.
#[derive(Debug)]
pub(super) struct Shards {
    /// Of each.
    pub(super) shape: Vec<usize>,
    /// Bytes of each.
    pub(super) len: usize,
    /// Bytes from the start of one to that of the next.
    stride: usize,
    count: usize,
}

impl Shards {
    /// The bytes of each.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let (len, stride) = (self.len, self.stride);
        (0..self.count).map(move |shard| shard * stride..shard * stride + len)
    }

    /// Counts those that lie in memory of their own.
    pub(super) fn distinct(&self) -> usize {
        if self.stride == 0 { 1 } else { self.count }
    }

    /// Whether all of them start at a multiple of `alignment` if the first lies at address `start`.
    pub(super) fn all_aligned(&self, start: *const u8, alignment: usize) -> bool {
        start.addr().is_multiple_of(alignment) && (self.distinct() == 1 || self.stride.is_multiple_of(alignment))
    }
}
