//! Views of a run while it runs.

use crate::cli::output;
use crate::{BoxIter, Element, Loader, LoaderBuilder};

/// Views of a run while it runs. None of them changes what is delivered.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct Views {
    /// Answer GET /metrics at this address with the figures of the run, for Prometheus: HOST:PORT, or a port alone, which nobody but
    /// this machine reaches; 0 takes a free one
    #[arg(long, value_name = "[HOST:]PORT")]
    metrics: Option<String>,
}

impl Views {
    /// Has those views look at what `builder` starts.
    pub(crate) fn put_on(&self, builder: LoaderBuilder<BoxIter<Element>>) -> LoaderBuilder<BoxIter<Element>> {
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
}
