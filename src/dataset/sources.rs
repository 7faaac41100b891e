//! The sources of a pipeline, with their names in mixes.

use super::node::address;
use super::stage::{Role, Stage, label};

/// A source of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct SourceOfRun {
    /// Id of the stage.
    pub(crate) stage: usize,
    /// Name of the stage.
    pub(crate) name: &'static str,
    /// Line of the stage in a fingerprint.
    pub(crate) label: String,
    /// The innermost mix that the source is a part of, and the name of its component.
    pub(crate) component: Option<(usize, String)>,
    pub(crate) records: u64,
    /// Mean stored size of a record in bytes, from a sample; `None` if unknown.
    pub(crate) record_bytes: Option<f64>,
    /// True if records are read from a store.
    pub(crate) is_far: bool,
    /// Memory address of the source.
    pub(super) address: usize,
}

/// Number of records whose stored size is looked up.
const SAMPLES: u64 = 256;

/// Returns the sources of `pipeline`, in the order of the stages.
pub(super) fn sources_of(pipeline: &dyn Stage) -> Vec<SourceOfRun> {
    let mut found = Vec::new();
    describe(pipeline, pipeline.count() - 1, None, &mut found);
    found
}

/// Describes the sources of `stage`, whose id is `id`. `component` is the innermost component that contains the stage.
fn describe(stage: &dyn Stage, id: usize, component: Option<&(usize, String)>, found: &mut Vec<SourceOfRun>) {
    let node = stage.node();
    let parents = stage.parents_by_id(id);
    if let (Role::Source, Some(source), []) = (node.role, node.source, parents.as_slice()) {
        let records = source.records().unwrap_or_default();
        let step = (records / SAMPLES).max(1);
        let sampled = (0..records.min(SAMPLES)).map(|number| source.record_bytes(number * step));
        let sizes: Option<Vec<u64>> = sampled.collect();
        let mean = |sizes: Vec<u64>| sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        found.push(SourceOfRun {
            stage: id,
            name: node.name,
            label: label(stage),
            component: component.cloned(),
            records,
            record_bytes: sizes.filter(|sizes| !sizes.is_empty()).map(mean),
            is_far: node.reads.far,
            address: address(source),
        });
    }
    let mut names = node.describe.components().into_iter();
    for (parent_id, parent) in parents {
        let named = names.next().map(|name| (id, name));
        describe(parent, parent_id, named.as_ref().or(component), found);
    }
}
