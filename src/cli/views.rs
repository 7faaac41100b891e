//! Views of a run while it runs.

use std::path::PathBuf;

use crate::cli::output;
use crate::{BoxIter, Element, Loader, LoaderBuilder};

/// Views of a run while it runs. None of them changes what is delivered.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct Views {
    /// Answer GET /metrics at this address with the figures of the run, for Prometheus: HOST:PORT, or a port alone, which nobody but
    /// this machine reaches; 0 takes a free one. Other users of this machine are refused: everybody@PORT answers them, too
    #[arg(long, value_name = "[everybody@][HOST:]PORT")]
    metrics: Option<String>,
    /// Let people of this user look at the run with `gristmill top`; GRISTMILL_TOP=1 in the environment does the same
    #[arg(long)]
    top: bool,
}

/// The same, and files that are written meanwhile: of one run alone.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct RunViews {
    #[command(flatten)]
    views: Views,
    /// Record the run in a file, which `gristmill report FILE` reads back, also where the run was killed. A recording that is there is kept
    /// as NAME.1.ENDING
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write the run as a trace, which ui.perfetto.dev and chrome://tracing show; compressed if FILE ends in .gz
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
