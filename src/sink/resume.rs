//! What a folder holds already.

use serde_json::Value as Json;

use super::manifest::{MANIFEST, Manifest};
use super::plan::Plan;
use super::report::plural;
use crate::error::{Error, Result};

/// What was there already.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    pub(super) records: u64,
    pub(super) shards: u64,
    pub(super) bytes: u64,
    pub(super) state: Option<Json>,
    pub(super) is_complete: bool,
}

impl Resumed {
    pub(super) fn of(manifest: &Manifest) -> Self {
        Self {
            records: manifest.records,
            shards: manifest.shards.len() as u64,
            bytes: manifest.bytes(),
            state: manifest.shards.last().and_then(|shard| shard.state.clone()),
            is_complete: manifest.complete,
        }
    }
}

/// The manifest of the folder, and whether there was none.
pub(super) fn found(plan: &Plan) -> Result<(Manifest, bool)> {
    let new = plan.options.manifest();
    let Some(text) = plan.folder.read(MANIFEST)? else {
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
    for file in manifest.files() {
        if files.get(&file.name) != Some(&file.bytes) {
            let text = format!("the manifest lists {} of {} bytes, which is not there so", file.name, file.bytes);
            return Err(Error::state(text)
                .path(&at)
                .help("`gristmill verify` shows what is damaged; write to another folder"));
        }
    }
    Ok((manifest, false))
}
