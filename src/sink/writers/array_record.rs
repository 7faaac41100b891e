//! ArrayRecord.

use super::facts::{Create, Facts, NewShard};
use super::record::record_of;
use super::{Finished, ShardWriter};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::sink::compression::Compression;
use crate::sink::shard_file::ShardFile;
use crate::source::{ArrayRecordWriter, Compression as Codec};

pub(super) static FACTS: Facts = Facts {
    compressions: &[
        (Compression::Zstd(3), ""),
        (Compression::None, ""),
        (Compression::Brotli(5), ""),
        (Compression::Snappy, ""),
    ],
    holds_examples: true,
    ..Facts::of(".array_record", open)
};

fn open(NewShard { options, .. }: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    let codec = match options.compression {
        Compression::None => Codec::None,
        Compression::Zstd(level) => Codec::Zstd(level),
        Compression::Brotli(quality) => Codec::Brotli(quality),
        Compression::Snappy => Codec::Snappy,
        other => return Err(Error::config(format!("array_record has no compression {}", other.name()))),
    };
    let writer = ArrayRecordWriter::options().group_size(options.group.unwrap_or(1)).compression(codec);
    Ok(Box::new(Records { writer: writer.write_to(create(None)?)?, sequences: options.sequences.clone() }))
}

struct Records {
    writer: ArrayRecordWriter<ShardFile>,
    sequences: Vec<String>,
}

impl ShardWriter for Records {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.writer.write(&record_of(element, &self.sequences)?)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok(self.writer.finish()?.into())
    }
}
