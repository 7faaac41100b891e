//! Those who look at a pass while it runs.

use std::net::SocketAddr;
use std::sync::Arc;
#[cfg(feature = "python")]
use std::sync::Mutex;
use std::time::Instant;

use super::{Drive, Loader};
use crate::cx::Recorder;
use crate::dataset::IterDataset;
use crate::error::Result;
use crate::exec::Runtime;
use crate::fork::Ours;
use crate::live::{Endpoint, Live, Subject, Told};
#[cfg(feature = "python")]
use crate::report::ConsumerMeter;

/// The viewers that a pass is to have.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    /// The address of an endpoint of metrics.
    pub(super) metrics: Option<String>,
}

impl Viewers {
    /// Starts them, if there are any.
    pub(super) fn start<D: IterDataset + 'static>(
        &self,
        dataset: &Arc<D>,
        executor: &str,
        recorder: &Arc<Recorder>,
        run: &Runtime,
    ) -> Result<Option<Ours<Watched>>> {
        let Some(address) = &self.metrics else { return Ok(None) };
        let live = Live::new(subject(dataset, executor, recorder, run));
        let endpoint = Endpoint::start(address, live.clone())?;
        Ok(Some(Ours::new(Watched { endpoint, live, told: None })))
    }
}

/// The shared parts of a pass.
fn subject<D: IterDataset + 'static>(
    dataset: &Arc<D>,
    executor: &str,
    recorder: &Arc<Recorder>,
    run: &Runtime,
) -> Subject {
    let (pipeline, executor) = (dataset.clone(), executor.to_owned());
    Subject { pipeline, executor, recorder: recorder.clone(), run: run.clone() }
}

/// Viewers of a pass, and what they see.
#[derive(Debug)]
pub(super) struct Watched {
    endpoint: Endpoint,
    live: Arc<Live>,
    /// Time of which the consumer has told.
    told: Option<Instant>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Nobody else may be the last to have it.
        self.live.show(None);
    }
}

impl<D: IterDataset + 'static> Loader<D> {
    /// The address at which `GET /metrics` is answered, if it [is](super::LoaderBuilder::metrics).
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        Some(self.watched.as_ref()?.get()?.endpoint.address())
    }

    /// Shows viewers the times that a loop in another language has seen `around` every call of [`next`](Iterator::next).
    #[cfg(feature = "python")]
    pub(crate) fn show_around(&self, around: &Arc<Mutex<ConsumerMeter>>) {
        if let Some(watched) = self.watched.as_ref().and_then(Ours::get) {
            watched.live.show_around(around.clone());
        }
    }

    /// Has those who look at `other`, a pass over the same pipeline, look at this one.
    #[cfg(feature = "python")]
    pub(crate) fn take_viewers(&mut self, other: &mut Self) {
        self.watched = other.watched.take();
        if let Some(watched) = self.watched.as_mut().and_then(Ours::get_mut) {
            watched.told = None;
            watched.live.show(Some(subject(&self.dataset, &self.executor, &self.recorder, &self.run)));
        }
    }

    /// Tells viewers how the consumer fares, where there are any and it is time to, or the end.
    #[inline]
    pub(super) fn tell_viewers(&mut self) {
        let Some(watched) = self.watched.as_ref().and_then(Ours::get) else { return };
        if self.ended || Live::is_due(watched.told, &self.meter) {
            self.tell();
        }
    }

    #[cold]
    fn tell(&mut self) {
        if let Drive::Inline { cx, .. } = &mut self.drive {
            cx.flush();
        }
        let remarks = self.remarks();
        let Some(watched) = self.watched.as_mut().and_then(Ours::get_mut) else { return };
        watched.told = self.meter.last();
        watched.live.tell(Told { meter: self.meter.clone(), first: self.first.clone(), remarks });
    }
}
