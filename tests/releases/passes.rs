//! Passes over the pipelines of a release: alone, and by several hosts.

use std::path::Path;
use std::sync::Arc;

use gristmill::element::OrderHash;
use gristmill::keys::{KeyFolder, KeySource, Keyed, Keys, LaneFile, MarkedLanes};
use gristmill::part::{Deal, Part, RowDigest};
use gristmill::prelude::*;
use gristmill::spec::Pipeline;
use gristmill::{BoxIter, Checkpoint, Element, Loader, Result};
use serde::{Deserialize, Serialize};

use super::pipelines;

/// Elements from a place on: how many, in which order, and which rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rest {
    pub(crate) elements: u64,
    pub(crate) order_hash: String,
    /// The digest of rows, where hosts share batches.
    pub(crate) rows: Option<String>,
}

/// Returns whether several hosts read a pipeline together.
pub(crate) fn is_shared(name: &str) -> bool {
    name.starts_with("hosts")
}

fn pipeline(folder: &Path, name: &str) -> BoxIter<Element> {
    if let Some(pipeline) = pipelines::of_code(name, &folder.join("data")) {
        return pipeline;
    }
    let file = folder.join("pipelines").join(format!("{name}.yaml"));
    Pipeline::from_file(&file).and_then(|pipeline| pipeline.build()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Key files of a folder; those that are not there are made, which happens when a release is written.
#[derive(Debug)]
struct Recorded(KeyFolder);

impl KeySource for Recorded {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        self.0.record(&**keyed, |_| ())?;
        self.0.find(keyed)
    }

    fn find_lanes(&self, lanes: &Arc<dyn MarkedLanes>) -> Result<Option<Arc<LaneFile>>> {
        self.0.record_lanes(&**lanes, |_| ())?;
        self.0.find_lanes(lanes)
    }
}

fn start(folder: &Path, name: &str, part: Option<Part>, at: Option<&Checkpoint>) -> Loader<BoxIter<Element>> {
    let mut builder = pipeline(folder, name).loader();
    if let Some(part) = part {
        // A release that is read has its keys: to make them anew would be to lose those of before, unnoticed.
        let keys = KeyFolder::new(folder.join("keys"));
        let is_written = !folder.join("digests.json").exists();
        let deal = if name.contains("lanes") { Deal::Lanes } else { Deal::Even };
        builder = builder.part(part).deal(deal);
        builder = if is_written { builder.keys(Recorded(keys)) } else { builder.keys(keys.needed()) };
    }
    if let Some(at) = at {
        builder = builder.resume(at.clone());
    }
    builder.build().unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// One pass from a state on, to its end, and how it ended.
pub(crate) fn alone(folder: &Path, name: &str, at: Option<&Checkpoint>) -> (Rest, Checkpoint) {
    let mut loader = start(folder, name, None, at);
    let (mut hash, mut elements) = (OrderHash::default(), 0);
    for element in loader.by_ref() {
        hash.update(&element.unwrap_or_else(|e| panic!("{name}: {e}")));
        elements += 1;
    }
    let rows = is_shared(name).then(|| hosts(folder, name, 1, at, u64::MAX).0);
    (Rest { elements, order_hash: hash.to_string(), rows }, loader.state().unwrap())
}

/// The state of a pass behind so many elements.
pub(crate) fn state(folder: &Path, name: &str, elements: u64) -> Checkpoint {
    let mut loader = start(folder, name, None, None);
    loader.by_ref().take(elements as usize).for_each(|element| drop(element.unwrap()));
    loader.state().unwrap()
}

/// `count` hosts from a state on, for `steps` batches or to the end: the digest of the rows of all, and their state.
pub(crate) fn hosts(
    folder: &Path,
    name: &str,
    count: usize,
    at: Option<&Checkpoint>,
    steps: u64,
) -> (String, Checkpoint) {
    let (mut digest, mut states) = (RowDigest::default(), Vec::new());
    for index in 0..count {
        let part = if count == 1 { Part::whole() } else { Part::of(index, count) };
        let mut host = start(folder, name, Some(part), at);
        let mut taken = 0;
        while taken < steps
            && let Some(batch) = host.next()
        {
            let batch = batch.unwrap_or_else(|e| panic!("{name}, host {index} of {count}: {e}"));
            digest.add_batch(host.delivered() - 1, host.rows().unwrap(), &batch);
            taken += 1;
        }
        states.push(host.state().unwrap());
    }
    assert!(states.iter().all(|state| state.to_json() == states[0].to_json()), "{name}: all hosts have one state");
    (digest.to_string(), states.remove(0))
}
