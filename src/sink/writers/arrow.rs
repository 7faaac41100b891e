//! Arrow: IPC files, and the streams in folders of Hugging Face's.

use super::{Create, Finished, ShardWriter};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::sink::compression::Compression;
use crate::sink::folder::Folder;
use crate::sink::format::SinkFormat;
use crate::sink::manifest::{FileEntry, Manifest};
use crate::sink::options::SinkOptions;
use crate::sink::schema::{Schema, kinds};
use crate::sink::shard_file::ShardFile;
use crate::source::arrow_ipc::folder as hugging_face;
use crate::source::{ArrowCompression, ArrowWriter, ArrowWriterOptions};

pub(super) fn open(options: &SinkOptions, schema: Option<&Schema>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    let codec = match options.compression {
        Compression::None => ArrowCompression::None,
        Compression::Zstd(level) => ArrowCompression::Zstd(level),
        Compression::Lz4 => ArrowCompression::Lz4,
        other => return Err(Error::config(format!("arrow has no compression {}", other.name()))),
    };
    let mut settings = ArrowWriterOptions::new().compression(codec);
    if let Some(schema) = schema {
        settings = settings.columns(kinds::of(schema)?);
    }
    if let Some(rows) = options.group {
        settings = settings.batch_rows(usize::try_from(rows).map_err(|_| Error::config("a group of 2^64 records"))?);
    }
    if options.format == SinkFormat::HuggingFace {
        settings = settings.stream();
    }
    Ok(Box::new(ArrowWriter::new(create(None)?, settings)?))
}

impl ShardWriter for ArrowWriter<ShardFile> {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.write(element)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok((*self).finish()?.into())
    }
}

/// The file that `datasets.load_from_disk` looks for: which files there are.
pub(super) fn folder(folder: &Folder, manifest: &Manifest) -> Result<Vec<FileEntry>> {
    let names: Vec<String> =
        manifest.shards.iter().flat_map(|shard| &shard.files).map(|file| file.name.clone()).collect();
    let hashes: String = manifest.files().map(|file| file.xxh3.as_str()).collect();
    let fingerprint = xxhash_rust::xxh3::xxh3_64(hashes.as_bytes());
    let columns = manifest.schema.as_ref().map(kinds::of).transpose()?;
    Ok(vec![
        ShardFile::write_whole(folder, "dataset_info.json", hugging_face::info(columns.as_deref()).as_bytes())?,
        ShardFile::write_whole(folder, "state.json", hugging_face::state(&names, fingerprint).as_bytes())?,
    ])
}
