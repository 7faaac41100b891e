//! Existing shards of a folder that is resumed.

use std::collections::VecDeque;

use serde_json::Value as Json;

use super::first;
use super::manifest::{MANIFEST, Manifest};
use super::plan::Plan;
use super::report::plural;
use crate::checkpoint::Checkpoint;
use crate::element::Element;
use crate::error::{Error, Result};

/// Summary of the existing shards.
#[derive(Clone, Debug, Default)]
pub(super) struct Resumed {
    pub(super) records: u64,
    pub(super) shards: u64,
    pub(super) bytes: u64,
    pub(super) state: Option<Json>,
    /// Checkpoint of the pipeline, if a pipeline produced the records.
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) is_complete: bool,
}

/// Records of existing shards, which are written again after the columns are settled.
#[derive(Debug, Default)]
pub(super) struct Again {
    pub(super) records: Vec<Element>,
    /// State of the pipeline after each shard.
    states: VecDeque<Option<Json>>,
}

impl Again {
    /// Returns the state after the next shard.
    pub(super) fn state(&mut self) -> Option<Json> {
        self.states.pop_front().flatten()
    }
}

impl Resumed {
    pub(super) fn of(manifest: &Manifest) -> Self {
        Self {
            records: manifest.records,
            shards: manifest.shards.len() as u64,
            bytes: manifest.bytes(),
            state: manifest.shards.last().and_then(|shard| shard.state.clone()),
            checkpoint: manifest.checkpoint(),
            is_complete: manifest.complete,
        }
    }
}

/// Removes the shards to write again from the manifest, and returns their records. The shards on the disk do not
/// change.
///
/// # Errors
/// [`ErrorKind::State`](crate::ErrorKind::State) if the first records are missing or damaged.
pub(super) fn again(plan: &Plan, manifest: &mut Manifest) -> Result<Option<Again>> {
    if !std::mem::take(&mut manifest.unsettled) {
        // Left by a sink that was killed before its manifest listed the shards of these records.
        plan.folder.delete(first::FILE)?;
        return Ok(None);
    }
    let at = plan.folder.file(first::FILE);
    let bytes = plan.folder.read(first::FILE)?.unwrap_or_default();
    let records = first::decode(&bytes, manifest.records).map_err(|e| e.path(at))?;
    let states = std::mem::take(&mut manifest.shards).into_iter().map(|shard| shard.state).collect();
    (manifest.records, manifest.schema) = (0, None);
    Ok(Some(Again { records, states }))
}

/// Returns the manifest of the folder, or a new manifest and true if the folder has no manifest.
pub(super) fn found(plan: &Plan) -> Result<(Manifest, bool)> {
    let new = plan.options.manifest(plan.facts);
    let Some(text) = plan.folder.manifest()? else {
        // A sink writes the manifest before its first shard, so these files come from another program.
        return match plan.folder.files()?.keys().find(|name| plan.is_shard_from(name, 0)) {
            Some(name) => Err(Error::config("a file of this name exists, but no manifest lists it")
                .path(plan.folder.file(name))
                .help("write to another folder, or choose another prefix")),
            None => Ok((new, true)),
        };
    };
    let at = plan.folder.file(MANIFEST);
    let text = String::from_utf8_lossy(&text);
    let manifest = Manifest::from_json(&text).map_err(|e| e.path(&at))?;
    if !plan.options.resume {
        let what = format!("the folder holds a data set of {} already", plural(manifest.shards.len() as u64, "shard"));
        return Err(Error::config(what)
            .path(&plan.folder.path)
            .help("resume to continue it, or write to another folder"));
    }
    manifest.check(&new).map_err(|e| e.path(&at))?;
    let files = plan.folder.files()?;
    // All shards with unsettled columns are written again. A killed resume may have replaced some of them.
    for file in manifest.files().filter(|_| !manifest.unsettled) {
        if files.get(&file.name) != Some(&file.bytes) {
            let text =
                format!("the manifest lists {} with {} bytes, which does not match the folder", file.name, file.bytes);
            return Err(Error::state(text)
                .path(&at)
                .help("`gristmill verify` lists the damaged files; write to another folder"));
        }
    }
    Ok((manifest, false))
}
