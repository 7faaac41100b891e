//! Is the device waiting? What takes the batches of a pipeline, and what its time went into.
//!
//! A [`Consumer`] starts a step on every batch that it is given; a [`Recorder`] notes when batches were asked for and came,
//! and when steps could begin and ended; [`Metrics`] are what that [`Timeline`] says, as MLPerf Storage's benchmark, the
//! profiler of TensorFlow and others define them. [`feed`] is the loop that does all of this.
//!
//! ```
//! use std::time::Duration;
//!
//! use gristmill::consumer::{Emulated, Metrics, feed};
//! use gristmill::dataset::map::Range;
//! use gristmill::{IterDataset, Load, MapDataset};
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

/// The taker of batches: an accelerator, or what stands in for one.
pub trait Consumer<B> {
    /// A step that is under way.
    type Handle: Handle;

    /// Hands `batch` over and has a step begin on it, as soon as those before it are done; does not wait for its end.
    ///
    /// # Errors
    /// What the device reports, and batches that it cannot take.
    fn submit(&mut self, batch: B) -> Result<Self::Handle>;
}

/// A step that is under way.
pub trait Handle {
    /// Waits until the step is done.
    ///
    /// # Errors
    /// What the device reports of the transfer or of the step.
    fn wait(self) -> Result<Ran>;
}

/// The times of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Time at which it could begin, were the device free: the batch lay in its memory, and the step had been asked for.
    pub ready_at: Instant,
    /// Time at which it had ended.
    pub done_at: Instant,
}

/// A training loop with a clock: has `consumer` take all of `batches`, of which each has so many `samples`.
///
/// Before the next batch is asked for, all steps but the last `in_flight` have ended. 0 is the loop of MLPerf Storage's
/// benchmark, which waits for every step; with 1 or 2, as of a framework that dispatches steps and goes on, the loop
/// fetches a batch while the device computes.
///
/// # Errors
/// The first of the batches or of the consumer.
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
