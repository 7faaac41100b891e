//! The folder with the file that a run can be resumed from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::element::OrderHash;
use crate::store::{self, Alone};
use crate::{Checkpoint, Error, Result, regular};
use serde::{Deserialize, Serialize};

use crate::cli::hash::Rows;
use crate::report::TokenCount;

/// The position of a run: the pipeline's checkpoint, and what the command line adds to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunState {
    /// The version of this file's format.
    gristmill_run: u32,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) order_hash: OrderHash,
    pub(crate) tokens: TokenCount,
    /// Absent in states from before it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<Rows>,
    /// Whether the run came to its end: then nothing is lost by beginning anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    finished: bool,
}

const FORMAT: u32 = 1;
const FILE: &str = "run-state.json";
/// Older states that are kept, the youngest as `run-state.1.json`.
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
}

/// The folder that a run saves its state in.
#[derive(Debug)]
pub(crate) struct States {
    folder: PathBuf,
    /// The lock, once it is taken.
    alone: Option<Alone>,
}

impl States {
    /// Nothing is read or made yet.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, alone: None }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Returns where an older state is kept, from 1 on.
    fn older(&self, age: usize) -> PathBuf {
        self.folder.join(format!("run-state.{age}.json"))
    }

    /// Makes the folder, and sees to it that this run alone writes there.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if another run does; [`ErrorKind::Io`](crate::ErrorKind::Io) if nothing can
    /// be written there.
    pub(crate) fn claim(&mut self) -> Result<()> {
        if self.alone.is_none() {
            fs::create_dir_all(&self.folder).map_err(|e| Error::io(e, &self.folder))?;
            self.alone = Some(Alone::in_folder(&self.folder, "run")?);
            store::check_writable(&self.file())?;
        }
        Ok(())
    }

    /// Reads the state that is there, if one is.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) for a file that is none; [`ErrorKind::Config`](crate::ErrorKind::Config) where
    /// older states are kept and the last one is gone: which of them is meant, nobody knows.
    pub(crate) fn load(&self) -> Result<Option<RunState>> {
        let state = self.read()?;
        match (1..=KEPT).map(|age| self.older(age)).find(|older| older.exists()) {
            Some(older) if state.is_none() => {
                Err(Error::config("the last saved state is gone").path(self.file()).help(format!(
                    "rename one of the older ones to {FILE}, the youngest is {}; or begin anew with --restart",
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

    /// Checks that no state is here which a run that begins anew would put aside.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if one is; [`ErrorKind::State`](crate::ErrorKind::State) for a file that is none.
    pub(crate) fn check_free(&self) -> Result<()> {
        let Some(state) = self.read()? else { return Ok(()) };
        let delivered = state.checkpoint.delivered;
        if state.finished || delivered == 0 {
            return Ok(());
        }
        let text = format!("a run stopped here after {delivered} batches");
        Err(Error::config(text).path(self.file()).help(format!(
            "--resume goes on behind them; --restart begins anew, and keeps this state as {}",
            self.older(1).file_name().unwrap_or_default().display()
        )))
    }

    /// Saves a state: a crash at any moment leaves the old one or the new one. The last few are kept beside it.
    pub(crate) fn save(&mut self, state: &RunState) -> Result<PathBuf> {
        self.claim()?;
        // Strings, numbers and JSON values.
        let text = serde_json::to_string_pretty(state).expect("a state serialises");
        let path = self.file();
        self.keep().map_err(|e| Error::io(e, &path))?;
        store::replace(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Keeps the state that is there under another name, too. It has its own until another takes that.
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
        // Not everywhere a file may have two names.
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
        assert_eq!(fs::read_dir(states.folder()).unwrap().count(), 4);
        // What is damaged leads to what is not.
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
