//! A consumer that sends batches to a device through a PJRT plugin.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::{Consumer, Emulated, Handle, Ran};
use crate::device::{Device, DeviceBatch, DeviceBuffer, Event, Executable, arrays};
use crate::element::Batch;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// Time limit of a transfer or a step. A device that exceeds it is reported as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// A PJRT device that receives batches. Times are taken in the plugin's own callbacks, so no thread waits to take them.
///
/// The step on a batch that has arrived is [nothing](Self::new), to measure the transfer itself; [an emulated
/// step](Self::emulate), which leaves the device nearly idle; or [a program](Self::run). With two steps in flight, a
/// batch is sent while the device works on the batch before.
///
/// Accepts batches of the host, which it sends, and batches that [`DevicePut`](crate::device::DevicePut) has already
/// sent.
/// ```no_run
/// use std::time::Duration;
///
/// use gristmill::consumer::{Metrics, Pjrt, feed};
/// use gristmill::dataset::map::Range;
/// use gristmill::device::Plugin;
/// use gristmill::{Array, Element, prelude::*};
///
/// let device = Plugin::load("pjrt_c_api_cpu_plugin.so")?.client()?.device(0)?;
/// let mut device = Pjrt::new(device).emulate(Duration::from_millis(5));
/// let batches = Range::new(0, 8000).map(|x| Element::new().with("x", Array::scalar(x as i32))).to_iter().batch(8);
/// let timeline = feed(batches.loader().threads(2).build()?, &mut device, 2, |_| 8)?;
/// println!("{}", Metrics::of(&timeline, 1).expect("a thousand steps"));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Debug)]
pub struct Pjrt {
    device: Device,
    step: StepKind,
}

enum StepKind {
    Transfer,
    Emulated(Arc<Mutex<Emulated>>),
    Program { program: Executable, constants: Vec<DeviceBuffer> },
}

/// A batch in transfer to a device, with its step.
#[derive(Debug)]
#[must_use = "a step is not over before it has been waited for"]
pub struct PjrtStep {
    submitted_at: Instant,
    /// Time at which the step was requested.
    asked_at: Instant,
    transfers: Vec<Stamp>,
    results: Vec<Stamp>,
    emulated: Option<Arc<Mutex<Emulated>>>,
    /// Buffers or batch that stay allocated until the step is over.
    #[expect(dead_code, reason = "it is there to be dropped")]
    held: Held,
}

#[derive(Debug)]
#[expect(dead_code, reason = "it is there to be dropped")]
enum Held {
    Buffers(Vec<DeviceBuffer>),
    Batch(DeviceBatch),
}

impl Pjrt {
    /// Returns a consumer whose step is only the transfer of a batch.
    pub fn new(device: Device) -> Self {
        Self { device, step: StepKind::Transfer }
    }

    /// Sets an emulated step that takes `step_time` from the arrival of its batch and leaves the device idle.
    ///
    /// Transfers are real; only computing is emulated. On a device that shares its cores with the loader, such as XLA's
    /// CPU, a program would take cores from the loader.
    #[must_use]
    pub fn emulate(self, step_time: Duration) -> Self {
        Self { step: StepKind::Emulated(Arc::new(Mutex::new(Emulated::new(step_time)))), ..self }
    }

    /// Sets `program` as the step. Its arguments are `constants`, which stay on the device, and then the arrays of a
    /// batch in their order.
    #[must_use]
    pub fn run(self, program: Executable, constants: Vec<DeviceBuffer>) -> Self {
        Self { step: StepKind::Program { program, constants }, ..self }
    }

