//! Live views of a run.

use crate::cli::output;
use crate::{BoxIter, Element, Loader};

/// Prints the addresses of the views of a run.
pub(crate) fn tell(loader: &Loader<BoxIter<Element>>) {
    if let Some(address) = loader.metrics_address() {
        output::say(&format!("metrics are at http://{address}/metrics"));
    }
    #[cfg(all(feature = "top", target_os = "linux"))]
    if let Some(place) = loader.top_place() {
        output::say(&format!("look at it with: {} top {place}", output::program()));
    }
}
