//! What all shards of a sink have in common.

use super::compression::Compression;
use super::folder::Folder;
use super::options::SinkOptions;
use super::shard_file::ShardFile;
use super::writers::{self, ShardWriter};
use crate::error::Result;

/// How shards are written, and where to.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) options: SinkOptions,
    pub(super) folder: Folder,
}

impl Plan {
    /// Begins the shard of this number, and of this record.
    pub(super) fn shard(&self, number: u64, first_record: u64) -> Result<Box<dyn ShardWriter>> {
        writers::open(&self.options, first_record, &mut |ending| self.file(number, ending))
    }

    /// What the file of a shard that has one is called.
    pub(super) fn name(&self, number: u64) -> String {
        self.named(number, &self.options.format.ending(self.options.compression))
    }

    /// Whether a file in the folder is of a shard of this number or a later one.
    pub(super) fn is_shard_from(&self, name: &str, first: u64) -> bool {
        let number = || {
            let rest = name.strip_prefix(&self.options.prefix)?.strip_prefix('-')?;
            let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|&digits| digits >= 5)?;
            rest[digits..].starts_with('.').then(|| rest[..digits].parse::<u64>().ok())?
        };
        number().is_some_and(|number| number >= first)
    }

    /// Begins a file of a shard; the ending is that of the format, or of a second file.
    fn file(&self, number: u64, ending: Option<&str>) -> Result<ShardFile> {
        let SinkOptions { format, compression, .. } = &self.options;
        let of_file = if format.packs_files() { *compression } else { Compression::None };
        let name = ending.map_or_else(|| self.name(number), |ending| self.named(number, ending));
        ShardFile::create(&self.folder, name, of_file)
    }

    fn named(&self, number: u64, ending: &str) -> String {
        format!("{}-{number:05}{ending}", self.options.prefix)
    }
}
