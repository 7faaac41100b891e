//! Shards that a folder holds already.

use std::collections::VecDeque;

use serde_json::Value as Json;

use super::first;
use super::manifest::{MANIFEST, Manifest};
use super::plan::Plan;
use super::report::plural;
use crate::checkpoint::Checkpoint;
use crate::element::Element;
use crate::error::{Error, Result};

/// Shards that were there already.
#[derive(Clone, Debug, Default)]
pub(super) struct Resumed {
    pub(super) records: u64,
    pub(super) shards: u64,
    pub(super) bytes: u64,
    pub(super) state: Option<Json>,
    /// Their state, if a pipeline's it is.
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) is_complete: bool,
}

/// Records of shards that are there, which are written again once it is known what the columns hold.
#[derive(Debug, Default)]
pub(super) struct Again {
    pub(super) records: Vec<Element>,
    /// The state of the pipeline behind each shard.
    states: VecDeque<Option<Json>>,
}

impl Again {
    /// The state behind the next shard.
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

/// Drops the shards that are written again, which the manifest lists no more then; on the disk everything stays as it is.
///
/// # Errors
/// [`ErrorKind::State`](crate::ErrorKind::State) if the first records are not there.
pub(super) fn again(plan: &Plan, manifest: &mut Manifest) -> Result<Option<Again>> {
    if !std::mem::take(&mut manifest.unsettled) {
        // Left by one that was killed before it listed what these are of.
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

/// The manifest of the folder, and whether there was none.
pub(super) fn found(plan: &Plan) -> Result<(Manifest, bool)> {
    let new = plan.options.manifest(plan.facts);
    let Some(text) = plan.folder.manifest()? else {
        // Before its first shard, a folder has a manifest: these are somebody else's.
        return match plan.folder.files()?.keys().find(|name| plan.is_shard_from(name, 0)) {
            Some(name) => Err(Error::config("a file of this name is there, and no manifest that lists it")
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
            .path(plan.folder.path())
            .help("resume to go on with it, or write to another folder"));
    }
    manifest.check(&new).map_err(|e| e.path(&at))?;
    let files = plan.folder.files()?;
    // Shards whose columns were not settled are all written again, and one that was killed at that may have replaced some of them.
    for file in manifest.files().filter(|_| !manifest.unsettled) {
        if files.get(&file.name) != Some(&file.bytes) {
            let text = format!("the manifest lists {} of {} bytes, which is not there so", file.name, file.bytes);
            return Err(Error::state(text)
                .path(&at)
                .help("`gristmill verify` shows what is damaged; write to another folder"));
        }
    }
    Ok((manifest, false))
}
