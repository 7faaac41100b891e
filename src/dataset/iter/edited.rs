//! The stages that edits of a run change.

use std::sync::Arc;

use super::mix::edited_mix;
use crate::dataset::excluded::excluded_records;
use crate::dataset::node::Work;
use crate::dataset::stage::{Role, Stage};
use crate::edits::{EditedStages, Edits};
use crate::error::{Error, Result};

/// Returns the stages of `pipeline` that `edits` change.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if an edit fits no stage.
pub(crate) fn edited_stages(pipeline: &dyn Stage, edits: &Edits) -> Result<EditedStages> {
    let has_sizes = edits.sizes().next().is_some();
    let batch = if has_sizes { Some(last_batch(pipeline)?) } else { None };
    let excluded = excluded_records(pipeline, edits)?.map(Arc::new);
    Ok(EditedStages { mix: edited_mix(pipeline, edits)?, batch, excluded })
}

/// Returns the id of the last stage of a stream that makes batches.
fn last_batch(pipeline: &dyn Stage) -> Result<usize> {
    let (mut id, mut stage) = (pipeline.count() - 1, pipeline);
    loop {
        let node = stage.node();
        let is_border = node.work == Work::Border;
        let passes_on = node.name == "limit" || (node.work == Work::Chunks && node.role == Role::Elementwise);
        match stage.parents_by_id(id).as_slice() {
            [_] if node.name == "batch" && node.role == Role::Stateful => return Ok(id),
            [(before, parent)] if passes_on && !is_border => (id, stage) = (*before, *parent),
            _ => {
                let text =
                    format!("`global_batch` fits no stage: {} (stage {id}) is not the `batch` of a stream", node.name);
                return Err(Error::config(text).help(
                    "make batches by `batch` after `to_iter`, and after packing; only `map` and `limit` may follow it",
                ));
            }
        }
    }
}
