//! Folders of Hugging Face's `datasets`: Arrow IPC streams, and the files that list them.

use super::facts::{Beside, Create, Facts, NewShard};
use super::{ShardWriter, arrow, kinds};
use crate::error::Result;
use crate::sink::manifest::Manifest;
use crate::source::ArrowWriter;
use crate::source::arrow_ipc::folder;

/// Facts without compression, because `datasets` maps its files and reads no compressed files.
pub(super) static FACTS: Facts = Facts { columns: Some(&kinds::COLUMNS), beside: lists, ..Facts::of(".arrow", open) };

fn open(shard: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    Ok(Box::new(ArrowWriter::new(create(None)?, arrow::settings(shard)?.stream())?))
}

/// Returns the files that `datasets.load_from_disk` requires: the list of shards, and the description of their columns.
fn lists(manifest: &Manifest) -> Result<Vec<Beside>> {
    let names: Vec<String> =
        manifest.shards.iter().flat_map(|shard| &shard.files).map(|file| file.name.clone()).collect();
    let hashes: String = manifest.files().map(|file| file.xxh3.as_str()).collect();
    let fingerprint = xxhash_rust::xxh3::xxh3_64(hashes.as_bytes());
    let columns = manifest.schema.as_ref().map(kinds::of).transpose()?;
    Ok(vec![
        ("dataset_info.json", folder::info(columns.as_deref()).into_bytes()),
        ("state.json", folder::state(&names, fingerprint).into_bytes()),
    ])
}
