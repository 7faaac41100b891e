//! Files that some formats have once for all shards.

use crate::error::Result;
use crate::sink::folder::Folder;
use crate::sink::manifest::{FileEntry, Manifest};

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