    /// Starts the step on `buffers`, whose transfers are `events`.
    fn start<'a>(
        &'a self,
        submitted_at: Instant,
        buffers: impl Iterator<Item = &'a DeviceBuffer>,
        events: impl Iterator<Item = Result<Event>>,
    ) -> Result<PjrtStep> {
        let transfers = events.map(|event| Stamp::new(event?)).collect::<Result<_>>()?;
        let (mut results, mut emulated) = (Vec::new(), None);
        match &self.step {
            StepKind::Transfer => {}
            StepKind::Emulated(device) => emulated = Some(device.clone()),
            StepKind::Program { program, constants } => {
                let outputs = program.run(&constants.iter().chain(buffers).collect::<Vec<_>>())?;
                results = outputs.iter().map(|output| Stamp::new(output.ready()?)).collect::<Result<_>>()?;
            }
        }
        let held = Held::Buffers(Vec::new());
        Ok(PjrtStep { submitted_at, asked_at: Instant::now(), transfers, results, emulated, held })
    }
}

impl Consumer<Batch> for Pjrt {
    type Handle = PjrtStep;

    /// Sends every array of `batch` directly from its memory.
    ///
    /// # Errors
    /// [`ErrorKind::Data`] with the name of a field that is no array, [`ErrorKind::Device`] with the plugin's message.
    fn submit(&mut self, batch: Batch) -> Result<PjrtStep> {
        let submitted_at = Instant::now();
        let put = |(name, array): (crate::element::Name, _)| {
            self.device.put(array).map_err(|error| error.and(&format!(", in array {name}")))
        };
        let buffers = arrays(&batch)?.into_iter().map(put).collect::<Result<Vec<_>>>()?;
        let step = self.start(submitted_at, buffers.iter(), buffers.iter().map(DeviceBuffer::ready))?;
        Ok(PjrtStep { held: Held::Buffers(buffers), ..step })
    }
}

impl Consumer<DeviceBatch> for Pjrt {
    type Handle = PjrtStep;

    /// Starts the step on the parts of `batch` that are on its first device.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] with the plugin's message.
    fn submit(&mut self, batch: DeviceBatch) -> Result<PjrtStep> {
        let buffers = batch.arrays().map(|(_, array)| array.buffer());
        let step = self.start(Instant::now(), buffers, batch.events().cloned().map(Ok))?;
        Ok(PjrtStep { held: Held::Batch(batch), ..step })
    }
}

impl Handle for PjrtStep {
    fn wait(self) -> Result<Ran> {
        let there_at = last(self.transfers, self.submitted_at)?;
        if let Some(device) = self.emulated {
            let step = device.locked().step(there_at.max(self.asked_at));
            return Ok(step.wait_for_device());
        }
        if self.results.is_empty() {
            return Ok(Ran { ready_at: self.submitted_at, done_at: there_at });
        }
        let ready_at = there_at.max(self.asked_at);
        Ok(Ran { ready_at, done_at: last(self.results, ready_at)? })
    }
}

/// Returns the time at which all of `stamps` were ready, but no earlier than `from`.
fn last(stamps: Vec<Stamp>, from: Instant) -> Result<Instant> {
    stamps.into_iter().try_fold(from, |last, stamp| Ok(last.max(stamp.wait()?)))
}

/// Records the time at which an event is over.
#[derive(Debug)]
struct Stamp {
    event: Event,
    at: Arc<OnceLock<Instant>>,
}

impl Stamp {
    fn new(event: Event) -> Result<Self> {
        let at = Arc::new(OnceLock::new());
        let noted = at.clone();
        event.on_ready(move |_| {
            // Only this callback sets the time.
            let _ = noted.set(Instant::now());
        })?;
        Ok(Self { event, at })
    }

    fn wait(self) -> Result<Instant> {
        if !self.event.wait_timeout(PATIENCE)? {
            let text = format!("a transfer or a step is not over after {PATIENCE:?}");
            return Err(Error::new(ErrorKind::Device, text).help("the device hangs"));
        }
        // The event may be over shortly before its callback runs.
        Ok(self.at.get().copied().unwrap_or_else(Instant::now))
    }
}

debug_as!(StepKind, |self, f| {
    match self {
        Self::Transfer => f.write_str("Transfer"),
        Self::Emulated(_) => f.write_str("Emulated"),
        Self::Program { program, .. } => program.fmt(f),
    }
});
