//! Publication of shards, in order.

use std::collections::BTreeMap;

use super::folder::Folder;
use super::manifest::{FileEntry, Manifest, ShardEntry};
use crate::error::Result;

/// Manifest, and shards that wait for earlier shards.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) manifest: Manifest,
    waiting: BTreeMap<u64, ShardEntry>,
}

impl Publisher {
    pub(super) fn new(manifest: Manifest) -> Self {
        Self { manifest, waiting: BTreeMap::new() }
    }

    /// Lists a shard that is on the disk, after all earlier shards are listed.
    pub(super) fn publish(&mut self, folder: &Folder, number: u64, shard: ShardEntry) -> Result<()> {
        self.waiting.insert(number, shard);
        let before = self.manifest.shards.len();
        while let Some(shard) = self.waiting.remove(&(self.manifest.shards.len() as u64)) {
            self.manifest.records += shard.records;
            self.manifest.shards.push(shard);
        }
        if self.manifest.shards.len() > before { self.save(folder) } else { Ok(()) }
    }

    /// Marks the data set as complete.
    pub(super) fn complete(&mut self, folder: &Folder, files: Vec<FileEntry>) -> Result<()> {
        self.manifest.complete = true;
        self.manifest.files = files;
        self.save(folder)
    }

    pub(super) fn save(&self, folder: &Folder) -> Result<()> {
        folder.publish(self.manifest.to_json().as_bytes())
    }
}
