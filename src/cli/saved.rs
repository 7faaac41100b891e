//! The folder with the state from which a run is resumed.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::element::OrderHash;
use crate::store::{self, Alone};
use crate::{Checkpoint, Error, Result, regular};
use serde::{Deserialize, Serialize};

use crate::cli::hash::Rows;
use crate::report::TokenCount;

/// Position of a run: the checkpoint of the pipeline, and the additions of the command line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunState {
    /// Version of the format of this file.
    gristmill_run: u32,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) order_hash: OrderHash,
    pub(crate) tokens: TokenCount,
    /// Digest of the delivered rows; absent in states of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<Rows>,
    /// Whether the run reached its end, so that beginning anew loses nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    finished: bool,
}

const FORMAT: u32 = 1;
const FILE: &str = "run-state.json";
/// Number of older states that are kept. The youngest is `run-state.1.json`.
const KEPT: usize = 3;

impl RunState {
    pub(crate) fn new(checkpoint: Checkpoint, order_hash: OrderHash, tokens: TokenCount, finished: bool) -> Self {
        Self { gristmill_run: FORMAT, checkpoint, order_hash, tokens, rows: None, finished }
    }

    fn parse(text: &str) -> Result<Self> {
        let json: serde_json::Value =
            serde_json::from_str(text).map_err(|e| Error::state(format!("not a saved run: {e}")))?;
        match json.get("gristmill_run").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(FORMAT) => {}
            Some(version) => {
                return Err(Error::state(format!("saved run of format {version}, but this gristmill reads {FORMAT}")));
            }
            None => return Err(Error::state("not a saved run: no field \"gristmill_run\"")),
        }
        // The checkpoint has its own version, and its error is clearer than the error of a missing field.
        if let Some(checkpoint) = json.get("checkpoint") {
            Checkpoint::from_json(&checkpoint.to_string())?;
        }
        serde_json::from_value(json).map_err(|e| Error::state(format!("not a saved run: {e}")))
    }
}

/// Folder in which a run saves its state.
#[derive(Debug)]
pub(crate) struct States {
    pub(crate) folder: PathBuf,
    /// Lock on the folder, after it is taken.
    alone: Option<Alone>,
}

