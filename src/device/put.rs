//! Batches sent ahead of the step that needs them.

use std::collections::VecDeque;
use std::fmt;
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

/// A loader whose batches are sent to devices ahead of the step that needs them: an iterator of [`DeviceBatch`]es, in order.
///
/// [`next`](Iterator::next) hands out a batch whose transfer was started up to `depth - 1` steps before, whether it is over
/// or not, and starts more: as many as the loader has ready, so that it waits for the loader only with nothing on its way.
/// Transfers are started on the thread that calls it.
///
/// # Errors
/// An error of the pipeline, and of a transfer that has failed by then, comes out at its batch. A transfer that fails after
/// its batch was handed out is an error of its buffers, and of the next `next`, with the index of that batch. One that is
/// not over after [`timeout`](PutOptions::timeout) is an error with its index, too. After an error it ends.
///
/// # Fork
/// In a fork of the process that made it, `next` and [`state`](Self::state) are errors, and dropping it does nothing.
///
/// # Determinism
/// The batches are the loader's. [`state`](Self::state) counts what was handed out: what is on its way is sent again after
/// a resume.
///
/// # Cost
/// Arrays whose parts start at multiples of 64 bytes are read where they lie, which is kept until the plugin has done with
/// it. Others are copied into a slot first: `depth + 1` slots, each as long as a batch, used again and again.
/// ```no_run
/// use gristmill::device::{DevicePut, Placement, Plugin, PutOptions};
/// use gristmill::{Array, Element, IterDataset, Load, MapDataset, dataset::map::Range};
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
    /// The plugin's threads give slots back.
    slots: Ours<SlotPool>,
    /// Sent and not handed out; an error is the last.
    ahead: VecDeque<Result<Sent<StateOf<D>>>>,
    /// Handed out and not there yet.
    late: Vec<Late>,
    state: StateOf<D>,
    delivered: u64,
    stats: PutStats,
    /// Times of its calls, with what it takes to send batches.
    meter: ConsumerMeter,
    /// Whether nothing more is to be asked of the loader.
    is_drained: bool,
    has_ended: bool,
}

/// The iterator in the error that a fork gets.
const NAME: &str = "this DevicePut";

/// A batch on its way.
struct Sent<S> {
    batch: DeviceBatch,
    /// The loader's, behind the batch.
    state: S,
    started: Instant,
    host: Arc<HostUse>,
}

/// Counts of what was sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PutStats {
    /// Batches.
    pub batches: u64,
    /// Bytes that were sent from where the pipeline had them, for the first device that gets them.
    pub bytes_in_place: u64,
    /// Bytes that were copied into slots first.
    pub bytes_copied: u64,
    /// Time for which a batch waited for a slot: for transfers to end.
    pub waited: Duration,
}

impl<D: IterDataset<Item = Batch> + 'static> DevicePut<D> {
    /// Sends what `loader` gives to the devices of `placement`. Nothing is sent before the first `next`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] where [`zero_copy`](PutOptions::zero_copy) is asked for on another platform than `cpu`.
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

    /// The state of the consumer: behind the last batch that [`next`](Iterator::next) handed out. It restores into any loader of
    /// the same pipeline, with devices or without.
    ///
    /// # Errors
    /// As [`Loader::state`].
    pub fn state(&self) -> Result<Checkpoint> {
        self.slots.origin().check(NAME)?;
        self.loader.checkpoint_at(self.delivered, &self.state)
    }

    /// Batches handed out, counting those before a resume.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Counts of what was sent so far.
    pub fn stats(&self) -> PutStats {
        self.stats
    }

    /// Reports where the time went so far: that of the loader, and that of handing batches to the devices.
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

    /// Sends what can be sent without waiting; waits if there is nothing to hand out.
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

    /// Looks after batches that were handed out before they were there.
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
        if !over {
            self.check_age(late)?;
        }
        Ok(over)
    }

    fn check_age(&self, late: &Late) -> Result<()> {
        let timeout = self.options.timeout;
        if late.started.elapsed() < timeout { Ok(()) } else { Err(self.too_late(late.index)) }
    }

    /// The time to wait for a slot: until the oldest transfer is too old.
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

/// `error`, at the batch of that index.
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

impl<D: IterDataset> fmt::Debug for DevicePut<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevicePut")
            .field("placement", &self.placement)
            .field("slots", &self.slots)
            .field("delivered", &self.delivered)
            .finish_non_exhaustive()
    }
}
