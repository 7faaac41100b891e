//! Transfers of batches to devices, ahead of the step that needs them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::abi::Semantics;
use super::batch::{DeviceArray, DeviceBatch};
use super::buffer::Transfer;
use super::host::HostBytes;
use super::in_flight::{HostUse, Late};
use super::options::PutOptions;
use super::placement::Placement;
use super::slots::SlotPool;
use super::staging::{Leaf, Staging, leaves, stage};
use crate::checkpoint::Checkpoint;
use crate::cx::Cause;
use crate::dataset::IterDataset;
use crate::element::{Batch, Name};
use crate::error::{Error, ErrorKind, Result};
use crate::fork::Ours;
use crate::loader::{Loader, StateOf};
use crate::report::{ConsumerMeter, Report};

/// An iterator of [`DeviceBatch`]es in order: a loader whose batches are sent to devices ahead of the step that needs
/// them.
///
/// [`next`](Iterator::next) hands out a batch whose transfer started up to `depth - 1` steps before, complete or not.
/// It also starts transfers of batches that the loader has ready, and waits for the loader only if no batch was sent
/// ahead. Transfers start on the calling thread.
///
/// # Errors
/// Errors of the pipeline, and of transfers that failed by then, are returned in place of the batch. If a transfer
/// fails after its batch was handed out, the buffers and the following `next` report the error, with the index of the
/// batch. A transfer that exceeds [`timeout`](PutOptions::timeout) is an error with the index, too. The iterator ends
/// after an error.
///
/// # Fork
/// In a fork of the creating process, `next` and [`state`](Self::state) return errors, and dropping the iterator does
/// nothing.
///
/// # Determinism
/// Batches and their order equal the loader's. [`state`](Self::state) covers batches that were handed out; batches sent
/// ahead are sent again after a resume.
///
/// # Cost
/// Arrays are read in place if all parts start at multiples of 64 bytes. Their memory is kept until the plugin is done
/// with it. Other arrays are first copied into reused slots: `depth + 1` slots, each the size of a batch.
/// ```no_run
/// use gristmill::device::{DevicePut, Placement, Plugin, PutOptions};
/// use gristmill::{Array, Element, dataset::map::Range, prelude::*};
///
/// let client = Plugin::load("pjrt_c_api_cpu_plugin.so")?.client()?;
/// let ds = Range::new(0, 1000).map(|x| Element::new().with("x", Array::scalar(x as i32))).to_iter().batch(8);
/// let mut batches = DevicePut::new(ds.loader().threads(2).build()?, Placement::on(&client.device(0)?), PutOptions::default())?;
/// for batch in batches.by_ref() {
///     let x = batch?.array("x")?.buffer().to_array()?;
/// }
/// # Ok::<(), gristmill::Error>(())
/// ```
pub struct DevicePut<D: IterDataset> {
    loader: Loader<D>,
    placement: Placement,
    options: PutOptions,
    /// Slots, which threads of the plugin return.
    slots: Ours<SlotPool>,
    /// Batches sent but not handed out. An error is always last.
    ahead: VecDeque<Result<Sent<StateOf<D>>>>,
    /// Batches handed out before their transfers completed.
    late: Vec<Late>,
    state: StateOf<D>,
    delivered: u64,
    stats: PutStats,
    /// Times of `next` calls, and the time spent sending batches.
    meter: ConsumerMeter,
    /// Whether to take no more batches from the loader: it ended or failed, or a transfer could not start.
    is_drained: bool,
    has_ended: bool,
}

/// Name of the iterator in the error of a fork.
const NAME: &str = "this DevicePut";

/// A batch sent ahead.
struct Sent<S> {
    batch: DeviceBatch,
    /// State of the loader after the batch.
    state: S,
    started: Instant,
    host: Arc<HostUse>,
}

/// Counts of batches and bytes sent, and the time spent waiting for slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PutStats {
    /// Batches sent.
    pub batches: u64,
    /// Bytes sent in place from the pipeline's memory. Copies to further devices are not counted.
    pub bytes_in_place: u64,
    /// Bytes copied into slots first.
    pub bytes_copied: u64,
    /// Time spent waiting for a free slot, until earlier transfers ended.
    pub waited: Duration,
}