impl States {
    /// Makes the states of a folder, without reading or creating anything.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, alone: None }
    }

    fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Returns the path of an older state. `age` begins at 1.
    fn older(&self, age: usize) -> PathBuf {
        self.folder.join(format!("run-state.{age}.json"))
    }

    /// Makes the folder, and ensures that only this run writes there.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if another run writes there;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder is not writable.
    pub(crate) fn claim(&mut self) -> Result<()> {
        if self.alone.is_none() {
            fs::create_dir_all(&self.folder).map_err(|e| Error::io(e, &self.folder))?;
            self.alone = Some(Alone::in_folder(&self.folder, "run")?);
            store::check_writable(&self.file())?;
        }
        Ok(())
    }

    /// Reads the saved state, if there is a state.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if the file is not a saved run;
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if older states exist but the last state is missing, so that the choice is ambiguous.
    pub(crate) fn load(&self) -> Result<Option<RunState>> {
        let state = self.read()?;
        match (1..=KEPT).map(|age| self.older(age)).find(|older| older.exists()) {
            Some(older) if state.is_none() => {
                Err(Error::config("the last saved state is gone").path(self.file()).help(format!(
                    "rename an older state to {FILE}, the newest is {}; or start over with --restart",
                    older.display()
                )))
            }
            _ => Ok(state),
        }
    }

    fn read(&self) -> Result<Option<RunState>> {
        let path = self.file();
        if !path.try_exists().map_err(|e| Error::io(e, &path))? {
            return Ok(None);
        }
        let text = regular::read_text(&path)?;
        let older = (1..=KEPT).map(|age| self.older(age)).find(|older| older.exists());
        RunState::parse(&text).map(Some).map_err(|e| {
            let error = e.path(&path);
            match older {
                Some(older) => error.help(format!("an older state is kept in {}", older.display())),
                None => error,
            }
        })
    }

    /// Checks that the folder contains no state that a new run would move aside.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is such a state;
    /// [`ErrorKind::State`](crate::ErrorKind::State) if the file is not a saved run.
    pub(crate) fn check_free(&self) -> Result<()> {
        let Some(state) = self.read()? else { return Ok(()) };
        let delivered = state.checkpoint.delivered;
        if state.finished || delivered == 0 {
            return Ok(());
        }
        let text = format!("a run stopped here after {delivered} batches");
        Err(Error::config(text).path(self.file()).help(format!(
            "--resume continues after them; --restart starts over, and keeps this state as {}",
            self.older(1).file_name().unwrap_or_default().display()
        )))
    }

    /// Saves a state atomically: a crash leaves the old state or the new state. The last few states are kept.
    pub(crate) fn save(&mut self, state: &RunState) -> Result<PathBuf> {
        self.claim()?;
        // A state contains strings, numbers and JSON values.
        let text = serde_json::to_string_pretty(state).expect("a state serialises");
        let path = self.file();
        self.keep().map_err(|e| Error::io(e, &path))?;
        store::replace(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Gives the current state a second name. Its first name remains until a new state takes it.
    fn keep(&self) -> io::Result<()> {
        let current = self.file();
        if !current.exists() {
            return Ok(());
        }
        for age in (1..KEPT).rev() {
            let from = self.older(age);
            if from.exists() {
                fs::rename(from, self.older(age + 1))?;
            }
        }
        // Some file systems have no hard links.
        fs::hard_link(&current, self.older(1)).or_else(|_| fs::copy(&current, self.older(1)).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(delivered: u64, finished: bool) -> RunState {
        let checkpoint = Checkpoint {
            gristmill_checkpoint: 1,
            crate_version: String::new(),
            fingerprint: String::new(),
            pipeline: Vec::new(),
            delivered,
            state: serde_json::Value::Null,
            accepted_changes: Vec::new(),
            edits: Vec::new(),
            edited_mix: None,
        };
        RunState::new(checkpoint, OrderHash::default(), TokenCount::default(), finished)
    }

    #[test]
    fn the_last_states_are_kept_and_no_more() {
        let temp = tempfile::tempdir().unwrap();
        let mut states = States::new(temp.path().join("a/b"));
        (1..=6).for_each(|n| drop(states.save(&state(n, false)).unwrap()));
        let delivered =
            |path: PathBuf| RunState::parse(&fs::read_to_string(path).unwrap()).unwrap().checkpoint.delivered;
        assert_eq!(delivered(states.file()), 6);
        assert_eq!([1, 2, 3].map(|age| delivered(states.older(age))), [5, 4, 3]);
        assert_eq!(fs::read_dir(&states.folder).unwrap().count(), 4);
        // The error of a damaged state names an intact older state.
        fs::write(states.file(), "{").unwrap();
        let error = states.load().unwrap_err();
        assert!(error.help_text().unwrap().contains("run-state.1.json"), "{error:?}");
        assert!(states.check_free().is_err());
    }

    #[test]
    fn a_state_that_would_be_lost_is_in_the_way() {
        let temp = tempfile::tempdir().unwrap();
        let mut states = States::new(temp.path().to_owned());
        assert!(states.check_free().is_ok() && states.load().unwrap().is_none());
        for (delivered, finished, free) in [(0, false, true), (7, false, false), (7, true, true)] {
            states.save(&state(delivered, finished)).unwrap();
            assert_eq!(states.check_free().is_ok(), free, "{delivered} {finished}");
        }
    }

    #[test]
    fn older_states_alone_are_not_taken_for_none() {
        let temp = tempfile::tempdir().unwrap();
        let mut states = States::new(temp.path().to_owned());
        (1..=2).for_each(|n| drop(states.save(&state(n, false)).unwrap()));
        fs::remove_file(states.file()).unwrap();
        let error = states.load().unwrap_err();
        assert!(error.help_text().unwrap().contains("run-state.1.json"), "{error:?}");
    }

    #[cfg(unix)]
    #[test]
    fn two_runs_do_not_share_a_folder() {
        let temp = tempfile::tempdir().unwrap();
        let mut first = States::new(temp.path().to_owned());
        first.claim().unwrap();
        let mut second = States::new(temp.path().to_owned());
        assert!(second.claim().unwrap_err().message().contains("another run writes to this folder"));
        drop(first);
        second.claim().unwrap();
    }
}
