//! What some formats have once for all shards.

use std::io::Write;

use crate::error::{Error, Result};
use crate::sink::compression::Compression;
use crate::sink::folder::Folder;
use crate::sink::manifest::{FileEntry, Manifest};
use crate::sink::shard_file::ShardFile;

/// Writes it, where the format has such a thing: the shards of `manifest` are all there are.
#[cfg_attr(
    not(any(feature = "arrow", feature = "mds")),
    expect(unused_variables, reason = "formats with such files are off")
)]
pub(in crate::sink) fn beside(folder: &Folder, manifest: &Manifest) -> Result<Vec<FileEntry>> {
    match manifest.format {
        #[cfg(feature = "arrow")]
        crate::sink::SinkFormat::HuggingFace => super::arrow::folder(folder, manifest),
        #[cfg(feature = "mds")]
        crate::sink::SinkFormat::Mds => super::mds::folder(folder, manifest),
        _ => Ok(Vec::new()),
    }
}

/// Writes a file beside the shards.
#[cfg_attr(not(any(feature = "arrow", feature = "mds")), expect(dead_code, reason = "formats with such files are off"))]
pub(super) fn file(folder: &Folder, name: &str, bytes: &[u8]) -> Result<FileEntry> {
    let mut file = ShardFile::create(folder, name.to_owned(), Compression::None)?;
    file.write_all(bytes).map_err(|e| Error::io(e, folder.file(name)))?;
    file.finish()
}