impl<D: IterDataset<Item = Batch> + 'static> DevicePut<D> {
    /// Makes an iterator that sends the batches of `loader` to the devices of `placement`. The first `next` starts the
    /// first transfer.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if [`zero_copy`](PutOptions::zero_copy) is on for a platform other than `cpu`.
    pub fn new(loader: Loader<D>, placement: Placement, options: PutOptions) -> Result<Self> {
        let client = placement.client();
        if options.zero_copy && client.platform() != "cpu" {
            let text = format!("zero_copy on platform {}: only the host's own memory can be viewed", client.platform());
            return Err(Error::config(text).path(client.plugin_path()));
        }
        let mut options = options;
        if options.pinned {
            options.staging = Staging::Always;
        }
        let slots = Ours::new(SlotPool::new(options.most_slots(), options.pinned.then(|| client.clone())));
        let (state, delivered) = (loader.typed_state().clone(), loader.delivered());
        Ok(Self {
            loader,
            placement,
            options,
            slots,
            ahead: VecDeque::new(),
            late: Vec::new(),
            state,
            delivered,
            stats: PutStats::default(),
            meter: ConsumerMeter::default(),
            is_drained: false,
            has_ended: false,
        })
    }

    /// Returns the state of the consumer: after the last batch that [`next`](Iterator::next) handed out. The state
    /// restores into any loader of an identical pipeline, with or without devices.
    ///
    /// # Errors
    /// Fails like [`Loader::state`].
    pub fn state(&self) -> Result<Checkpoint> {
        self.slots.origin().check(NAME)?;
        self.loader.checkpoint_at(self.delivered, &self.state)
    }

    /// Returns the number of batches handed out, including batches before a resume.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> PutStats {
        self.stats
    }

    /// Returns a report of the time spent so far, in the loader and in sending batches to the devices.
    pub fn report(&mut self) -> Report {
        self.loader.report_around(Some(&self.meter))
    }

    fn advance(&mut self) -> Result<Option<DeviceBatch>> {
        self.slots.origin().check(NAME)?;
        self.look_back()?;
        self.loader.note_around(&self.meter);
        self.fill();
        let Some(sent) = self.ahead.pop_front() else { return Ok(None) };
        let Sent { batch, state, started, host } = sent?;
        let index = batch.index;
        let late = Late { index, started, events: batch.events().cloned().collect(), host };
        if !self.is_over(&late)? {
            self.late.push(late);
        }
        self.state = state;
        self.delivered = index + 1;
        Ok(Some(batch))
    }

    /// Sends batches until the next send would wait. Waits only if no batch is ready to be handed out.
    fn fill(&mut self) {
        while !self.is_drained && self.ahead.len() < self.options.depth {
            let waits = !(self.loader.is_ready() && self.slots.anywhere().has_free());
            if waits && !self.ahead.is_empty() {
                return;
            }
            let sent = self.loader.next().map(|batch| {
                let batch = batch?;
                let start = Instant::now();
                let sent = self.send(&batch);
                self.meter.beside.count(Cause::Transfer, start.elapsed());
                sent
            });
            self.is_drained = !matches!(sent, Some(Ok(_)));
            self.ahead.extend(sent);
        }
    }

    /// Starts the transfers of a batch.
    fn send(&mut self, batch: &Batch) -> Result<Sent<StateOf<D>>> {
        let index = self.loader.delivered() - 1;
        let state = self.loader.typed_state().clone();
        let started = Instant::now();
        let host = Arc::new(HostUse::default());
        let columns = self.send_columns(batch, &host, started).map_err(|error| at(index, error))?;
        self.stats.batches += 1;
        Ok(Sent { batch: DeviceBatch { index, columns }, state, started, host })
    }

    fn send_columns(&mut self, batch: &Batch, host: &Arc<HostUse>, now: Instant) -> Result<Vec<(Name, DeviceArray)>> {
        let leaves = leaves(batch, &self.placement)?;
        let (patience, origin) = (self.patience(now), self.slots.origin());
        let slots = self.slots.get_mut().ok_or_else(|| origin.elsewhere(NAME))?;
        let waits = !slots.has_free();
        let staged = stage(&leaves, self.options.staging, slots, patience)?;
        let staged = staged.ok_or_else(|| self.no_slot())?;
        if waits && staged.copied > 0 {
            self.stats.waited += now.elapsed();
        }
        self.stats.bytes_copied += staged.copied as u64;
        self.stats.bytes_in_place += (batch.nbytes() - staged.copied) as u64;
        let mut columns = Vec::with_capacity(leaves.len());
        for (leaf, hosts) in leaves.into_iter().zip(staged.hosts) {
            let array =
                self.send_leaf(&leaf, hosts, host).map_err(|error| error.and(&format!(", in array {}", leaf.name)))?;
            columns.push((leaf.name, array));
        }
        Ok(columns)
    }

    fn send_leaf(&self, leaf: &Leaf<'_>, hosts: Vec<HostBytes>, host_use: &Arc<HostUse>) -> Result<DeviceArray> {
        let semantics = match self.options.zero_copy {
            true => Semantics::ImmutableZeroCopy,
            false => Semantics::UntilTransferCompletes,
        };
        let dtype = leaf.array.dtype();
        let (mut shards, mut ready) = (Vec::with_capacity(hosts.len()), Vec::with_capacity(hosts.len()));
        for (device, host) in self.placement.devices().iter().zip(hosts) {
            let transfer = Transfer { dtype, shape: &leaf.shards.shape, host, semantics };
            let done = HostUse::begin(host_use);
            let buffer = device.send(transfer, self.options.release, done)?;
            ready.push(buffer.ready()?);
            shards.push(buffer);
        }
        Ok(DeviceArray { dtype, shape: leaf.array.shape().to_vec(), shards, ready })
    }

    /// Checks batches that were handed out before their transfers completed.
    fn look_back(&mut self) -> Result<()> {
        let mut at_fault = None;
        let late = std::mem::take(&mut self.late);
        for late in late {
            match self.is_over(&late) {
                Ok(true) => {}
                Ok(false) => self.late.push(late),
                Err(error) => at_fault = at_fault.or(Some(error)),
            }
        }
        at_fault.map_or(Ok(()), Err)
    }

    fn is_over(&self, late: &Late) -> Result<bool> {
        let over = late.outcome(!self.options.zero_copy).map_err(|error| at(late.index, error))?;
        let is_late = !over && late.started.elapsed() >= self.options.timeout;
        if is_late { Err(self.too_late(late.index)) } else { Ok(over) }
    }

    /// Returns the maximum wait for a slot: until the oldest transfer times out.
    fn patience(&self, now: Instant) -> Duration {
        let oldest = self.late.iter().map(|late| late.started).min().unwrap_or(now);
        self.options.timeout.saturating_sub(now.duration_since(oldest))
    }

    #[cold]
    fn no_slot(&self) -> Error {
        let index = self.late.iter().map(|late| late.index).min().unwrap_or(self.loader.delivered() - 1);
        self.too_late(index)
    }

    #[cold]
    fn too_late(&self, index: u64) -> Error {
        let text = format!("its transfer is not over after {:?}", self.options.timeout);
        let error = Error::new(ErrorKind::Device, text).path(self.placement.client().plugin_path());
        at(index, error.help("the device hangs, or the timeout is too short for batches of this size"))
    }
}

/// Adds the index of the batch to `error`.
#[cold]
fn at(index: u64, error: Error) -> Error {
    error.index(index).stage("device_put")
}

impl<D: IterDataset<Item = Batch> + 'static> Iterator for DevicePut<D> {
    type Item = Result<DeviceBatch>;

    fn next(&mut self) -> Option<Result<DeviceBatch>> {
        if self.has_ended {
            return None;
        }
        let start = Instant::now();
        let next = self.advance().transpose();
        self.meter.end(start);
        self.has_ended = !matches!(next, Some(Ok(_)));
        next
    }
}

debug_as!(<D: IterDataset> DevicePut<D>, |self, f| {
    f.debug_struct("DevicePut")
        .field("placement", &self.placement)
        .field("slots", &self.slots)
        .field("delivered", &self.delivered)
        .finish_non_exhaustive()
});
