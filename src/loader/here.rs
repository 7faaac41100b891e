//! The contents of a loader's statement to other hosts.

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::parted::Parted;
use crate::checkpoint::{Identity, unwritable};
use crate::dataset::Stage;
use crate::error::Result;
use crate::part::{Guard, Statement};

/// Maximum number of files listed per source if hosts disagree. Key-value stores accept statements of this size.
const MOST_FILES: usize = 10_000;

/// Parts of a loader that go into a statement.
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
        let state = serde_json::to_vec(self.state).map_err(unwritable)?;
        let mut said = Statement::new(self.parted.part(), guard);
        said.fingerprint = self.identity.shared_fingerprint();
        said.deal = format!("{:?}", self.parted.deal());
        said.state = format!("{:016x}", xxh3_64(&state));
        Ok(said)
    }
}

impl<T, S> Here<'_, T, S> {
    /// Returns the stages that are sources, with up to `MOST_FILES` files each.
    pub(super) fn sources(&self) -> Vec<(usize, Vec<String>)> {
        self.pipeline.source_files(MOST_FILES)
    }
}
