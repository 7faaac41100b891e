//! Folders of MDS.

mod encodings;

use std::io::Write;

use serde_json::Value as Json;

use super::facts::{Beside, Create, Facts, NewShard};
use super::{Finished, ShardWriter};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::sink::compression::Compression;
use crate::sink::manifest::Manifest;
use crate::sink::shard_file::ShardFile;
use crate::source::{MdsWriter, mds_index};

pub(super) static FACTS: Facts = Facts {
    compressions: &[
        (Compression::None, ""),
        (Compression::Zstd(3), ".zstd"),
        (Compression::Gzip(6), ".gz"),
        (Compression::Brotli(5), ".br"),
        (Compression::Snappy, ".snappy"),
    ],
    columns: Some(&encodings::COLUMNS),
    beside: index,
    ..Facts::of(".mds", open)
};

fn open(NewShard { options, schema, .. }: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    let mut settings = MdsWriter::options();
    if let Some(compression) = name_of(options.compression) {
        settings = settings.compression(compression);
    }
    if let Some(schema) = schema {
        let words = |(name, holds): (&str, &Json)| Some((name.to_owned(), holds.as_str()?.to_owned()));
        settings = settings.exactly(schema.columns().filter_map(words));
    }
    Ok(Box::new(Samples { writer: settings.one_shard()?, file: create(None)? }))
}

/// Returns the name of a compression in MDS.
fn name_of(compression: Compression) -> Option<String> {
    match compression {
        Compression::None | Compression::Lz4 => None,
        Compression::Zstd(level) => Some(format!("zstd:{level}")),
        Compression::Gzip(level) => Some(format!("gz:{level}")),
        Compression::Brotli(quality) => Some(format!("br:{quality}")),
        Compression::Snappy => Some("snappy".to_owned()),
    }
}

/// Samples of a shard, held in memory because the index of the shard precedes them in the file.
struct Samples {
    writer: MdsWriter,
    file: ShardFile,
}

impl ShardWriter for Samples {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.writer.write(element)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        let Self { writer, mut file } = *self;
        let shard = writer.into_shard(&file.name)?;
        file.write_all(&shard.bytes).map_err(Error::of_io)?;
        Ok(Finished { files: vec![file], note: Some(Json::String(shard.entry)) })
    }
}

/// Returns `index.json`, which every folder of MDS requires.
fn index(manifest: &Manifest) -> Result<Vec<Beside>> {
    let entries: Vec<&str> = manifest.shards.iter().filter_map(|shard| shard.note.as_ref()?.as_str()).collect();
    Ok(vec![("index.json", mds_index(&entries))])
}
