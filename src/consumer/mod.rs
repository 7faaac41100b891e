//! Consumers of batches, and metrics that show whether the device waits for them.
//!
//! A [`Consumer`] starts a step on every submitted batch. A [`Recorder`] records when batches are requested and
//! received, and when steps become ready and end. [`Metrics`] summarise this [`Timeline`] by the definitions of MLPerf
//! Storage's benchmark, TensorFlow's profiler and others. [`feed`] is the loop that connects them.
//!
//! ```
//! use std::time::Duration;
//!
//! use gristmill::consumer::{Emulated, Metrics, feed};
//! use gristmill::dataset::map::Range;
//! use gristmill::prelude::*;
//!
//! let loader = Range::new(0, 3200).map(|x| x * 2).to_iter().batch(32).loader().threads(1).build()?;
//! let mut accelerator = Emulated::new(Duration::from_millis(1));
//! let timeline = feed(loader.take(20), &mut accelerator, 0, |batch: &Vec<i64>| batch.len() as u64)?;
//!
//! let metrics = Metrics::of(&timeline, 1).expect("more than one step");
//! assert_eq!((metrics.steps, timeline.steps().len()), (19, 20));
//! println!("{metrics}");
//! # Ok::<(), gristmill::Error>(())
//! ```

mod emulated;
mod metrics;
#[cfg(feature = "pjrt")]
mod pjrt;
mod recorder;
mod text;
mod timeline;

use std::time::Instant;

use crate::error::Result;

pub use emulated::{Emulated, EmulatedStep};
pub use metrics::{InputBound, Metrics};
#[cfg(feature = "pjrt")]
pub use pjrt::{Pjrt, PjrtStep};
pub use recorder::Recorder;
pub use timeline::{Step, Timeline};

/// Receiver of batches, such as an accelerator or an emulated accelerator.
pub trait Consumer<B> {
    /// Handle of a step that is under way.
    type Handle: Handle;

    /// Submits `batch` for a step that begins after the steps before it; does not wait for its end.
    ///
    /// # Errors
    /// Errors that the device reports, and errors for batches that the device does not accept.
    fn submit(&mut self, batch: B) -> Result<Self::Handle>;
}

/// Handle of a step that is under way.
pub trait Handle {
    /// Waits until the step is done.
    ///
    /// # Errors
    /// Errors that the device reports for the transfer or the step.
    fn wait(self) -> Result<Ran>;
}

/// Times at which a step became ready and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Earliest time at which a free device could begin: the batch is in its memory and the step is requested.
    pub ready_at: Instant,
    /// Time at which the step ended.
    pub done_at: Instant,
}

/// Runs a timed training loop that submits all of `batches` to `consumer`; `samples` counts the samples of a batch.
///
/// All steps but the last `in_flight` end before the loop requests the next batch. With 0 the loop waits for every
/// step, as MLPerf Storage's benchmark does. With 1 or 2 the loop fetches a batch while the device computes, as a
/// framework with asynchronous dispatch does.
///
/// # Errors
/// The first error of the batches or of the consumer.
pub fn feed<B, C: Consumer<B>>(
    batches: impl IntoIterator<Item = Result<B>>,
    consumer: &mut C,
    in_flight: usize,
    samples: impl Fn(&B) -> u64,
) -> Result<Timeline> {
    let mut batches = batches.into_iter();
    let mut recorder = Recorder::new(in_flight);
    while let Some(batch) = recorder.next(|| batches.next()) {
        let batch = batch?;
        let samples = samples(&batch);
        let handle = consumer.submit(batch)?;
        recorder.submitted(samples, handle)?;
    }
    recorder.finish()
}
