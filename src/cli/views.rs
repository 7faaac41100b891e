//! Views of a run while it runs.

use std::path::PathBuf;

use crate::cli::output;
use crate::{BoxIter, Element, Loader, LoaderBuilder};

/// Views of a run while it runs. None of them changes what is delivered.
#[derive(Clone, Default, clap::Args)]
#[command(next_help_heading = "Views of the run")]
pub(crate) struct Views {
    /// Serve the figures of the run to Prometheus at this address
    ///
    /// ADDRESS is [everybody@][HOST:]PORT. GET /metrics answers. A port alone is reached from this machine only; 0 takes a free port. Other users of this machine are refused,
    /// unless the address is everybody@PORT.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// Offer the run to `gristmill top`
    ///
    /// GRISTMILL_TOP=1 in the environment does the same.
    #[arg(long)]
    top: bool,
}

/// The same, and files that are written meanwhile: of one run alone.
#[derive(Clone, Default, clap::Args)]
#[command(next_help_heading = "Views of the run")]
pub(crate) struct RunViews {
    #[command(flatten)]
    views: Views,
    /// Record the run in a file for `gristmill report`
    ///
    /// A recording of a run that was killed is read as well. An earlier recording is kept as NAME.1.ENDING.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write the run as a trace for ui.perfetto.dev and chrome://tracing
    ///
    /// It is compressed if FILE ends in .gz.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

impl RunViews {
    /// Has those views look at what `builder` starts.
    pub(crate) fn put_on(&self, builder: LoaderBuilder<BoxIter<Element>>) -> LoaderBuilder<BoxIter<Element>> {
        let builder = self.views.put_on(builder);
        let builder = match &self.record {
            Some(file) => builder.record(file),
            None => builder,
        };
        match &self.trace {
            Some(file) => builder.trace(file),
            None => builder,
        }
    }
}

impl Views {
    /// Has those views look at what `builder` starts.
    pub(crate) fn put_on(&self, builder: LoaderBuilder<BoxIter<Element>>) -> LoaderBuilder<BoxIter<Element>> {
        let builder = if self.top { builder.top() } else { builder };
        match &self.metrics {
            Some(address) => builder.metrics(address),
            None => builder,
        }
    }
}

/// Says where the views of a run are.
pub(crate) fn tell(loader: &Loader<BoxIter<Element>>) {
    if let Some(address) = loader.metrics_address() {
        output::say(&format!("metrics are at http://{address}/metrics"));
    }
    #[cfg(all(feature = "top", target_os = "linux"))]
    if let Some(place) = loader.top_place() {
        output::say(&format!("look at it with: {} top {place}", output::program()));
    }
}
