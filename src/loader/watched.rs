//! Viewers of a pass while it runs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Instant;

use super::{Drive, Loader};
use crate::cx::Recorder;
use crate::dataset::IterDataset;
use crate::error::Result;
use crate::exec::Runtime;
use crate::fork::Ours;
use crate::live::{EVERY, Endpoint, Live, Looks, RecordView, Subject, Told, TraceView, View};
use crate::report::ConsumerMeter;

/// Options for the viewers of a pass.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    /// Address of the metrics endpoint.
    pub(super) metrics: Option<String>,
    /// Path of the recording.
    pub(super) record: Option<PathBuf>,
    /// Path of the trace.
    pub(super) trace: Option<PathBuf>,
    /// Whether the live view is offered to people on this machine.
    pub(super) top: bool,
}

impl Viewers {
    /// Starts the viewers, if any are enabled.
    pub(super) fn start<D: IterDataset + 'static>(
        &self,
        dataset: &Arc<D>,
        executor: &str,
        recorder: &Arc<Recorder>,
        run: &Runtime,
    ) -> Result<Option<Ours<Watched>>> {
        let Self { metrics, record, trace, top } = self;
        if metrics.is_none() && record.is_none() && trace.is_none() && !top && !top::is_asked_for() {
            return Ok(None);
        }
        let live = Live::new(subject(dataset, executor, recorder, run));
        let endpoint = metrics.as_ref().map(|address| Endpoint::start(address, live.clone())).transpose()?;
        let mut views: Vec<Box<dyn View>> = Vec::new();
        if let Some(path) = record {
            views.push(Box::new(RecordView::create(path)?));
        }
        if let Some(path) = trace {
            views.push(Box::new(TraceView::create(path)?));
        }
        let looks = (!views.is_empty()).then(|| Looks::start(views, live.clone())).transpose()?;
        let top = top::start(*top, &live)?;
        Ok(Some(Ours::new(Watched { endpoint, looks, top, live, told: None })))
    }
}

/// The live view, in builds that have it.
#[cfg(all(feature = "top", target_os = "linux"))]
mod top {
    use std::sync::Arc;

    use crate::error::Result;
    use crate::live::Live;
    pub(super) use crate::live::top::{TopServer, is_asked_for};

    /// Starts the live view if it was `asked` for or the environment enables it. In the latter case a failure is only logged.
    pub(super) fn start(asked: bool, live: &Arc<Live>) -> Result<Option<TopServer>> {
        if !asked && !is_asked_for() {
            return Ok(None);
        }
        match TopServer::start(live.clone()) {
            Err(error) if !asked => {
                tracing::warn!("the live view is not available: {error}");
                Ok(None)
            }
            server => server.map(Some),
        }
    }
}

#[cfg(not(all(feature = "top", target_os = "linux")))]
mod top {
    use std::sync::Arc;

    use crate::error::{Error, Result};
    use crate::live::Live;

    /// Placeholder for builds without a live view.
    #[derive(Debug)]
    pub(super) enum TopServer {}

    pub(super) fn is_asked_for() -> bool {
        false
    }

    pub(super) fn start(asked: bool, _: &Arc<Live>) -> Result<Option<TopServer>> {
        match asked {
            true => Err(Error::config("this build has no live view").help("it needs Linux and the feature `top`")),
            false => Ok(None),
        }
    }
}

/// Collects the shared parts of a pass.
fn subject<D: IterDataset + 'static>(
    dataset: &Arc<D>,
    executor: &str,
    recorder: &Arc<Recorder>,
    run: &Runtime,
) -> Subject {
    let (pipeline, executor) = (dataset.clone(), executor.to_owned());
    Subject { pipeline, executor, recorder: recorder.clone(), run: run.clone() }
}

/// Viewers of a pass, and the state that they display.
#[derive(Debug)]
pub(super) struct Watched {
    endpoint: Option<Endpoint>,
    looks: Option<Looks>,
    top: Option<top::TopServer>,
    live: Arc<Live>,
    /// Time of the consumer's last update.
    told: Option<Instant>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Dropping `looks` takes the last look. After `show(None)`, no viewer can hold the last reference to the pass.
        self.looks = None;
        self.live.show(None);
    }
}

impl<D: IterDataset + 'static> Loader<D> {
    /// Returns the address that serves `GET /metrics`, if [enabled](super::LoaderBuilder::metrics).
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        Some(self.watched.as_ref()?.get()?.endpoint.as_ref()?.address)
    }

    /// Returns the pass as its viewers see it, if there are any.
    #[cfg(test)]
    pub(super) fn live(&self) -> Option<Arc<Live>> {
        Some(self.watched.as_ref()?.get()?.live.clone())
    }

    /// Returns the process id, and the number of the pass unless it is 0. `None` without a [live view](super::LoaderBuilder::top).
    #[cfg(all(feature = "top", target_os = "linux"))]
    pub(crate) fn top_place(&self) -> Option<String> {
        let place = &self.watched.as_ref()?.get()?.top.as_ref()?.place;
        Some(if place.number == 0 { place.pid.to_string() } else { format!("{}.{}", place.pid, place.number) })
    }

    /// Sends the consumer's times to the viewers, if an update is due or the pass has ended.
    #[inline]
    pub(super) fn tell_viewers(&mut self) {
        let Some(watched) = self.watched.as_ref().and_then(Ours::get) else { return };
        watched.live.delivered(self.meter.delivered);
        if self.ended || watched.told.is_none_or(|told| told.elapsed() >= EVERY) {
            self.tell();
        }
    }

    /// Ends the views of a pass that is kept without viewers.
    pub(crate) fn end_views(&mut self) {
        self.watched = None;
    }

    /// Sends the consumer's times to the viewers now, if there are any.
    #[cold]
    pub(super) fn tell(&mut self) {
        if self.watched.is_none() {
            return;
        }
        if let Drive::Inline { cx, .. } = &mut self.drive {
            cx.flush();
        }
        let remarks = self.remarks();
        let ended = self.ended;
        let Some(watched) = self.watched.as_mut().and_then(Ours::get_mut) else { return };
        watched.told = Some(Instant::now());
        let (meter, account) = (self.meter.clone(), self.recorder.waits.account());
        watched.live.tell(Told { meter, account, first: self.first.clone(), remarks, around: None, ended });
    }
}

impl<D: IterDataset + 'static> Loader<D> {
    /// Shows viewers the times that a loop in another language measured `around` each call of [`next`](Iterator::next).
    pub(crate) fn show_around(&self, around: &Arc<Mutex<ConsumerMeter>>) {
        if let Some(watched) = self.watched.as_ref().and_then(Ours::get) {
            watched.live.show_around(around.clone());
        }
    }

    /// Moves the viewers of `other`, a pass over the same pipeline, to this pass.
    pub(crate) fn take_viewers(&mut self, other: &mut Self) {
        self.watched = other.watched.take();
        if let Some(watched) = self.watched.as_mut().and_then(Ours::get_mut) {
            watched.told = None;
            watched.live.show(Some(subject(&self.dataset, &self.executor, &self.recorder, &self.run)));
        }
    }
}
