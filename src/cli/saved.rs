//! The file that a run can be resumed from.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::element::OrderHash;
use crate::{Checkpoint, Error, Result};
use serde::{Deserialize, Serialize};

use crate::cli::tokens::TokenCount;

/// Where a run is: the pipeline's checkpoint, and what the command line adds to it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunState {
    /// The version of this file's format.
    gristmill_run: u32,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) order_hash: OrderHash,
    pub(crate) tokens: TokenCount,
}

const FORMAT: u32 = 1;
const FILE: &str = "run-state.json";

impl RunState {
    pub(crate) fn new(checkpoint: Checkpoint, order_hash: OrderHash, tokens: TokenCount) -> Self {
        Self { gristmill_run: FORMAT, checkpoint, order_hash, tokens }
    }

    /// Where it lies in `folder`.
    pub(crate) fn file(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// Reads the state in `folder`.
    pub(crate) fn load(folder: &Path) -> Result<Self> {
        let path = Self::file(folder);
        let text = std::fs::read_to_string(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Error::config("no saved run to resume")
                .path(&path)
                .help("run without --resume first, or say where the state is with --checkpoint DIR"),
            _ => Error::io(e, &path),
        })?;
        Self::parse(&text).map_err(|e| e.path(&path))
    }

    fn parse(text: &str) -> Result<Self> {
        let json: serde_json::Value =
            serde_json::from_str(text).map_err(|e| Error::state(format!("not a saved run: {e}")))?;
        match json.get("gristmill_run").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(FORMAT) => {}
            Some(version) => {
                return Err(Error::state(format!("saved run of format {version}, and this gristmill reads {FORMAT}")));
            }
            None => return Err(Error::state("not a saved run: no field \"gristmill_run\"")),
        }
        // The checkpoint has a version of its own; its message says more than that of a missing field.
        if let Some(checkpoint) = json.get("checkpoint") {
            Checkpoint::from_json(&checkpoint.to_string())?;
        }
        serde_json::from_value(json).map_err(|e| Error::state(format!("not a saved run: {e}")))
    }

    /// Replaces the state in `folder`: a crash at any moment leaves the old one or the new one.
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(e, folder))?;
        let (path, new) = (Self::file(folder), folder.join(format!("{FILE}.{}.new", std::process::id())));
        // Strings, numbers and JSON values.
        let text = serde_json::to_string_pretty(self).expect("a state serialises");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)
        };
        write().map_err(|e| {
            let _ = std::fs::remove_file(&new);
            Error::io(e, &path)
        })
    }
}
