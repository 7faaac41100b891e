//! The account that a loader gives of itself in a statement.

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::parted::Parted;
use crate::checkpoint::Identity;
use crate::dataset::{Role, Stage};
use crate::error::{Error, Result};
use crate::part::{Guard, Statement};

/// Files of a source that are named if hosts disagree: stores of keys and values take that many.
const MOST_FILES: usize = 10_000;

/// The parts of a loader that go into a statement.
pub(super) struct Here<'a, T, S> {
    pub(super) pipeline: &'a dyn Stage,
    pub(super) identity: &'a Identity,
    pub(super) parted: &'a Parted<T>,
    pub(super) delivered: u64,
    pub(super) state: &'a S,
}

impl<T, S: Serialize> Here<'_, T, S> {
    /// Makes the short statement of this host's position.
    pub(super) fn statement(&self, guard: &Guard) -> Result<Statement> {
        let state = serde_json::to_vec(self.state)
            .map_err(|e| Error::state(format!("the state of a stage cannot be written as JSON: {e}")))?;
        let mut said = Statement::new(self.parted.part(), guard);
        self.identity.fingerprint().clone_into(&mut said.fingerprint);
        said.deal = format!("{:?}", self.parted.deal());
        said.state = format!("{:016x}", xxh3_64(&state));
        Ok(said)
    }
}

impl<T, S> Here<'_, T, S> {
    /// The stages that are sources, and their files.
    pub(super) fn sources(&self) -> Vec<(usize, Vec<String>)> {
        let mut sources = Vec::new();
        self.pipeline.walk(&mut |id, stage| {
            if stage.role() == Role::Source {
                let mut files = stage.files();
                files.truncate(MOST_FILES);
                sources.push((id, files));
            }
        });
        sources
    }
}
